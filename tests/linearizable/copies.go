package main

import (
	"fmt"
	"sort"
	"strings"

	"github.com/anishathalye/porcupine"
)

// What a look at copied ranges found: each must be what its source had while it was copied.
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
	// Whether the answer of the change told its version: else another order may be right too.
	sure bool
}

// spells are the states of a name, in order; the last content that was learned of each.
func spells(order []porcupine.Operation) []spell {
	out := []spell{{from: 0, to: never, sure: true}}
	s := model.Init().(state)
	for _, operation := range order {
		in, answered := operation.Input.(input), operation.Output.(output)
		_, after := step(s, in, answered)
		next := after.(state)
		if in.kind >= set && next != s {
			out[len(out)-1].to = operation.Return
			out = append(out, spell{from: operation.Call, to: never, sure: answered.version != any})
		}
		last := &out[len(out)-1]
		last.exists, last.content = next.exists, next.content
		s = next
	}
	return out
}

// crossCheck looks where ranges that were copied came from: their bytes are known only once somebody
// read the target. Whole copies are checked as reads of their source.
func crossCheck(orders map[string][]porcupine.Operation) copies {
	var found copies
	all := map[string][]spell{}
	var names []string
	for name, order := range orders {
		all[name] = spells(order)
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		s, ranges := model.Init().(state), map[string]*call{}
		for _, operation := range orders[name] {
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
		}
	}
	return found
}

// parts looks at what a read shows where a range was copied to.
func (c *copies) parts(all map[string][]spell, ranges map[string]*call, known, seen []run) {
	at := 0
	for _, r := range known {
		part := told(slice(seen, at, at+r.count))
		at += r.count
		made := ranges[r.marker]
		if made == nil {
			continue
		}
		ends := int64(never)
		if made.is() == "ok" {
			ends = made.answer.At
		}
		right, open := came(all[made.source()], made.At, ends, made.First+r.from, part)
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

// came tells whether a source had this part at that place between two times, or may have had.
func came(source []spell, from, to int64, place int, part string) (right, open bool) {
	count := units(parse(part))
	for at, s := range source {
		if s.from > to || s.to < from {
			continue
		}
		had := told(slice(parse(s.content), place, place+count))
		right = right || s.exists && s.content != unknown && had == part
		open = open || s.exists && (s.content == unknown || strings.Contains(had, unknown))
		for _, near := range source[max(0, at-1):min(len(source), at+2)] {
			open = open || !near.sure
		}
	}
	return right, open || source == nil
}
