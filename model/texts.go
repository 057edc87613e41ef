package model

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// texts are the titles and explanations that nodes of several models share.
type texts map[textKey]*text

type textKey struct {
	node   string
	method string // name of the model; "" is any
}

// A text is one table [[text]].
type text struct {
	key    textKey
	line   int
	title  string
	about  string
	causes []string
	try    []string
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

// parseTexts takes the expressions of the file one by one. It is the largest
// file that every model needs, and this takes a quarter of the time that
// decoding it into structures does.
func parseTexts(data []byte, name string) (texts, error) {
	all := texts{}
	var (
		open   *text
		faults Errors
	)
	finish := func() {
		if open == nil {
			return
		}
		if fault := all.add(open); fault != "" {
			faults = append(faults, &Error{File: name, Line: open.line, Msg: fault})
		}
	}
	err := expressions(data, func(e expression) bool {
		fault := ""
		switch {
		case e.kind == unstable.ArrayTable && e.key == "text" && !e.dotted:
			finish()
			open = &text{line: e.line}
		case e.kind == unstable.KeyValue && open != nil && !e.dotted:
			fault = open.set(e.key, e.value)
		default:
			fault = fmt.Sprintf("unknown key %q: the file is a list of [[text]]", clip(e.key))
		}
		if fault != "" {
			faults = append(faults, &Error{File: name, Line: e.line, Msg: fault})
		}
		return true
	})
	finish()
	if err != nil { // the decoder says it with the line
		if err := decodeStrict(data, name, new(map[string]any)); err != nil {
			return nil, err
		}
		return nil, &Error{File: name, Msg: err.Error()}
	}
	if len(faults) > 0 {
		return nil, faults
	}
	return all, nil
}

// add adds a finished text and returns what is wrong with it.
func (all texts) add(t *text) (fault string) {
	if t.key.node == "" {
		return "text: it names no node"
	}
	if first, ok := all[t.key]; ok {
		return fmt.Sprintf("text: there is already one for node %q, method %q, at line %d", t.key.node, t.key.method, first.line)
	}
	all[t.key] = t
	return ""
}

// set sets a key of a text and returns what is wrong with it.
func (t *text) set(key string, value *unstable.Node) (fault string) {
	switch key {
	case "node", "method", "title", "about":
		if value.Kind != unstable.String {
			return fmt.Sprintf("key %q: a string is wanted", key)
		}
	case "causes", "try":
		list, ok := stringList(value)
		if !ok {
			return fmt.Sprintf("key %q: a list of strings is wanted", key)
		}
		if key == "causes" {
			t.causes = list
		} else {
			t.try = list
		}
		return ""
	}
	s := strings.TrimSpace(string(value.Data))
	switch key {
	case "node":
		t.key.node = s
	case "method":
		t.key.method = s
	case "title":
		t.title = s
	case "about":
		t.about = s
	default:
		return fmt.Sprintf("unknown key %q in %q", clip(key), "text")
	}
	return ""
}

// stringList returns the elements of a list of strings.
func stringList(value *unstable.Node) ([]string, bool) {
	if value.Kind != unstable.Array {
		return nil, false
	}
	list := []string{}
	for it := value.Children(); it.Next(); {
		if it.Node().Kind != unstable.String {
			return nil, false
		}
		list = append(list, string(it.Node().Data))
	}
	return list, true
}

// apply gives the nodes of m the texts that they lack. The one for the method
// is preferred to the one for any.
func (all texts) apply(m *Model) {
	for i := range m.Nodes {
		n := &m.Nodes[i]
		t, ok := all[textKey{n.Name, m.Name}]
		if !ok {
			t, ok = all[textKey{n.Name, ""}]
		}
		if ok {
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
