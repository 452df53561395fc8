// Tries Go's S3 clients on a server, one line for each step that fails.
//
//	go run . minio|aws URL
//
// Keys come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.
package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
)

const mib = 1 << 20

// step is one thing tried; it panics if the server does not do as it should.
type step struct {
	name string
	try  func()
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: go run . minio|aws URL")
		os.Exit(2)
	}
	var steps []step
	switch os.Args[1] {
	case "minio":
		steps = minioSteps(os.Args[2])
	case "aws":
		steps = awsSteps(os.Args[2])
	}
	failed := len(steps) == 0
	for _, s := range steps {
		if fault := run(s); fault != "" {
			fmt.Printf("%s: %s: failed: %s\n", os.Args[1], s.name, fault)
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}

func run(s step) (fault string) {
	defer func() {
		if r := recover(); r != nil {
			fault = fmt.Sprint(r)
			if os.Getenv("STACK") != "" {
				fault += "\n" + string(debug.Stack())
			}
		}
	}()
	s.try()
	return ""
}

// must panics if there is an error, and returns the value otherwise.
func must[T any](value T, err error) T {
	ok(err)
	return value
}

func ok(err error) {
	if err != nil {
		panic(err)
	}
}

// same panics unless both values are equal.
func same[T comparable](what string, got, want T) {
	if got != want {
		panic(fmt.Sprintf("%s is %v, not %v", what, got, want))
	}
}

// sameBytes panics unless the stream holds these bytes.
func sameBytes(what string, from io.Reader, want []byte) {
	got := must(io.ReadAll(from))
	if !bytes.Equal(got, want) {
		panic(fmt.Sprintf("%s: %d bytes came back, not the %d that were put", what, len(got), len(want)))
	}
}

// fresh makes bytes that repeat in no power of two.
func fresh(size, seed int) []byte {
	out := make([]byte, size)
	for at := range out {
		out[at] = byte(at/7 + at%251 + seed)
	}
	return out
}

// oddNames are keys that servers and clients of S3 got wrong: control characters, which XML cannot
// hold, carriage returns, which it turns into line ends, escapes, dots, slashes, all widths of UTF-8.
func oddNames() []string {
	return []string{
		"a\x01b", "Icon\r", "line\nend", "tab\tbed", "\x7f", "%", "%25", "a%2Fb", "100%.txt", "a b+c",
		"a+b", "../up", "./here", "a//b", "a/./b", "/lead", "trail/", "q?x=1&y=2", "hash#tag", "é", "e\u0301",
		"日本語", "😀", "<&>\"'", "back\\slash", "star*", " ", " lead", "trail ", "~tilde", "semi;colon", "\u00a0",
		"\u2028", "\ufffd", strings.Repeat("l", 1024),
	}
}

// by sends a request to a signed address.
func by(method, address string, body []byte) *http.Response {
	request := must(http.NewRequest(method, address, bytes.NewReader(body)))
	return must(http.DefaultClient.Do(request))
}
