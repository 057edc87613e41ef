package model

import (
	"errors"
	"io/fs"
	"path"
	"slices"
)

// loopsDir is the folder of the files with the nodes that the model of a core adds to
// methods: one file for each name of a method.
const loopsDir = "loops"

// WithLoops returns a method of the catalogue with nodes for what limits hot loops in the
// core. They are children of nodes that the method has. The result is nil
// if there are none for the method.
func (c *Catalogue) WithLoops(m *Model, cpu *CPU) (*Model, error) {
	over, err := c.lib.loopNodes(m.Name)
	if over == nil || err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(over.Nodes, func(n Node) bool { return m.Node(n.Parent) != nil }) {
		return nil, nil
	}
	for _, s := range c.sources(cpu.Name) {
		if s.Name == m.Name && s.File == m.File {
			return c.lib.readOver(s, cpu, over)
		}
	}
	return nil, nil
}

// loopNodes reads the file of nodes for methods of a name; nil if there is none.
func (lib *library) loopNodes(method string) (*modelFile, error) {
	open := func(stem string) (*modelFile, error) {
		name := path.Join(modelsDir, stem+".toml")
		return lib.decode(lib.fsys, name, name)
	}
	f, err := open(path.Join(loopsDir, method))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return resolve(f, open)
}

// below leaves out the head, and the nodes that a file has not, or not their parents.
func (f *modelFile) below(base *modelFile) *modelFile {
	has := map[string]bool{}
	collectNames(base.Nodes, has)
	out := &modelFile{Model: Model{Inputs: f.Inputs, pos: position{file: f.pos.file, line: f.pos.line}}}
	for i := range f.Nodes {
		if n := &f.Nodes[i]; has[n.Parent] || has[n.Name] {
			out.Nodes = append(out.Nodes, *n)
		}
	}
	return out
}
