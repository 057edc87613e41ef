package model

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/internal/sorting"
	"github.com/cyclestack/cyclestack/internal/spelling"
	"github.com/cyclestack/cyclestack/metric"
)

// texts are the titles and explanations that nodes of several models share, in
// the order of their nodes.
type texts []text

// A text is one table [[text]].
type text struct {
	Node         string
	Title, About string
	Causes, Try  []string
	Advice       []Advice
	line         int
}

// textsFile is the file of the texts for nodes of any model. textsDir has those for the
// models of one name.
const (
	textsFile = "texts.toml"
	textsDir  = "texts"
)

// textsOf returns the texts in a file, read once.
func (lib *library) textsOf(file string) (texts, error) {
	return lib.texts.get(file, func() (texts, error) { return readTexts(lib.fsys, file) })
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
		table: func(list string, at position) any {
			if list != "text" {
				return nil
			}
			tables = append(tables, text{line: at.line})
			return &tables[len(tables)-1]
		},
	})
	if err != nil {
		return nil, err
	}
	first := make(map[string]int, len(tables)) // lines, by node
	var faults Errors
	for i := range tables {
		t := &tables[i]
		t.Title, t.About = strings.TrimSpace(t.Title), strings.TrimSpace(t.About)
		line, twice := first[t.Node]
		switch {
		case t.Node == "":
			faults = append(faults, &Error{File: name, Line: t.line, Msg: "text: it names no node"})
		case twice:
			faults = append(faults, &Error{File: name, Line: t.line, Msg: fmt.Sprintf("text: there is already one for node %q, at line %d", spelling.Clip(t.Node), line)})
		}
		first[t.Node] = t.line
		if err := t.parse(); err != nil {
			faults = append(faults, &Error{File: name, Line: t.line, Msg: fmt.Sprintf("text of %s: advice: %v", spelling.Clip(t.Node), err)})
		}
	}
	if len(faults) > 0 {
		return nil, faults
	}
	sorting.Stable(tables, func(a, b text) int { return strings.Compare(a.Node, b.Node) })
	return tables, nil
}

// parse parses the conditions of a text's advice.
func (t *text) parse() error {
	for i := range t.Advice {
		one := &t.Advice[i]
		if !one.complete() {
			return errors.New("it needs try, and when or unless")
		}
		var err error
		if one.when, err = metric.Parse(one.condition()); err != nil {
			return err
		}
	}
	return nil
}

// complete reports whether advice has a text and one condition.
func (a *Advice) complete() bool {
	return strings.TrimSpace(a.Try) != "" && (a.When == "") != (a.Unless == "")
}

// find returns the text of a node, nil if there is none.
func (all texts) find(node string) *text {
	i, ok := slices.BinarySearchFunc(all, node, func(t text, node string) int { return strings.Compare(t.Node, node) })
	if !ok {
		return nil
	}
	return &all[i]
}

// explain gives the nodes of m the texts that they lack. A text for the model's name is
// preferred to one for any model.
func (lib *library) explain(m *Model) error {
	own, err := lib.textsOf(path.Join(textsDir, m.Name+".toml"))
	if err != nil {
		return err
	}
	common, err := lib.textsOf(textsFile)
	if err != nil {
		return err
	}
	names := m.declared()
	for i := range m.Nodes {
		n := &m.Nodes[i]
		if t := cmp.Or(own.find(n.Name), common.find(n.Name)); t != nil {
			n.fill(t, names)
		}
	}
	return nil
}

// fill takes from a text what the node does not say itself.
// Models have different nodes. A condition that names another model's is never met: what
// holds when it is met is left out, what holds unless it is met holds always.
func (n *Node) fill(t *text, names map[string]bool) {
	if n.Title == "" {
		n.Title = t.Title
	}
	if n.About == "" {
		n.About = t.About
	}
	if n.Causes == nil {
		n.Causes = t.Causes
	}
	if n.Try != nil || n.Advice != nil {
		return
	}
	n.Try = t.Try
	var always []string
	for _, a := range t.Advice {
		switch known := !slices.ContainsFunc(a.when.Names(), func(name string) bool { return !names[name] }); {
		case known:
			n.Advice = append(n.Advice, a)
		case a.Unless != "":
			always = append(always, a.Try)
		}
	}
	if always != nil {
		n.Try = slices.Concat(always, t.Try)
	}
}
