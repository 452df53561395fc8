package main

import (
	"fmt"
	"math/rand"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"syscall"
	"time"
)

// What a run needs to know.
type settings struct {
	server    string
	folder    string
	out       string
	histories string
	place     string
	upstream  string
	seconds   int
	seed      int64
	clients   int
	tasks     int
	names     int
	grace     int
	epoch     int
	longest   time.Duration
	// Cycles that must delete something, and objects that must be written again, in ten minutes.
	least int
	// Whether clients and servers are killed and stopped.
	chaos bool
}

// A run under way.
type runner struct {
	settings
	endpoint string
	began    int64
	lock     sync.Mutex
	workers  []*worker
	counts   map[string]int
	over     chan struct{}
	busy     sync.WaitGroup
}

// A client: one process after another.
type worker struct {
	slot       int
	generation int
	process    *os.Process
	stopped    bool
}

func (r *runner) count(what string) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.counts[what]++
}

func (r *runner) told() string {
	r.lock.Lock()
	defer r.lock.Unlock()
	var all []string
	for what, count := range r.counts {
		all = append(all, fmt.Sprintf("%s %d", what, count))
	}
	sort.Strings(all)
	return strings.Join(all, ", ")
}

func (r *runner) client(what string, more ...string) *exec.Cmd {
	arguments := append([]string{what, "place=" + r.place, fmt.Sprintf("grace=%d", r.grace)}, more...)
	command := exec.Command(r.histories, arguments...)
	command.Env = append(os.Environ(), "AWS_ENDPOINT_URL="+r.endpoint)
	return command
}

// worker is a client that leaves a history.
func (r *runner) worker(what string, slot, generation int) *exec.Cmd {
	_, blobs, parts := r.sizes()
	history := filepath.Join(r.out, fmt.Sprintf("%02d-%03d.jsonl", slot, generation))
	return r.client(what, "history="+history, fmt.Sprintf("slot=%d", slot),
		fmt.Sprintf("generation=%d", generation), fmt.Sprintf("seed=%d", r.seed),
		fmt.Sprintf("tasks=%d", r.tasks), fmt.Sprintf("names=%d", r.names),
		fmt.Sprintf("epoch=%d", r.epoch), fmt.Sprintf("began=%d", r.began),
		fmt.Sprintf("blobs=%d", blobs), fmt.Sprintf("parts=%d", parts))
}

// sizes are those of a store whose trees are small, for odd seeds, or the usual ones.
func (r *runner) sizes() (small, blobs, parts int) {
	if r.seed%2 == 1 {
		return 1, 4_000, 24_000
	}
	return 0, 19_000, 540_000
}

// start starts the next process of a client.
func (r *runner) start(w *worker) error {
	w.generation++
	w.stopped = false
	command := r.worker("work", w.slot, w.generation)
	log, err := os.OpenFile(filepath.Join(r.out, "clients.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		return err
	}
	w.process = command.Process
	r.busy.Add(1)
	go func() {
		defer r.busy.Done()
		ended := command.Wait()
		status, _ := command.ProcessState.Sys().(syscall.WaitStatus)
		if !status.Signaled() {
			r.count(fmt.Sprintf("clients that ended by themselves (%v)", ended))
		}
	}()
	return nil
}

// monotonic is the clock that the histories use.
func monotonic() int64 {
	var now struct{ sec, nsec int64 }
	clock(&now.sec, &now.nsec)
	return now.sec*1_000_000_000 + now.nsec
}

func drive(s settings) error {
	r := &runner{settings: s, counts: map[string]int{}, over: make(chan struct{}), began: monotonic()}
	if err := os.MkdirAll(s.out, 0o755); err != nil {
		return err
	}
	p := newProxy(s.upstream, s.seed, s.longest)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() { _ = http.Serve(listener, p) }()
	r.endpoint = "http://" + listener.Addr().String()
	small, _, _ := r.sizes()
	if out, err := r.client("create", fmt.Sprintf("small=%d", small)).CombinedOutput(); err != nil {
		return fmt.Errorf("creating: %w: %s", err, out)
	} else {
		fmt.Printf("%s seed %d, %d s, %d clients of %d tasks, %d names: %s", s.server, s.seed, s.seconds, s.clients, s.tasks, s.names, out)
	}
	p.faults.Store(true)
	for slot := 0; slot < s.clients; slot++ {
		w := &worker{slot: slot}
		r.workers = append(r.workers, w)
		if err := r.start(w); err != nil {
			return err
		}
	}
	var chaos sync.WaitGroup
	if s.chaos {
		chaos.Add(3)
		go func() { defer chaos.Done(); r.weather(p, rand.New(rand.NewSource(s.seed+2))) }()
		go func() { defer chaos.Done(); r.troubleClients(rand.New(rand.NewSource(s.seed))) }()
		go func() { defer chaos.Done(); r.troubleServers(rand.New(rand.NewSource(s.seed + 1))) }()
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	select {
	case <-time.After(time.Duration(s.seconds) * time.Second):
	case <-ended:
		fmt.Println("ended before its time")
	}
	signal.Stop(ended)
	close(r.over)
	chaos.Wait()
	r.lock.Lock()
	for _, w := range r.workers {
		_ = w.process.Kill()
	}
	r.lock.Unlock()
	r.busy.Wait()
	fmt.Printf("proxy: %s\nclients and servers: %s\n", p.told(), r.told())
	p.faults.Store(false)
	return r.finish()
}

func (r *runner) finish() error {
	// What is there when all is over ends the history.
	if out, err := r.worker("last", r.clients, 1).CombinedOutput(); err != nil {
		return fmt.Errorf("reading all: %w: %s", err, out)
	}
	calls, err := readAll(r.out)
	if err != nil {
		return err
	}
	fmt.Printf("%d calls:\n%s\n%s\n", len(calls), counted(calls), texts(calls))
	u := kept(calls)
	fmt.Println(u.String())
	ended := make(chan error, 1)
	go func() {
		out, err := r.client("end").CombinedOutput()
		fmt.Printf("%s", out)
		ended <- err
	}()
	err = conclude(calls, r.out)
	if bad := <-ended; bad != nil {
		fmt.Println("the store is not as it must be at the end:", bad)
		err = fmt.Errorf("failed")
	}
	if few := u.enough(r.least, r.seconds); few != nil {
		fmt.Println("NOT MET:", few)
		err = fmt.Errorf("failed")
	}
	return err
}

// conclude checks and tells.
func conclude(calls []*call, folder string) error {
	started := time.Now()
	v := check(calls, folder, 2*time.Minute)
	fmt.Printf("%d names, %d operations, %d of them open: checked in %.1f s\n", v.names, v.operations, v.open, time.Since(started).Seconds())
	fmt.Printf("%d copied ranges are of their sources, of %d that is not known\n", v.copies.right, v.copies.open)
	for _, wrong := range v.wrong {
		fmt.Println("WRONG:", wrong)
	}
	for _, name := range v.undecided {
		fmt.Println("NOT DECIDED:", name)
	}
	if !v.ok() {
		return fmt.Errorf("failed")
	}
	fmt.Println("linearizable")
	return nil
}
