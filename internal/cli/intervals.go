package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// An intervalWriter writes accounts of intervals as they come. It says what cannot be
// written, and has nothing written after it.
type intervalWriter struct {
	out    io.Writer
	name   string
	file   *streamFile // out; nil for a standard stream
	failed bool
}

// openIntervals opens what intervals are written to.
func (l *meter) openIntervals() (*intervalWriter, error) {
	switch name := l.c.output; {
	case name == "" && l.stream != l.out:
		bearPipes()
		return &intervalWriter{out: l.stream, name: "standard error"}, nil
	case name == "" || name == "-":
		bearPipes()
		return &intervalWriter{out: l.out, name: "standard output"}, nil
	default:
		f, err := openStream(name)
		if err != nil {
			return nil, err
		}
		return &intervalWriter{out: f.File, name: name, file: f}, nil
	}
}

func (w *intervalWriter) Write(b []byte) (n int, err error) {
	if w.failed {
		return len(b), nil
	}
	if w.file != nil {
		err = w.file.begin()
	}
	if err == nil {
		n, err = patiently(w.out, b)
	}
	if err != nil {
		w.failed = true
		return n, machineError(fmt.Errorf("cannot write %s: %w", w.name, reason(err)))
	}
	return n, nil
}

// close closes a file that is complete.
func (w *intervalWriter) close() error {
	if w.file == nil || w.failed {
		return nil
	}
	if err := w.file.Close(); err != nil {
		return machineError(err)
	}
	return nil
}

// end closes the file in any case. If nothing was written, it is as if it had not been
// opened.
func (w *intervalWriter) end() {
	if w != nil && w.file != nil {
		w.file.end()
	}
}

// watched reports whether somebody may wait for what is written next: not if it goes to a
// file, or nowhere.
func watched(out io.Writer) bool {
	f, ok := out.(*os.File)
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

// A streamFile is a file that is written as the output comes. It is opened before anything
// runs, and keeps its content until the first output.
type streamFile struct {
	*os.File
	regular bool
	fresh   bool // it did not exist
	begun   bool
}

func openStream(name string) (*streamFile, error) {
	to, err := destination(name, nil)
	if err != nil {
		return nil, err
	}
	s := &streamFile{regular: !to.direct}
	if to.direct {
		s.File, err = os.OpenFile(name, os.O_WRONLY, 0)
	} else {
		s.fresh = true
		s.File, err = os.OpenFile(to.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(err, fs.ErrExist) {
			s.fresh = false
			s.File, err = os.OpenFile(to.path, os.O_WRONLY, 0)
		}
	}
	if err != nil {
		return nil, machineError(fmt.Errorf("cannot write %s: %w", name, reason(err)))
	}
	return s, nil
}

// begin makes room for the first output.
func (s *streamFile) begin() error {
	if s.begun {
		return nil
	}
	s.begun = true
	if !s.regular {
		return nil
	}
	return s.Truncate(0)
}

func (s *streamFile) end() {
	s.Close()
	if s.fresh && !s.begun {
		os.Remove(s.Name())
	}
}
