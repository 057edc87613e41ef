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

	"github.com/cyclestack/cyclestack/internal/spelling"
)

// texts are the titles and explanations that nodes of several models share, in
// the order of their nodes.
type texts []text

// A text is one table [[text]].
type text struct {
	Node         string
	Title, About string
	Causes, Try  []string
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
	}
	if len(faults) > 0 {
		return nil, faults
	}
	slices.SortFunc(tables, func(a, b text) int { return strings.Compare(a.Node, b.Node) })
	return tables, nil
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
	for i := range m.Nodes {
		n := &m.Nodes[i]
		if t := cmp.Or(own.find(n.Name), common.find(n.Name)); t != nil {
			n.fill(t)
		}
	}
	return nil
}

// fill takes from a text what the node does not say itself.
func (n *Node) fill(t *text) {
	if n.Title == "" {
		n.Title = t.Title
	}
	if n.About == "" {
		n.About = t.About
	}
	if n.Causes == nil {
		n.Causes = t.Causes
	}
	if n.Try == nil {
		n.Try = t.Try
	}
}
