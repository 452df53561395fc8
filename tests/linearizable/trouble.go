package main

import (
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Clients that may be stopped for longer than the grace at once.
const mostStopped = 3

// Clients that collect or compact: the first ones.
const collectors = 4

// wait sleeps, or returns false if the run is over before.
func (r *runner) wait(d time.Duration) bool {
	select {
	case <-r.over:
		return false
	case <-time.After(d):
		return true
	}
}

func between(random *rand.Rand, from, to float64) time.Duration {
	return time.Duration((from + random.Float64()*(to-from)) * float64(time.Second))
}

// troubleClients kills and stops clients until the run is over.
func (r *runner) troubleClients(random *rand.Rand) {
	for r.wait(between(random, 0.5, 4)) {
		w := r.workers[random.Intn(len(r.workers))]
		what, long := random.Intn(100), between(random, float64(r.grace)+2, float64(r.grace)+10)
		short, pause := between(random, 0.1, 3), between(random, 0, 2)
		r.lock.Lock()
		stopped := 0
		for _, other := range r.workers {
			if other.stopped {
				stopped++
			}
		}
		// Who collects lives longer, so that a cycle ends now and then.
		free := !w.stopped && (w.slot >= collectors || what >= 50 || random.Intn(5) == 0)
		if free && what >= 50 {
			w.stopped = true
		}
		r.lock.Unlock()
		switch {
		case !free:
		case what < 50:
			r.count("clients killed")
			_ = w.process.Kill()
			if r.wait(pause) {
				r.lock.Lock()
				err := r.start(w)
				r.lock.Unlock()
				if err != nil {
					fmt.Println("starting a client:", err)
				}
			}
		case what < 65 || stopped >= mostStopped:
			go r.stop(w, short, "clients stopped for less than the grace")
		default:
			go r.stop(w, long, "clients stopped for longer than the grace")
		}
	}
}

func (r *runner) stop(w *worker, d time.Duration, what string) {
	r.lock.Lock()
	process := w.process
	r.lock.Unlock()
	_ = process.Signal(syscall.SIGSTOP)
	if r.wait(d) {
		r.count(what)
	}
	_ = process.Signal(syscall.SIGCONT)
	r.lock.Lock()
	w.stopped = false
	r.lock.Unlock()
}

// troubleServers kills the server's processes, and starts them again, until the run is over.
func (r *runner) troubleServers(random *rand.Rand) {
	round := 0
	for r.wait(between(random, 20, 40)) {
		round++
		name, away := r.server, between(random, 0, 3)
		if r.server == "ceph" {
			switch round % 4 {
			case 1:
				name, away = "osd.0", between(random, 5, 15)
			case 2:
				name = "radosgw"
			case 3:
				r.replace("2")
				continue
			case 0:
				r.pause("osd.1", between(random, 1, 6))
				continue
			}
		}
		r.restart(name, away)
	}
}

// weather makes the proxy mild and harsh in turn, until the run is over: cycles of collecting consist of
// many requests one after another, and few of them end while all is harsh.
func (r *runner) weather(p *proxy, random *rand.Rand) {
	for r.wait(between(random, 8, 16)) {
		p.mild.Store(true)
		r.wait(between(random, 20, 40))
		p.mild.Store(false)
	}
}

func (r *runner) pidFile(name string) string {
	return filepath.Join(r.folder, "run", name+".pid")
}

func (r *runner) pid(name string) (int, error) {
	text, err := os.ReadFile(r.pidFile(name))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

func (r *runner) pause(name string, d time.Duration) {
	pid, err := r.pid(name)
	if err != nil {
		fmt.Println(err)
		return
	}
	r.count(name + " stopped")
	_ = syscall.Kill(pid, syscall.SIGSTOP)
	r.wait(d)
	_ = syscall.Kill(pid, syscall.SIGCONT)
}

// restart kills a process of the server and starts the same again.
func (r *runner) restart(name string, away time.Duration) {
	pid, err := r.pid(name)
	if err != nil {
		fmt.Println(err)
		return
	}
	process := fmt.Sprintf("/proc/%d/", pid)
	line, first := os.ReadFile(process + "cmdline")
	environment, second := os.ReadFile(process + "environ")
	folder, third := os.Readlink(process + "cwd")
	if first != nil || second != nil || third != nil {
		fmt.Println("there is no process of", name)
		return
	}
	r.count(name + " killed")
	_ = syscall.Kill(pid, syscall.SIGKILL)
	for gone := false; !gone; time.Sleep(20 * time.Millisecond) {
		status, err := os.ReadFile(process + "stat")
		gone = err != nil || strings.Contains(string(status), ") Z ")
	}
	r.wait(away)
	words := strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")
	command := exec.Command(words[0], words[1:]...)
	command.Env = strings.Split(strings.TrimRight(string(environment), "\x00"), "\x00")
	command.Dir = folder
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if log, err := os.OpenFile(filepath.Join(r.folder, "run", name+".log"), os.O_APPEND|os.O_WRONLY, 0); err == nil {
		defer log.Close()
		command.Stdout, command.Stderr = log, log
	}
	if err := command.Start(); err != nil {
		fmt.Println("starting a server:", err)
		return
	}
	go func() { _ = command.Wait() }()
	_ = os.WriteFile(r.pidFile(name), []byte(fmt.Sprintln(command.Process.Pid)), 0o644)
}

// replace takes an OSD of Ceph away with its data, and adds an empty one.
func (r *runner) replace(osd string) {
	r.count("osd." + osd + " lost and replaced")
	script := filepath.Join(os.Getenv("SERVERS"), "ceph.sh")
	out, err := exec.Command(script, "replace", r.folder, osd).CombinedOutput()
	if err != nil {
		fmt.Printf("replacing an OSD: %v: %s\n", err, out)
	}
}
