package model

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// texts are the titles and explanations that nodes of several models share, in
// the order of their keys.
type texts []text

type textKey struct {
	node   string
	method string // name of the model; "" is any
}

func (k textKey) compare(other textKey) int {
	return cmp.Or(strings.Compare(k.node, other.node), strings.Compare(k.method, other.method))
}

// A text is one table [[text]].
type text struct {
	textKey
	title, about string
	causes, try  []string
	line         int
}

func (t *text) field(key string) any {
	switch key {
	case "node":
		return &t.node
	case "method":
		return &t.method
	case "title":
		return &t.title
	case "about":
		return &t.about
	case "causes":
		return &t.causes
	case "try":
		return &t.try
	}
	return nil
}

// readTexts reads a file of texts. No file is a file without any.
func readTexts(fsys fs.FS, name string) (texts, error) {
	data, err := readFile(fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return parseTexts(data, name)
}

func parseTexts(data []byte, name string) (texts, error) {
	tables := make([]text, 0, bytes.Count(data, []byte("[[text]]"))) // about as many
	err := decode(data, name, schema{
		top: noField,
		table: func(list string, at position) func(key string) any {
			if list != "text" {
				return nil
			}
			tables = append(tables, text{line: at.line})
			return tables[len(tables)-1].field
		},
	})
	if err != nil {
		return nil, err
	}
	first := make(map[textKey]int, len(tables)) // lines
	var faults Errors
	for i := range tables {
		t := &tables[i]
		t.title, t.about = strings.TrimSpace(t.title), strings.TrimSpace(t.about)
		line, twice := first[t.textKey]
		switch {
		case t.node == "":
			faults = append(faults, &Error{File: name, Line: t.line, Msg: "text: it names no node"})
		case twice:
			faults = append(faults, &Error{File: name, Line: t.line,
				Msg: fmt.Sprintf("text: there is already one for node %q, method %q, at line %d", clip(t.node), clip(t.method), line)})
		}
		first[t.textKey] = t.line
	}
	if len(faults) > 0 {
		return nil, faults
	}
	slices.SortFunc(tables, func(a, b text) int { return a.compare(b.textKey) })
	return tables, nil
}

// noField is for files that are only lists of tables.
func noField(string) any { return nil }

// find returns the text of a key, nil if there is none.
func (all texts) find(key textKey) *text {
	i, ok := slices.BinarySearchFunc(all, key, func(t text, key textKey) int { return t.compare(key) })
	if !ok {
		return nil
	}
	return &all[i]
}

// apply gives the nodes of m the texts that they lack. The one for the method
// is preferred to the one for any.
func (all texts) apply(m *Model) {
	for i := range m.Nodes {
		n := &m.Nodes[i]
		if t := cmp.Or(all.find(textKey{n.Name, m.Name}), all.find(textKey{n.Name, ""})); t != nil {
			n.fill(t)
		}
	}
}

// fill takes from a text what the node does not say itself.
func (n *Node) fill(t *text) {
	if n.Title == "" {
		n.Title = t.title
	}
	if n.About == "" {
		n.About = t.about
	}
	if n.Causes == nil {
		n.Causes = t.causes
	}
	if n.Try == nil {
		n.Try = t.try
	}
}
