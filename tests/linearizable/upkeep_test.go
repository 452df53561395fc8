package main

import "testing"

func TestUpkeep(t *testing.T) {
	done := func(op string, is string, blobs, rewritten int) *call {
		return &call{Op: op, answer: &reply{Is: is, Blobs: blobs, Rewritten: rewritten}}
	}
	calls := []*call{
		done("collect", "ok", 3, 0), done("collect", "ok", 0, 0), done("collect", "failed", 0, 0),
		{Op: "collect"}, done("compact", "ok", 0, 2), done("put", "ok", 0, 0),
	}
	u := kept(calls)
	if u.ended != 2 || u.deleting != 1 || u.blobs != 3 || u.compacted != 1 || u.rewritten != 2 {
		t.Error(u.String())
	}
	// One cycle that deletes something in a minute is ten in ten, and no more.
	if u.enough(10, 60) != nil || u.enough(20, 60) == nil {
		t.Error("the floor is elsewhere")
	}
	u.rewritten = 0
	if u.enough(10, 60) == nil {
		t.Error("nothing was compacted")
	}
}
