package output

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/signals"
)

// A Stream writes output as it comes, such as accounts of intervals. After an error it
// writes nothing more. A file keeps its content until the first output.
type Stream struct {
	out     io.Writer
	name    string
	file    *os.File // out; nil for a standard stream
	regular bool
	fresh   bool // it did not exist
	begun   bool
	failed  bool
}

// NewStream returns a stream for a writer, which is called name.
func NewStream(out io.Writer, name string) *Stream {
	signals.BearPipes()
	return &Stream{out: out, name: name}
}

// OpenStream opens a file, before anything runs.
func OpenStream(name string) (*Stream, error) {
	to, err := placeOf(name, nil)
	if err != nil {
		return nil, err
	}
	s := &Stream{name: name, regular: !to.direct}
	if to.direct {
		s.file, err = os.OpenFile(name, os.O_WRONLY, 0)
	} else {
		s.fresh = true
		s.file, err = os.OpenFile(to.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(err, fs.ErrExist) {
			s.fresh = false
			s.file, err = os.OpenFile(to.path, os.O_WRONLY, 0)
		}
	}
	if err != nil {
		return nil, unwritten(name, err)
	}
	s.out = s.file
	return s, nil
}

func (s *Stream) Write(b []byte) (n int, err error) {
	if s.failed {
		return len(b), nil
	}
	if s.regular && !s.begun {
		err = s.file.Truncate(0)
	}
	s.begun = true
	if err == nil {
		n, err = signals.Write(s.out, b)
	}
	s.failed = err != nil
	return n, unwritten(s.name, err)
}

// Close closes a file that is complete.
func (s *Stream) Close() error {
	if s.file == nil || s.failed {
		return nil
	}
	return fault.As(fault.Machine, s.file.Close())
}

// End closes the file in any case. If nothing was written, a new file is removed.
func (s *Stream) End() {
	if s == nil || s.file == nil {
		return
	}
	s.file.Close()
	if s.fresh && !s.begun {
		os.Remove(s.file.Name())
	}
}

// Watched reports whether somebody may wait for what is written next: not if it goes to a
// regular file, or nowhere.
func (s *Stream) Watched() bool {
	f, ok := s.out.(*os.File)
	if !ok {
		return true
	}
	st, err := f.Stat()
	if err != nil {
		return true
	}
	null, err := os.Stat(os.DevNull)
	return !st.Mode().IsRegular() && !(err == nil && os.SameFile(st, null))
}
