// Command linearizable proves of histories of real processes that each name is linearizable.
//
//	linearizable run -server versitygw -dir DIR -histories PROGRAM -place s3://BUCKET/PREFIX ...
//	linearizable check FOLDER
//
// `run` puts a proxy before a server, lets clients (the example `histories` of holdall-bucket) change
// the same names, kills and stops them and the server, and checks what they saw. `check` checks a
// folder of histories again.
package main

import (
	"flag"
	"fmt"
	"net/url"
	"os"
	"time"
)

func main() {
	if err := command(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func command() error {
	if len(os.Args) < 2 {
		return fmt.Errorf("linearizable run or check")
	}
	switch os.Args[1] {
	case "check":
		if len(os.Args) != 3 {
			return fmt.Errorf("linearizable check FOLDER")
		}
		calls, err := readAll(os.Args[2])
		if err != nil {
			return err
		}
		fmt.Printf("%d calls:\n%s\n%s\n", len(calls), counted(calls), texts(calls))
		u := kept(calls)
		fmt.Println(u.String())
		return conclude(calls, os.Args[2])
	case "run":
		s, err := readSettings(os.Args[2:])
		if err != nil {
			return err
		}
		return drive(s)
	}
	return fmt.Errorf("linearizable run or check, not %s", os.Args[1])
}

func readSettings(arguments []string) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("run", flag.ExitOnError)
	flags.StringVar(&s.server, "server", "versitygw", "versitygw, minio or ceph")
	flags.StringVar(&s.folder, "dir", "", "the folder of its script")
	flags.StringVar(&s.out, "out", "histories", "where histories come")
	flags.StringVar(&s.histories, "histories", "", "the client")
	flags.StringVar(&s.place, "place", "s3://test/linearizable", "the store")
	flags.IntVar(&s.seconds, "seconds", 60, "how long")
	flags.Int64Var(&s.seed, "seed", 1, "the seed; odd ones make small trees")
	flags.IntVar(&s.clients, "clients", 16, "processes")
	flags.IntVar(&s.tasks, "tasks", 3, "tasks of each")
	flags.IntVar(&s.names, "names", 20, "names")
	flags.IntVar(&s.grace, "grace", 12, "grace in seconds, above what the proxy and the server keep a request")
	flags.IntVar(&s.epoch, "epoch", 0, "seconds after which other names follow; 0 for never")
	flags.DurationVar(&s.longest, "longest", 4*time.Second, "longest delay of the proxy")
	flags.IntVar(&s.least, "least", 10, "cycles that must delete something, and objects compacted, in ten minutes")
	flags.BoolVar(&s.chaos, "chaos", true, "kill and stop")
	if err := flags.Parse(arguments); err != nil {
		return s, err
	}
	upstream, err := url.Parse(os.Getenv("AWS_ENDPOINT_URL"))
	if err != nil || upstream.Host == "" {
		return s, fmt.Errorf("AWS_ENDPOINT_URL names no server")
	}
	s.upstream = upstream.Host
	return s, nil
}
