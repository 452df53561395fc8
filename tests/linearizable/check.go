package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// A verdict on some histories.
type verdict struct {
	names, operations, open int
	copies                  copies
	wrong                   []string
	// Names whose history took too long to check.
	undecided []string
}

func (v *verdict) ok() bool {
	return len(v.wrong) == 0 && len(v.undecided) == 0
}

// check looks for an order of each name's operations that explains all answers. What is wrong is drawn
// into `folder`, if that is not empty.
func check(calls []*call, folder string, patience time.Duration) *verdict {
	e := expand(calls)
	v := &verdict{wrong: e.wrong}
	var names []string
	for name := range e.byName {
		names = append(names, name)
	}
	sort.Strings(names)
	orders := map[string][]porcupine.Operation{}
	for _, name := range names {
		operations := e.byName[name]
		v.names++
		v.operations += len(operations)
		for _, operation := range operations {
			if operation.Return == never {
				v.open++
			}
		}
		result, info := porcupine.CheckOperationsVerbose(model, operations, patience)
		switch result {
		case porcupine.Unknown:
			v.undecided = append(v.undecided, name)
		case porcupine.Illegal:
			v.wrong = append(v.wrong, fmt.Sprintf("%s is not linearizable: %s", name, longest(info)))
			if folder != "" {
				draw(info, filepath.Join(folder, strings.ReplaceAll(name, "/", "-")+".html"))
			}
		default:
			orders[name] = info.PartialLinearizationsOperations()[0][0]
		}
	}
	v.copies = crossCheck(orders)
	v.wrong = append(v.wrong, v.copies.wrong...)
	return v
}

// longest tells where the longest order that was found ends.
func longest(info porcupine.LinearizationInfo) string {
	var best []porcupine.Operation
	for _, order := range info.PartialLinearizationsOperations()[0] {
		if len(order) > len(best) {
			best = order
		}
	}
	var s interface{} = model.Init()
	for _, operation := range best {
		_, s = step(s, operation.Input, operation.Output)
	}
	return fmt.Sprintf("%d operations lead to %v, and none follows", len(best), s)
}

func draw(info porcupine.LinearizationInfo, path string) {
	file, err := os.Create(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	defer file.Close()
	if err := porcupine.Visualize(model, info, file); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// counted tells how often each operation had each answer.
func counted(calls []*call) string {
	counts := map[string]map[string]int{}
	for _, c := range calls {
		if counts[c.Op] == nil {
			counts[c.Op] = map[string]int{}
		}
		counts[c.Op][c.is()]++
	}
	var lines []string
	for op, answers := range counts {
		all := 0
		var parts []string
		for is, count := range answers {
			all += count
			parts = append(parts, fmt.Sprintf("%s %d", is, count))
		}
		sort.Strings(parts)
		lines = append(lines, fmt.Sprintf("  %-10s %6d: %s", op, all, strings.Join(parts, ", ")))
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

// texts tells what answers that are no plain ones said, the most frequent first.
func texts(calls []*call) string {
	counts := map[string]int{}
	for _, c := range calls {
		switch c.is() {
		case "busy", "failed", "unknown", "old", "strange", "damaged":
			text := c.is() + ": " + c.answer.Text
			if c.Name != "" {
				text = strings.ReplaceAll(text, c.Name, "NAME")
			}
			counts[short(text)]++
		}
	}
	var all []string
	for text := range counts {
		all = append(all, text)
	}
	sort.Slice(all, func(a, b int) bool { return counts[all[a]] > counts[all[b]] })
	var lines []string
	for _, text := range all[:min(len(all), 12)] {
		lines = append(lines, fmt.Sprintf("  %5d %s", counts[text], text))
	}
	return strings.Join(lines, "\n")
}
