package main

import (
	"strconv"
	"strings"

	"github.com/anishathalye/porcupine"
)

// A version as the store tells it: incarnation, count of changes, operation.
type version struct {
	incarnation string
	change      int64
	operation   string
}

// any is a version of which nothing is known.
var any = version{change: -1}

func parseVersion(text string) version {
	parts := strings.Split(text, "-")
	if len(parts) != 3 {
		return any
	}
	change, err := strconv.ParseInt(parts[1], 16, 64)
	if err != nil {
		return any
	}
	return version{parts[0], change, parts[2]}
}

// meets merges what is known of one version from two sides; false if they are of two.
func (v version) meets(other version) (version, bool) {
	if v.incarnation == "" {
		v.incarnation = other.incarnation
	}
	if v.change < 0 {
		v.change = other.change
	}
	if v.operation == "" {
		v.operation = other.operation
	}
	same := (other.incarnation == "" || other.incarnation == v.incarnation) &&
		(other.change < 0 || other.change == v.change) &&
		(other.operation == "" || other.operation == v.operation)
	return v, same
}

// A state of one name.
type state struct {
	exists  bool
	version version
	content string
	// The units of a content that is not known; negative if they are not known either.
	size int
}

// after is the state that a change leaves which has the version `v`, of which little may be known.
func (s state) after(v version, content string) (state, bool) {
	next := version{s.version.incarnation, -1, ""}
	if s.version.change >= 0 {
		next.change = s.version.change + 1
	}
	if !s.exists && (v.incarnation != next.incarnation || v == any) {
		// The record of what is gone may have been removed, and the name begun anew.
		next = any
	}
	merged, ok := next.meets(v)
	return state{true, merged, content, -1}, ok
}

// What is asked of one name.
type kind int

const (
	read kind = iota
	list
	// prefix and suffix read what a joint of several objects begins and ends with.
	prefix
	suffix
	set
	edit
	remove
	// removeSource is what a rename does to its source: it removes what was copied, or finds it gone.
	removeSource
)

type cut struct {
	at, cut int
	end     bool
	put     string
}

type input struct {
	kind kind
	name string
	// What a set puts, or a removed source must have had.
	content string
	cuts    []cut
	// The version that is asked for, if any is.
	only   version
	create bool
	// The part that is read; the whole if `to` is negative.
	from, to int
	// Which call it is part of, for people and for what is learned of copies.
	call *call
}

type answer int

const (
	ok answer = iota
	// none: there is no object.
	none
	// exists: there is one, where none was to be.
	exists
	// otherVersion: it has another version than asked for.
	otherVersion
	// outOfRange: a splice goes beyond the end.
	outOfRange
	// pending: nobody knows; it may happen at any time after the call, or never.
	pending
)

type output struct {
	answer answer
	// What is known of the version, after a change or as read.
	version version
	// The size in units; negative if it is not known.
	size int
	// What was read, if `hasContent`.
	content    string
	hasContent bool
}

func step(before, asked, answered interface{}) (bool, interface{}) {
	s, in, out := before.(state), asked.(input), answered.(output)
	if out.answer == pending {
		next, done := s.change(in, out)
		if !done {
			return true, s
		}
		return true, next
	}
	switch in.kind {
	case read, list, prefix, suffix:
		next, done := s.read(in, out)
		return done, next
	}
	switch out.answer {
	case ok:
		next, done := s.change(in, out)
		return done, next
	case none:
		return !s.exists, s
	case exists:
		return s.exists, s
	case otherVersion:
		_, same := s.version.meets(in.only)
		certain := s.version.change >= 0 && s.version.incarnation != ""
		return !s.exists || !same || !certain, s
	case outOfRange:
		if s.content == unknown {
			return s.exists, s
		}
		_, fits := applied(parse(s.content), in.cuts)
		return s.exists && !fits, s
	}
	return false, s
}

func (s state) read(in input, out output) (state, bool) {
	if out.answer == none {
		return s, !s.exists
	}
	if !s.exists {
		return s, false
	}
	merged, same := s.version.meets(out.version)
	if !same {
		return s, false
	}
	s.version = merged
	if out.size >= 0 && s.units() >= 0 && s.units() != out.size {
		return s, false
	}
	if !out.hasContent {
		return s, true
	}
	if in.kind == prefix || in.kind == suffix {
		return s, s.partOf(in.kind, parse(out.content))
	}
	if in.to < 0 {
		if !matches(s.content, out.content) || s.size >= 0 && s.size != units(parse(out.content)) {
			return s, false
		}
		s.content, s.size = out.content, -1
		return s, true
	}
	if s.content == unknown {
		return s, true
	}
	part := told(slice(parse(s.content), in.from, in.to))
	return s, matches(part, out.content)
}

// units is the size of a state; negative if it is not known.
func (s state) units() int {
	if s.content == unknown {
		return s.size
	}
	return units(parse(s.content))
}

// partOf tells whether a joint can begin or end with the state.
func (s state) partOf(where kind, joint []run) bool {
	size, all := s.units(), units(joint)
	if size < 0 {
		return true
	}
	if size > all {
		return false
	}
	part := slice(joint, 0, size)
	if where == suffix {
		part = slice(joint, all-size, all)
	}
	return matches(s.content, told(part))
}

// grown is the size that splices leave; false if one goes beyond the end.
func grown(size int, cuts []cut) (int, bool) {
	for _, c := range cuts {
		if !c.end && c.at+c.cut > size {
			return 0, false
		}
		size += units(parse(c.put)) - c.cut
	}
	return size, true
}

// applied gives what splices make of a content; false if one goes beyond its end.
func applied(runs []run, cuts []cut) ([]run, bool) {
	for _, c := range cuts {
		size := units(runs)
		if c.end {
			c.at = size
		}
		if c.at+c.cut > size {
			return nil, false
		}
		runs = splice(runs, c.at, c.cut, parse(c.put))
	}
	return runs, true
}

// change is the state after a change that succeeds; false if it cannot.
func (s state) change(in input, out output) (state, bool) {
	if in.only != any {
		merged, same := s.version.meets(in.only)
		if !s.exists || !same {
			return s, false
		}
		s.version = merged
	}
	switch in.kind {
	case set:
		if in.create && s.exists {
			return s, false
		}
		return s.after(out.version, in.content)
	case edit:
		if !s.exists {
			return s, false
		}
		if s.content == unknown {
			size, fits := grown(s.size, in.cuts)
			if s.size >= 0 && (!fits || out.size >= 0 && size != out.size) {
				return s, false
			}
			next, done := s.after(out.version, unknown)
			next.size = out.size
			if s.size >= 0 {
				next.size = size
			}
			return next, done
		}
		runs, fits := applied(parse(s.content), in.cuts)
		if !fits || out.size >= 0 && units(runs) != out.size {
			return s, false
		}
		return s.after(out.version, told(runs))
	case removeSource:
		if !s.exists {
			return s, true
		}
		if in.content != unknown && s.content != unknown && !matches(s.content, in.content) {
			return s, false
		}
	case remove:
		if !s.exists {
			return s, false
		}
	}
	gone, done := s.after(any, "")
	gone.exists = false
	return gone, done
}

// model is that of one name: histories are taken apart by name before.
var model = porcupine.Model{
	Init:  func() interface{} { return state{version: any, size: -1} },
	Step:  step,
	Equal: func(a, b interface{}) bool { return a == b },
	DescribeOperation: func(in, out interface{}) string {
		return describe(in.(input), out.(output))
	},
	DescribeState: func(s interface{}) string { return s.(state).String() },
}
