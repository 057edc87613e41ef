package progress

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// Files is the line of a command that reads files and writes output. A nil Files shows nothing.
type Files struct {
	line    *Line
	file    atomic.Pointer[file]
	written atomic.Int64
	before  [2]int64 // what was read and written when the text was made last
}

// A file is how far a file is read.
type file struct {
	name       string
	read, size int64
}

// Of returns the line of a command with a standard error. It is nil if that is no terminal.
func Of(stderr io.Writer) *Files {
	f := &Files{}
	if f.line = On(stderr, f.text); f.line == nil {
		return nil
	}
	return f
}

// Read tells how many bytes of a file were read. The size of a stream is -1 until its end.
// More than the size is a file that is read again.
func (f *Files) Read(name string, read, size int64) {
	if f != nil {
		f.file.Store(&file{name, read, size})
	}
}

// End removes the line.
func (f *Files) End() {
	if f != nil {
		f.line.End()
	}
}

// Writer returns the writer of the output, which goes to another stream in the end. The line ends
// with the first output on a terminal.
func (f *Files) Writer(to, end io.Writer) io.Writer {
	if f == nil {
		return to
	}
	return &writer{to, f, terminal(end)}
}

// A writer is that of the output.
type writer struct {
	to       io.Writer
	files    *Files
	terminal bool
}

func (w *writer) Write(b []byte) (int, error) {
	if w.terminal {
		w.files.End()
	}
	n, err := w.to.Write(b)
	w.files.written.Add(int64(n))
	return n, err
}

// text is what the command is at.
func (f *Files) text(time.Duration) string {
	at := f.file.Load()
	if at == nil {
		return ""
	}
	now := [2]int64{at.read, f.written.Load()}
	before := f.before
	f.before = now
	switch {
	case now[1] != before[1] || now[1] > 0 && now[0] == before[0]:
		return fmt.Sprintf("writing: %d MB", now[1]>>20)
	case at.size < 0:
		return fmt.Sprintf("reading %s: %d MB", at.name, at.read>>20)
	case now[0] == before[0] || at.size == 0 || at.read >= at.size && at.read%at.size < at.size/50: // at the end, and a bit was read twice
		return "looking up names"
	case at.read > at.size:
		return fmt.Sprintf("reading %s again: %d %%", at.name, at.read%at.size*100/at.size)
	}
	return fmt.Sprintf("reading %s: %d %%", at.name, at.read*100/at.size)
}
