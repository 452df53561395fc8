package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/anishathalye/porcupine"
)

// An unanswered call may take effect until the end of time.
const never = math.MaxInt64

// A history of one name, under way.
type expanded struct {
	byName map[string][]porcupine.Operation
	// What versions hold, as whole reads saw it.
	contents map[string]string
	// What no history may have, whatever the order.
	wrong []string
	names map[string]bool
}

// expand takes calls apart by name. What a call does to several names is an operation on each: the
// store promises no more.
func expand(calls []*call) *expanded {
	e := &expanded{
		byName: map[string][]porcupine.Operation{}, contents: map[string]string{},
		names: map[string]bool{},
	}
	for _, c := range calls {
		e.learn(c)
		for _, name := range append([]string{c.Name, c.source()}, c.Parts...) {
			if name != "" {
				e.names[name] = true
			}
		}
	}
	for _, c := range calls {
		e.judge(c)
		e.one(c)
	}
	return e
}

// learn notes what a version holds: it is the same for all who read it, at whatever time.
func (e *expanded) learn(c *call) {
	if c.answer == nil || c.answer.Version == "" || c.answer.Content == nil || c.is() != "ok" {
		return
	}
	key := c.Name + " " + c.answer.Version
	if before, there := e.contents[key]; there && before != *c.answer.Content {
		e.wrong = append(e.wrong, fmt.Sprintf("%s holds %s and %s", key, before, *c.answer.Content))
	}
	e.contents[key] = *c.answer.Content
}

// judge notes what no answer may say.
func (e *expanded) judge(c *call) {
	is := c.is()
	wrong := is == "damaged" || is == "strange"
	if is == "ok" && c.answer.Size != nil && *c.answer.Size%16 != 0 {
		wrong = true
	}
	if c.answer != nil && c.answer.At < c.At {
		wrong = true
	}
	if wrong {
		e.wrong = append(e.wrong, fmt.Sprintf("%s %s: %s: %s", c.Op, c.Name, is, c.answer.Text))
	}
}

func (e *expanded) add(c *call, name string, in input, out output) {
	in.name, in.call = name, c
	if in.only == (version{}) {
		in.only = any
	}
	if in.kind != read {
		in.to = -1
	}
	ends := int64(never)
	if out.answer != pending {
		ends = c.answer.At
	}
	e.byName[name] = append(e.byName[name], porcupine.Operation{
		ClientId: c.client, Input: in, Call: c.At, Output: out, Return: ends,
	})
}

// outcome is the answer of a change of one name; false if it had no effect and tells nothing.
func outcome(c *call) (output, bool) {
	out := output{version: any, size: -1}
	switch c.is() {
	case "ok":
		if c.answer.Version != "" {
			out.version = parseVersion(c.answer.Version)
		}
		if c.answer.Size != nil {
			out.size = *c.answer.Size / 16
		}
		return out, true
	case "killed", "unknown":
		out.answer = pending
	case "exists":
		out.answer = exists
	case "version":
		out.answer = otherVersion
	case "range":
		out.answer = outOfRange
	case "absent":
		out.answer = none
	default:
		return out, false
	}
	return out, true
}

func only(c *call) version {
	if c.Only == "" {
		return any
	}
	return parseVersion(c.Only)
}

func (e *expanded) one(c *call) {
	switch c.Op {
	case "get", "hold", "range", "info":
		e.read(c)
	case "put":
		if out, tells := outcome(c); tells {
			e.add(c, c.Name, input{kind: set, content: c.Content, only: only(c), create: c.Create}, out)
		}
	case "edit":
		if out, tells := outcome(c); tells {
			e.add(c, c.Name, input{kind: edit, cuts: cutsOf(c), only: only(c)}, out)
		}
	case "attributes":
		if out, tells := outcome(c); tells {
			e.add(c, c.Name, input{kind: edit}, out)
		}
	case "remove":
		e.remove(c)
	case "copy", "rename", "concat":
		e.copy(c)
	case "copy range":
		e.copyRange(c)
	case "list":
		e.list(c)
	}
}

func cutsOf(c *call) []cut {
	var cuts []cut
	for _, s := range c.Splices {
		next := cut{cut: s.Cut, put: s.Put, end: s.At == nil}
		if s.At != nil {
			next.at = *s.At
		}
		cuts = append(cuts, next)
	}
	return cuts
}

func (e *expanded) read(c *call) {
	in := input{kind: read, to: -1}
	if c.Op == "range" {
		in.from, in.to = c.first(), c.To
	}
	out := output{version: any, size: -1}
	switch c.is() {
	case "none":
		out.answer = none
	case "ok":
		out.content, out.hasContent = "", c.answer.Content != nil
		if out.hasContent {
			out.content = *c.answer.Content
		}
		fallthrough
	case "old":
		// It was there when it was opened, though its bytes are gone since.
		if c.answer.Version == "" && c.is() == "old" {
			return
		}
		if c.answer.Version != "" {
			out.version = parseVersion(c.answer.Version)
		}
		if c.answer.Size != nil {
			out.size = *c.answer.Size / 16
		}
	default:
		return
	}
	e.add(c, c.Name, in, out)
}

func (e *expanded) remove(c *call) {
	out, tells := outcome(c)
	if !tells {
		return
	}
	if out.answer == ok && !c.answer.Was {
		out.answer = none
	}
	e.add(c, c.Name, input{kind: remove, only: only(c)}, out)
}

// there is the operation that finds an object.
func (e *expanded) there(c *call, name string, is answer) {
	e.add(c, name, input{kind: list}, output{answer: is, version: any, size: -1})
}

// was is the operation that finds a source, part `at` of so many, as what was copied says.
func (e *expanded) was(c *call, name string, at, parts int, content string) {
	in, out := input{kind: read, to: -1}, output{version: any, size: -1, content: content, hasContent: true}
	switch {
	case content == unknown:
		in.kind, out.hasContent = list, false
	case parts > 1 && at == 0:
		in.kind = prefix
	case parts > 1:
		in.kind = suffix
	}
	e.add(c, name, in, out)
}

// missing is the name that an answer says is not there.
func missing(c *call) string {
	_, quoted, _ := strings.Cut(c.answer.What, "\"")
	name, _, _ := strings.Cut(quoted, "\"")
	return name
}

func (e *expanded) copy(c *call) {
	sources := c.Parts
	if c.Op != "concat" {
		sources = []string{c.source()}
	}
	target := input{kind: set, content: unknown, create: c.Create}
	out := output{version: any, size: -1}
	switch c.is() {
	case "ok":
		out.version = parseVersion(c.answer.Version)
		if content, known := e.contents[c.Name+" "+c.answer.Version]; known {
			target.content = content
		}
		e.add(c, c.Name, target, out)
		for at, source := range sources {
			if c.Op == "rename" {
				e.add(c, source, input{kind: removeSource, content: target.content}, output{version: any, size: -1})
			} else {
				e.was(c, source, at, len(sources), target.content)
			}
		}
	case "both":
		// The copy was made; the source was changed before it could be removed.
		e.add(c, c.Name, target, out)
		e.there(c, sources[0], ok)
	case "exists":
		e.there(c, c.Name, exists)
	case "absent":
		if name := missing(c); e.names[name] {
			e.there(c, name, none)
		}
	case "killed", "unknown", "failed":
		out.answer = pending
		// A rename that fails may have made the copy; a copy or a joint has not.
		if c.Op == "rename" || c.is() != "failed" {
			e.add(c, c.Name, target, out)
		}
		if c.Op == "rename" && c.is() != "failed" {
			e.add(c, sources[0], input{kind: removeSource, content: unknown}, out)
		}
	}
}

func (e *expanded) copyRange(c *call) {
	put := fmt.Sprintf("?%d.%d:0:%d", c.client, c.Number, c.Count)
	in := input{kind: edit, cuts: []cut{{at: c.Insert, put: put}}}
	out, tells := outcome(c)
	switch {
	case !tells || out.answer == outOfRange:
		// Of which of the two is not told.
	case out.answer == none:
		if name := missing(c); e.names[name] {
			e.there(c, name, none)
		}
	case out.answer == pending:
		e.add(c, c.Name, in, out)
	case c.Count == 0:
		e.there(c, c.Name, ok)
	default:
		e.add(c, c.Name, in, out)
		e.there(c, c.source(), ok)
	}
}

func (e *expanded) list(c *call) {
	if c.is() != "ok" {
		return
	}
	listed := map[string]bool{}
	for _, name := range c.answer.Names {
		listed[name] = true
		if !e.names[name] {
			e.wrong = append(e.wrong, "a listing shows "+name)
		}
	}
	for name := range e.names {
		if !strings.HasPrefix(name, c.Prefix) {
			continue
		}
		if listed[name] {
			e.there(c, name, ok)
		} else {
			e.there(c, name, none)
		}
	}
}
