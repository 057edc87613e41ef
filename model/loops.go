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
	if !slices.ContainsFunc(over.Node, func(n nodeTable) bool { return m.Node(str(n.Parent)) != nil }) {
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
	collectNames(base.Node, has)
	out := &modelFile{Input: f.Input, pos: f.pos}
	for i := range f.Node {
		if n := &f.Node[i]; has[str(n.Parent)] || has[str(n.Name)] {
			out.Node = append(out.Node, f.Node[i])
		}
	}
	return out
}
