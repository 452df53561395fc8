package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A history as clients write it: call and answer of each line, with times from 10 to 10.
func history(t *testing.T, lines ...string) *verdict {
	t.Helper()
	folder := t.TempDir()
	text := ""
	for i, line := range lines {
		asked, answered, _ := strings.Cut(line, " => ")
		from, to := 10*i+10, 10*i+15
		if rest, late := strings.CutPrefix(asked, "late "); late {
			// It is answered after the next call.
			asked, to = rest, 10*i+28
		}
		text += fmt.Sprintf("{\"call\": %d, \"task\": %d, \"at\": %d, %s}\n", i+1, i, from, asked)
		if answered != "" {
			text += fmt.Sprintf("{\"return\": %d, \"at\": %d, %s}\n", i+1, to, answered)
		}
	}
	// What a killed client wrote last may break off.
	text += `{"call": 99, "ta`
	if err := os.WriteFile(filepath.Join(folder, "00-001.jsonl"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	calls, err := readAll(folder)
	if err != nil {
		t.Fatal(err)
	}
	return check(calls, "", time.Minute)
}

const (
	put      = `"op": "put", "name": "a", "content": "%s:0:4" => "is": "ok", "version": "%s"`
	appended = `"op": "edit", "name": "a", "splices": [{"cut": 0, "put": "%s:0:2"}] => "is": "ok", "size": %d`
	got      = `"op": "get", "name": "a" => "is": "ok", "version": "%s", "content": "%s"`
	removed  = `"op": "remove", "name": "a" => "is": "ok", "was": true`
	absent   = `"op": "get", "name": "a" => "is": "none"`
)

func f(format string, values ...interface{}) string { return fmt.Sprintf(format, values...) }

func TestHistories(t *testing.T) {
	first, late := f(put, "aaaaaaaa", "i-1-o1"), "late "
	copied := `"op": "copy", "from": "a", "name": "b" => "is": "ok", "version": "j-1-q1"`
	copyGot := `"op": "get", "name": "b" => "is": "ok", "version": "j-1-q1", "content": "%s"`
	copyPut := `"op": "put", "name": "b", "content": "%s:0:4" => "is": "ok", "version": "j-1-q1"`
	ranged := `"op": "copy range", "from": "a", "first": 1, "count": 2, "name": "b", "place": 1 => "is": "ok", "size": 96`
	rangeGot := `"op": "get", "name": "b" => "is": "ok", "version": "j-2-q2", "content": "%s"`
	tests := []struct {
		what  string
		right bool
		lines []string
	}{
		{"one after another", true, []string{
			absent, first, f(got, "i-1-o1", "aaaaaaaa:0:4"), f(appended, "bbbbbbbb", 96),
			f(got, "i-2-o2", "aaaaaaaa:0:4,bbbbbbbb:0:2"), removed, absent, f(put, "cccccccc", "i-4-o4"),
		}},
		{"a read beside a change sees what was before, or after", true, []string{
			first, late + f(appended, "bbbbbbbb", 96), f(got, "i-1-o1", "aaaaaaaa:0:4"),
		}},
		{"an update is lost", false, []string{
			first, f(appended, "bbbbbbbb", 96), f(appended, "cccccccc", 96),
			f(got, "i-2-o3", "aaaaaaaa:0:4,cccccccc:0:2"),
		}},
		{"two build on the same version", false, []string{
			first, late + f(appended, "bbbbbbbb", 96), f(appended, "cccccccc", 96),
		}},
		{"a read is stale", false, []string{
			first, f(appended, "bbbbbbbb", 96), f(got, "i-1-o1", "aaaaaaaa:0:4"),
		}},
		{"what was removed is there again", false, []string{
			first, removed, f(got, "i-1-o1", "aaaaaaaa:0:4"),
		}},
		{"a change is made twice", false, []string{
			first, f(appended, "bbbbbbbb", 96), f(got, "i-3-o2", "aaaaaaaa:0:4,bbbbbbbb:0:2,bbbbbbbb:0:2"),
		}},
		{"what was killed happens later", true, []string{
			first, `"op": "edit", "name": "a", "splices": [{"cut": 0, "put": "bbbbbbbb:0:2"}]`,
			f(got, "i-1-o1", "aaaaaaaa:0:4"), f(got, "i-2-o2", "aaaaaaaa:0:4,bbbbbbbb:0:2"),
		}},
		{"what was killed happens twice", false, []string{
			first, `"op": "edit", "name": "a", "splices": [{"cut": 0, "put": "bbbbbbbb:0:2"}]`,
			f(got, "i-3-o2", "aaaaaaaa:0:4,bbbbbbbb:0:2,bbbbbbbb:0:2"),
		}},
		{"a call that failed changed something", false, []string{
			first, `"op": "edit", "name": "a", "splices": [{"cut": 0, "put": "bbbbbbbb:0:2"}] => "is": "failed"`,
			f(got, "i-2-o2", "aaaaaaaa:0:4,bbbbbbbb:0:2"),
		}},
		{"half of a change is seen", false, []string{
			first, f(put, "bbbbbbbb", "i-2-o2"), f(got, "i-2-o2", "bbbbbbbb:0:2,aaaaaaaa:2:2"),
		}},
		{"a condition on an old version holds", false, []string{
			first, f(put, "bbbbbbbb", "i-2-o2"),
			`"op": "put", "name": "a", "only": "i-1-o1", "content": "cccccccc:0:4" => "is": "ok", "version": "i-3-o3"`,
		}},
		{"a condition on the version that is there does not hold", false, []string{
			first, `"op": "put", "name": "a", "only": "i-1-o1", "content": "cccccccc:0:4" => "is": "version"`,
		}},
		{"a listing shows what is there", true, []string{
			first, `"op": "list", "prefix": "" => "is": "ok", "names": ["a"]`,
		}},
		{"a listing lacks a name", false, []string{
			first, `"op": "list", "prefix": "" => "is": "ok", "names": []`,
		}},
		{"a copy is of its source", true, []string{first, copied, f(copyGot, "aaaaaaaa:0:4")}},
		{"a copy is of what its source was before", false, []string{
			first, f(put, "bbbbbbbb", "i-2-o2"), copied, f(copyGot, "aaaaaaaa:0:4"),
		}},
		{"a copied range is of its source", true, []string{
			first, f(copyPut, "bbbbbbbb"), ranged, f(rangeGot, "bbbbbbbb:0:1,aaaaaaaa:1:2,bbbbbbbb:1:3"),
		}},
		{"a copied range is of something else", false, []string{
			first, f(copyPut, "bbbbbbbb"), ranged, f(rangeGot, "bbbbbbbb:0:1,aaaaaaaa:0:2,bbbbbbbb:1:3"),
		}},
		{"a rename leaves its source", false, []string{
			first, `"op": "rename", "from": "a", "name": "b" => "is": "ok", "version": "j-1-q1"`,
			f(got, "i-1-o1", "aaaaaaaa:0:4"),
		}},
		{"a version has two contents", false, []string{
			first, f(got, "i-1-o1", "aaaaaaaa:0:4"), f(got, "i-1-o1", "aaaaaaaa:0:3"),
		}},
		{"bytes are damaged", false, []string{first, `"op": "get", "name": "a" => "is": "damaged"`}},
	}
	for _, test := range tests {
		t.Run(test.what, func(t *testing.T) {
			v := history(t, test.lines...)
			if v.ok() != test.right {
				t.Errorf("right: %v; %v %v", v.ok(), v.wrong, v.undecided)
			}
		})
	}
}

func TestContents(t *testing.T) {
	runs := parse("a:0:4,0:0:2,b:3:2")
	if got := told(splice(runs, 2, 3, parse("c:0:1"))); got != "a:0:2,c:0:1,0:0:1,b:3:2" {
		t.Error(got)
	}
	if got := told(append(slice(runs, 0, 2), slice(runs, 2, 5)...)); got != "a:0:4,0:0:1" {
		t.Error(got)
	}
	if !matches("a:0:2,?x:0:2", "a:0:2,b:7:2") || matches("a:0:2,?x:0:2", "a:0:2,b:7:3") {
		t.Error("unknown units")
	}
}
