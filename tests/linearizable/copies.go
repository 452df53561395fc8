package main

import (
	"fmt"
	"sort"
	"strings"

	"github.com/anishathalye/porcupine"
)

// What a look at copies found: each must have a content that a source had while it was made.
type copies struct {
	right, open int
	wrong       []string
}

// A content of a name, in the order that was found: from the call of the change that made it to the
// answer of the one that replaced it, which bound when it was there.
type spell struct {
	from, to int64
	exists   bool
	content  string
}

// spells are the states of a name, in order; the last content that was learned of each.
func spells(order []porcupine.Operation) []spell {
	out := []spell{{from: 0, to: never}}
	s := model.Init().(state)
	for _, operation := range order {
		in := operation.Input.(input)
		_, after := step(s, in, operation.Output)
		next := after.(state)
		changes := in.kind != read && in.kind != list
		if changes && next != s {
			out[len(out)-1].to = operation.Return
			out = append(out, spell{from: operation.Call, to: never})
		}
		last := &out[len(out)-1]
		last.exists, last.content = next.exists, next.content
		s = next
	}
	return out
}

// crossCheck looks where what was copied came from.
func crossCheck(orders map[string][]porcupine.Operation) copies {
	var found copies
	all := map[string][]spell{}
	for name, order := range orders {
		all[name] = spells(order)
	}
	var names []string
	for name := range orders {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		s, ranges := model.Init().(state), map[string]*call{}
		for at, operation := range orders[name] {
			in, out := operation.Input.(input), operation.Output.(output)
			_, after := step(s, in, out)
			if in.kind == read && in.to < 0 && out.hasContent && s.content != unknown {
				found.parts(all, ranges, parse(s.content), parse(out.content))
			}
			s = after.(state)
			for _, c := range in.cuts {
				if strings.HasPrefix(c.put, unknown) {
					ranges[parse(c.put)[0].marker] = in.call
				}
			}
			if in.kind == set && in.call.Op != "put" && out.answer == ok {
				found.one(all, in.call, s.learned(orders[name][at+1:]))
			}
		}
	}
	return found
}

// learned is the content of a state as the reads that follow it see it.
func (s state) learned(rest []porcupine.Operation) string {
	for _, operation := range rest {
		in := operation.Input.(input)
		if s.content != unknown || in.kind != read && in.kind != list {
			break
		}
		_, after := step(s, in, operation.Output)
		s = after.(state)
	}
	return s.content
}

// one looks for parts that give the content of a copy, each there between its call and its answer.
func (c *copies) one(all map[string][]spell, made *call, content string) {
	if content == unknown {
		c.open++
		return
	}
	parts := made.Parts
	if made.Op != "concat" {
		parts = []string{made.source()}
	}
	joined, open := []string{""}, false
	for _, part := range parts {
		var longer []string
		for _, s := range all[part] {
			if !s.exists || s.from > made.answer.At || s.to < made.At {
				continue
			}
			if s.content == unknown || hasUnknown(s.content) {
				open = true
				continue
			}
			for _, before := range joined {
				longer = append(longer, told(append(parse(before), parse(s.content)...)))
			}
		}
		if all[part] == nil {
			open = true
		}
		joined = longer
	}
	for _, candidate := range joined {
		if candidate == content {
			c.right++
			return
		}
	}
	if open {
		c.open++
		return
	}
	c.wrong = append(c.wrong, fmt.Sprintf("%s of %v to %s has %s, which it never was", made.Op, parts, made.Name, short(content)))
}

// parts looks at what a read shows where a range was copied to: the source must have had it.
func (c *copies) parts(all map[string][]spell, ranges map[string]*call, known, seen []run) {
	at := 0
	for _, r := range known {
		part := told(slice(seen, at, at+r.count))
		at += r.count
		made := ranges[r.marker]
		if made == nil {
			continue
		}
		from, ends, open := made.First+r.from, int64(never), all[made.source()] == nil
		if made.answer != nil && made.is() == "ok" {
			ends = made.answer.At
		}
		right := false
		for _, s := range all[made.source()] {
			if !s.exists || s.from > ends || s.to < made.At {
				continue
			}
			source := told(slice(parse(s.content), from, from+r.count))
			open = open || s.content == unknown || hasUnknown(source)
			right = right || s.content != unknown && source == part
		}
		switch {
		case right:
			c.right++
		case open:
			c.open++
		default:
			c.wrong = append(c.wrong, fmt.Sprintf("a range of %s in %s has %s, which it never was", made.source(), made.Name, short(part)))
		}
	}
}

func hasUnknown(content string) bool {
	for _, r := range parse(content) {
		if r.marker[0] == '?' {
			return true
		}
	}
	return false
}
