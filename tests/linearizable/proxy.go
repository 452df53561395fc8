package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"net/url"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// How much rarer and shorter faults are in mild times.
const mildly = 8

// A proxy before a server, which does by seed what networks and servers do to requests. It changes no
// byte of them, so that their signatures stay valid.
type proxy struct {
	upstream string
	seed     int64
	// The longest that it keeps anything.
	longest time.Duration
	// Whether it does anything to requests.
	faults atomic.Bool
	// Whether it does so seldom, and keeps nothing for long.
	mild     atomic.Bool
	requests atomic.Int64
	client   *http.Client
	lock     sync.Mutex
	counts   map[string]int
}

func newProxy(upstream string, seed int64, longest time.Duration) *proxy {
	transport := &http.Transport{
		DisableCompression: true, MaxIdleConnsPerHost: 64, ResponseHeaderTimeout: 90 * time.Second,
	}
	client := &http.Client{Transport: transport}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &proxy{upstream: upstream, seed: seed, longest: longest, client: client, counts: map[string]int{}}
}

func (p *proxy) count(what string) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.counts[what]++
}

func (p *proxy) told() string {
	p.lock.Lock()
	defer p.lock.Unlock()
	var all []string
	sum := 0
	for what, count := range p.counts {
		all = append(all, fmt.Sprintf("%s %d", what, count))
		if what != "server unreachable" {
			sum += count
		}
	}
	sort.Strings(all)
	return fmt.Sprintf("%d requests, %d faults: %s", p.requests.Load(), sum, strings.Join(all, ", "))
}

// What a server answered.
type answered struct {
	status int
	header http.Header
	body   []byte
}

// A body that pauses in its middle.
type slow struct {
	rest  []byte
	half  int
	pause time.Duration
}

func (s *slow) Read(into []byte) (int, error) {
	if len(s.rest) == 0 {
		return 0, io.EOF
	}
	if len(s.rest) <= s.half && s.pause > 0 {
		time.Sleep(s.pause)
		s.pause = 0
	}
	most := len(s.rest)
	if s.pause > 0 {
		most -= s.half
	}
	n := copy(into, s.rest[:most])
	s.rest = s.rest[n:]
	return n, nil
}

// send sends a request with the client's own bytes and waits for the whole answer.
func (p *proxy) send(r *http.Request, body []byte, pause time.Duration) (*answered, error) {
	address := url.URL{
		Scheme: "http", Host: p.upstream, Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery,
	}
	var content io.Reader = bytes.NewReader(body)
	if len(body) == 0 {
		content = http.NoBody
	} else if pause > 0 {
		content = &slow{rest: body, half: len(body) / 2, pause: pause}
	}
	request, err := http.NewRequestWithContext(context.Background(), r.Method, address.String(), content)
	if err != nil {
		return nil, err
	}
	request.Header = r.Header.Clone()
	request.Host = r.Host
	request.ContentLength = int64(len(body))
	response, err := p.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	all, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	return &answered{response.StatusCode, response.Header, all}, nil
}

// hangUp ends the client's connection without an answer.
func hangUp(w http.ResponseWriter) {
	if connection, _, err := http.NewResponseController(w).Hijack(); err == nil {
		connection.Close()
	}
}

func refuse(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>of the proxy</Message></Error>",
		map[int]string{500: "InternalError", 503: "SlowDown"}[status])
}

func give(w http.ResponseWriter, r *http.Request, a *answered) {
	for key, values := range a.header {
		w.Header()[key] = values
	}
	if r.Method != http.MethodHead && a.status != http.StatusNotModified && a.status != http.StatusNoContent {
		w.Header().Set("Content-Length", fmt.Sprint(len(a.body)))
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body)
}

// cut gives the head of an answer and half of its body.
func cutShort(w http.ResponseWriter, a *answered) {
	connection, buffer, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer connection.Close()
	fmt.Fprintf(buffer, "HTTP/1.1 %d %s\r\n", a.status, http.StatusText(a.status))
	a.header.Set("Content-Length", fmt.Sprint(len(a.body)))
	_ = a.header.Write(buffer)
	fmt.Fprintf(buffer, "\r\n%s", a.body[:len(a.body)/2])
	_ = buffer.Flush()
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	number := p.requests.Add(1)
	body, err := io.ReadAll(r.Body)
	if err != nil {
		hangUp(w)
		return
	}
	if !p.faults.Load() {
		p.pass(w, r, body)
		return
	}
	chance := rand.New(rand.NewSource(p.seed<<32 ^ number))
	longest := p.longest
	if p.mild.Load() {
		if chance.Intn(mildly) != 0 {
			p.pass(w, r, body)
			return
		}
		longest /= mildly
	}
	long := func() time.Duration {
		// Mostly short, at times as long as may be.
		part := chance.Float64()
		return time.Duration(part * part * part * float64(longest))
	}
	status := []int{500, 503}[chance.Intn(2)]
	if chance.Intn(100) < 6 {
		p.count("delayed before")
		time.Sleep(long())
	}
	writes := r.Method == http.MethodPut || r.Method == http.MethodDelete
	fate := chance.Intn(1000)
	switch {
	case fate < 10:
		p.count("lost before effect")
		hangUp(w)
	case fate < 20:
		p.count("refused before effect")
		refuse(w, status)
	case fate < 45 && writes:
		p.count("lost after effect")
		_, _ = p.send(r, body, 0)
		hangUp(w)
	case fate < 70 && writes:
		p.count("500 or 503 after effect")
		_, _ = p.send(r, body, 0)
		refuse(w, status)
	case fate < 95 && writes:
		p.count("effect after 500 or hang-up")
		wait := long()
		go func() {
			time.Sleep(wait)
			_, _ = p.send(r, body, 0)
		}()
		if chance.Intn(2) == 0 {
			hangUp(w)
		} else {
			refuse(w, status)
		}
	case fate < 120 && writes:
		p.count("sent twice at once")
		second := make(chan struct{})
		go func() {
			_, _ = p.send(r, body, 0)
			close(second)
		}()
		p.pass(w, r, body)
		<-second
	case fate < 150 && writes:
		p.count("sent again, the second answered")
		_, _ = p.send(r, body, 0)
		p.pass(w, r, body)
	case fate < 175 && writes:
		p.count("sent again later")
		wait := long()
		p.pass(w, r, body)
		go func() {
			time.Sleep(wait)
			_, _ = p.send(r, body, 0)
		}()
	case fate < 200 && writes && len(body) > 1:
		p.count("body in two halves")
		p.answer(w, r, body, long(), 0)
	case fate < 60 && r.Method == http.MethodGet:
		p.count("answer cut short")
		if a, err := p.send(r, body, 0); err != nil || len(a.body) < 2 {
			hangUp(w)
		} else {
			cutShort(w, a)
		}
	case fate < 230:
		p.count("answer delayed")
		p.answer(w, r, body, 0, long())
	default:
		p.pass(w, r, body)
	}
}

func (p *proxy) pass(w http.ResponseWriter, r *http.Request, body []byte) {
	p.answer(w, r, body, 0, 0)
}

func (p *proxy) answer(w http.ResponseWriter, r *http.Request, body []byte, pause, late time.Duration) {
	a, err := p.send(r, body, pause)
	if err != nil {
		p.count("server unreachable")
		hangUp(w)
		return
	}
	time.Sleep(late)
	give(w, r, a)
}
