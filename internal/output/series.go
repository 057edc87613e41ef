package output

import (
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/cyclestack/cyclestack/internal/fault"
)

// A Series is a recording in one file after the other. If it has several, each has the time
// of its end in its name.
type Series struct {
	name    string
	stdout  io.Writer
	several bool
	most    int // files that stay; 0 for all

	mu    sync.Mutex
	now   *Recording
	names []string // of the files that are complete
}

// NewSeries makes the first file, or takes standard output: see NewRecording. Of several
// files the last most stay; all for 0.
func NewSeries(name string, stdout io.Writer, several bool, most int) (*Series, error) {
	f, err := NewRecording(name, stdout)
	if err != nil {
		return nil, err
	}
	if several && !f.Regular() {
		f.Unguard()
		return nil, fault.Usagef("--switch-output: the recording needs a file: -o FILE")
	}
	return &Series{name: name, stdout: stdout, several: several, most: most, now: f}, nil
}

// Current returns the file that is being written.
func (s *Series) Current() *Recording {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// Discard removes the file that is being written, unless it is kept.
func (s *Series) Discard() { s.Current().Discard() }

// Keep puts the file into its place.
func (s *Series) Keep() error {
	f := s.Current()
	if !s.several {
		s.names = []string{s.name}
		return f.Keep()
	}
	s.names = append(s.names, f.Stamped(time.Now()))
	if err := f.Keep(); err != nil {
		return err
	}
	if s.most > 0 && len(s.names) > s.most {
		_ = os.Remove(s.names[0]) // the user may have done so
		s.names = slices.Delete(s.names, 0, 1)
	}
	return nil
}

// Next keeps the file, and makes the next.
func (s *Series) Next() (io.Writer, error) {
	if err := s.Keep(); err != nil {
		return nil, err
	}
	f, err := NewRecording(s.name, s.stdout)
	if err != nil {
		return nil, err
	}
	f.Unguard()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = f
	return f, nil
}

// Last returns the name of the last file that is complete.
func (s *Series) Last() string { return s.names[len(s.names)-1] }
