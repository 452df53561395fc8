package main

import (
	"fmt"
	"sort"
)

// What clients did for the whole store while others changed names. A run in which collectors or those
// who compact meet nobody proves nothing of them.
type upkeep struct {
	// Cycles that ended, those of them that a later one did not overtake, and those that deleted
	// blobs.
	ended, last, deleting int
	blobs, closed         int
	// Goes over all names that ended, and objects that they wrote again or left to who changed them.
	compacted, rewritten, left int
	// How long cycles took that ended, in nanoseconds.
	took []int64
}

// kept tells what was done.
func kept(calls []*call) upkeep {
	var u upkeep
	for _, c := range calls {
		if c.is() != "ok" {
			continue
		}
		switch c.Op {
		case "collect":
			u.ended++
			if !c.answer.Overtaken {
				u.last++
			}
			if c.answer.Blobs > 0 {
				u.deleting++
			}
			u.blobs += c.answer.Blobs
			u.closed += c.answer.Closed
			u.took = append(u.took, c.answer.At-c.At)
		case "compact":
			u.compacted++
			u.rewritten += c.answer.Rewritten
			u.left += c.answer.Changed
		}
	}
	return u
}

func (u *upkeep) String() string {
	sort.Slice(u.took, func(a, b int) bool { return u.took[a] < u.took[b] })
	middle := int64(0)
	if len(u.took) > 0 {
		middle = u.took[len(u.took)/2]
	}
	return fmt.Sprintf("%d cycles ended, in %.1f s half of them, %d not overtaken, %d deleted %d blobs, closed %d operations; "+
		"compacted %d times: %d objects written again, %d left to others", u.ended, float64(middle)/1e9, u.last, u.deleting,
		u.blobs, u.closed, u.compacted, u.rewritten, u.left)
}

// enough tells what a run did too seldom; least is how many cycles must have deleted something, and
// objects been written again, in ten minutes.
func (u *upkeep) enough(least, seconds int) error {
	floor := least * seconds / 600
	if u.deleting < floor || u.rewritten < floor {
		return fmt.Errorf("%d cycles that deleted something and %d objects written again are too few: at least %d of each in %d s", u.deleting, u.rewritten, floor, seconds)
	}
	return nil
}
