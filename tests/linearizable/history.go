package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

// A splice as a client tells it: without a place it is behind the last unit.
type toldCut struct {
	At  *int   `json:"at"`
	Cut int    `json:"cut"`
	Put string `json:"put"`
}

// A call of a client, and its answer.
type call struct {
	// As the client numbers it, and as it is found in all histories.
	Number int64  `json:"call"`
	Task   int    `json:"task"`
	At     int64  `json:"at"`
	Op     string `json:"op"`
	Name   string `json:"name"`

	Content string    `json:"content"`
	Only    string    `json:"only"`
	Create  bool      `json:"create"`
	Splices []toldCut `json:"splices"`
	// A name, or a number.
	From   interface{} `json:"from"`
	To     int         `json:"to"`
	Parts  []string    `json:"parts"`
	First  int         `json:"first"`
	Count  int         `json:"count"`
	Insert int         `json:"place"`
	Prefix string      `json:"prefix"`

	client int
	answer *reply
}

// The answer to a call.
type reply struct {
	Return  int64    `json:"return"`
	At      int64    `json:"at"`
	Is      string   `json:"is"`
	Text    string   `json:"text"`
	What    string   `json:"what"`
	Version string   `json:"version"`
	Size    *int     `json:"size"`
	Content *string  `json:"content"`
	Was     bool     `json:"was"`
	Names   []string `json:"names"`
	// What was done for the whole store.
	Blobs     int  `json:"blobs"`
	Closed    int  `json:"closed"`
	Overtaken bool `json:"overtaken"`
	Rewritten int  `json:"rewritten"`
	Changed   int  `json:"changed"`
}

func (c *call) source() string {
	name, _ := c.From.(string)
	return name
}

func (c *call) first() int {
	number, _ := c.From.(float64)
	return int(number)
}

func (c *call) is() string {
	if c.answer == nil {
		return "killed"
	}
	return c.answer.Is
}

// readAll reads the histories of a folder. A line that breaks off is the last of a killed client.
func readAll(folder string) ([]*call, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.jsonl"))
	if err != nil {
		return nil, err
	}
	sort.Strings(files)
	var all []*call
	for client, path := range files {
		calls, err := readOne(path, client*8)
		if err != nil {
			return nil, err
		}
		all = append(all, calls...)
	}
	return all, nil
}

func readOne(path string, client int) ([]*call, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	byNumber := map[int64]*call{}
	var calls []*call
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 64<<20)
	broken := ""
	for lines.Scan() {
		if broken != "" {
			return nil, fmt.Errorf("%s: no line of a history: %s", path, broken)
		}
		line := lines.Bytes()
		if strings.HasPrefix(string(line), "{") && json.Valid(line) {
			if err := take(line, client, byNumber, &calls); err != nil {
				return nil, fmt.Errorf("%s: %w: %s", path, err, line)
			}
			continue
		}
		broken = string(line)
	}
	return calls, lines.Err()
}

func take(line []byte, client int, byNumber map[int64]*call, calls *[]*call) error {
	var answered reply
	if err := json.Unmarshal(line, &answered); err == nil && answered.Return != 0 {
		made := byNumber[answered.Return]
		if made == nil || made.answer != nil {
			return fmt.Errorf("an answer to no call")
		}
		made.answer = &answered
		return nil
	}
	made := &call{}
	if err := json.Unmarshal(line, made); err != nil {
		return err
	}
	made.client = client + made.Task
	byNumber[made.Number] = made
	*calls = append(*calls, made)
	return nil
}
