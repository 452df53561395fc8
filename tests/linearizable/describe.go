package main

import "fmt"

func (v version) String() string {
	operation := v.operation
	if len(operation) > 6 {
		operation = operation[:6]
	}
	if v == any {
		return "?"
	}
	return fmt.Sprintf("%d-%s", v.change, operation)
}

func (s state) String() string {
	if !s.exists {
		return fmt.Sprintf("none %v", s.version)
	}
	return fmt.Sprintf("%v [%s]", s.version, short(s.content))
}

func short(content string) string {
	if len(content) > 120 {
		return content[:120] + "…"
	}
	return content
}

func describe(in input, out output) string {
	kinds := []string{"read", "list", "prefix", "suffix", "set", "edit", "remove", "remove source"}
	answers := []string{"ok", "none", "exists", "other version", "out of range", "pending"}
	text := kinds[in.kind]
	if in.call != nil {
		text += " (" + in.call.Op + ")"
	}
	if in.kind == set {
		text += " " + short(in.content)
	}
	for _, c := range in.cuts {
		text += fmt.Sprintf(" %d-%d+[%s]", c.at, c.cut, short(c.put))
	}
	if in.only != any {
		text += fmt.Sprintf(" only %v", in.only)
	}
	text += " → " + answers[out.answer]
	if out.version != any {
		text += fmt.Sprintf(" %v", out.version)
	}
	if out.hasContent {
		text += " [" + short(out.content) + "]"
	}
	return text
}
