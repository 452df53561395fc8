package main

import (
	"fmt"
	"strconv"
	"strings"
)

// A run of consecutive units of one marker: those of the change that wrote them. The marker "0" stands
// for zeros, whose numbers are all 0; one that begins with "?" for units that are not known.
type run struct {
	marker string
	from   int
	count  int
}

// unknown is a content of which nothing is known, not even its length.
const unknown = "?"

func parse(content string) []run {
	if content == "" {
		return nil
	}
	var out []run
	for _, part := range strings.Split(content, ",") {
		fields := strings.Split(part, ":")
		if len(fields) != 3 {
			return []run{{"bad " + content, 0, 1}}
		}
		from, first := strconv.Atoi(fields[1])
		count, second := strconv.Atoi(fields[2])
		if first != nil || second != nil {
			return []run{{"bad " + content, 0, 1}}
		}
		out = append(out, run{fields[0], from, count})
	}
	return out
}

func (r run) skip(units int) run {
	if r.marker != "0" {
		r.from += units
	}
	r.count -= units
	return r
}

// told is the one form of some runs: neighbours that belong together are one.
func told(runs []run) string {
	var whole []run
	for _, next := range runs {
		if next.count == 0 {
			continue
		}
		if n := len(whole); n > 0 {
			last := &whole[n-1]
			if last.marker == next.marker && (last.marker == "0" || last.from+last.count == next.from) {
				last.count += next.count
				continue
			}
		}
		whole = append(whole, next)
	}
	parts := make([]string, len(whole))
	for i, r := range whole {
		parts[i] = fmt.Sprintf("%s:%d:%d", r.marker, r.from, r.count)
	}
	return strings.Join(parts, ",")
}

func units(runs []run) int {
	all := 0
	for _, r := range runs {
		all += r.count
	}
	return all
}

// slice gives the units from..to, cut to what is there.
func slice(runs []run, from, to int) []run {
	var out []run
	at := 0
	for _, r := range runs {
		start, end := max(from, at), min(to, at+r.count)
		if start < end {
			part := r.skip(start - at)
			part.count = end - start
			out = append(out, part)
		}
		at += r.count
	}
	return out
}

// splice replaces `cut` units from `at` on.
func splice(runs []run, at, cut int, put []run) []run {
	out := append([]run{}, slice(runs, 0, at)...)
	out = append(out, put...)
	return append(out, slice(runs, at+cut, units(runs))...)
}

// matches tells whether what was read can be what a state holds, of which some units are not known.
func matches(state, read string) bool {
	if state == unknown || state == read {
		return true
	}
	if !strings.Contains(state, unknown) {
		return false
	}
	known, seen := parse(state), parse(read)
	if units(known) != units(seen) {
		return false
	}
	at := 0
	for _, r := range known {
		if !strings.HasPrefix(r.marker, unknown) && told(slice(seen, at, at+r.count)) != told([]run{r}) {
			return false
		}
		at += r.count
	}
	return true
}
