package annotate

import (
	"bytes"
	"container/list"
	"fmt"
	"path/filepath"

	"github.com/cyclestack/cyclestack/internal/object"
)

// Sources reads lines of source files. It keeps the files that were used last, and is not
// for use by several goroutines at once.
type Sources struct {
	root   string
	recent *list.List // of *sourceFile, the last used first
	files  map[string]*list.Element
}

type sourceFile struct {
	path  string
	lines [][]byte
	err   error
}

// Bounds on source files: how many are kept, and the size of each.
const (
	maxSources    = 64
	maxSourceSize = 16 << 20
)

// NewSources returns sources below a root directory, or "" for this system, by the paths
// that the compiler wrote.
func NewSources(root string) *Sources {
	return &Sources{root: root, recent: list.New(), files: map[string]*list.Element{}}
}

// Line returns a line of a file, counted from 1, without its end.
func (s *Sources) Line(file string, line int) (string, error) {
	f := s.open(file)
	switch {
	case f.err != nil:
		return "", f.err
	case line < 1 || line > len(f.lines):
		return "", fmt.Errorf("%s has %d lines and no line %d: it has changed since it was compiled", f.path, len(f.lines), line)
	}
	return string(f.lines[line-1]), nil
}

func (s *Sources) open(file string) *sourceFile {
	if e, ok := s.files[file]; ok {
		s.recent.MoveToFront(e)
		return e.Value.(*sourceFile)
	}
	f := readSource(file, s.root)
	s.files[file] = s.recent.PushFront(f)
	if s.recent.Len() > maxSources {
		old := s.recent.Remove(s.recent.Back()).(*sourceFile)
		delete(s.files, old.path)
	}
	return f
}

// readSource reads a source file by the path that the compiler wrote.
func readSource(file, root string) *sourceFile {
	f := &sourceFile{path: file}
	if !filepath.IsAbs(file) {
		f.err = fmt.Errorf("%s is relative to a directory that the debug information does not name", file)
		return f
	}
	var data []byte
	if data, f.err = object.ReadAt(filepath.Join(root, filepath.Clean(file)), 0, maxSourceSize); f.err == nil {
		f.lines = bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n"))
	}
	return f
}
