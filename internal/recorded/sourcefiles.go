package recorded

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cyclestack/cyclestack/internal/annotate"
)

// sourceFiles reads the lines of sources.
type sourceFiles struct {
	sources *annotate.Sources
	root    string
	dirs    []string
	built   time.Time // when the program was; zero if that is not known
	paths   map[string]string
	newer   []string // sources that have changed since
}

// newSourceFiles returns the sources of a program, which is a file or "". They are below
// root, or in further directories.
func newSourceFiles(root string, dirs []string, program string) *sourceFiles {
	s := &sourceFiles{sources: annotate.NewSources(""), root: root, dirs: dirs, paths: map[string]string{}}
	if info, err := os.Stat(program); err == nil {
		s.built = info.ModTime()
	}
	return s
}

// unpacking is how much newer sources may be than a program from the same archive.
const unpacking = time.Minute

// line returns a line of a source file.
func (s *sourceFiles) line(file string, line int) (string, error) {
	name, ok := s.paths[file]
	if !ok {
		name = s.find(file)
		s.paths[file] = name
		if info, err := os.Stat(name); err == nil && !s.built.IsZero() && info.ModTime().After(s.built.Add(unpacking)) {
			s.newer = append(s.newer, name)
		}
	}
	return s.sources.Line(name, line)
}

// notes names the sources that have changed since the program was built.
func (s *sourceFiles) notes() []string {
	var out []string
	for _, name := range s.newer {
		out = append(out, name+" is newer than the program: its lines may not be those that were compiled")
	}
	return out
}

// find returns the path of a source: the compiler's path under the root, or the longest
// end of it that exists under one of the directories.
func (s *sourceFiles) find(file string) string {
	written := file
	if filepath.IsAbs(file) {
		written = absolute(filepath.Join(s.root, filepath.Clean(file)))
		if isFile(written) {
			return written
		}
	}
	parts := strings.Split(strings.TrimPrefix(filepath.Clean("/"+file), "/"), "/")
	for _, dir := range s.dirs {
		for i := range parts {
			name := filepath.Join(append([]string{dir}, parts[i:]...)...)
			if isFile(name) {
				return absolute(name)
			}
		}
	}
	return written
}

// absolute is the path from the root, or the name if that cannot be found out.
func absolute(name string) string {
	if abs, err := filepath.Abs(name); err == nil {
		return abs
	}
	return name
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}
