package simulated

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// An input is the standard input of a program that runs several times.
type input struct {
	file   *os.File // nil for the own
	offset int64    // where the program begins to read
}

// again reports whether the input can be read again, or has nothing to be read: it is no
// pipe.
func (in *input) again() bool {
	if in.file == nil {
		in.file = os.Stdin
	}
	info, err := in.file.Stat()
	if err != nil {
		return true // closed
	}
	if info.Mode().IsRegular() {
		in.offset, err = in.file.Seek(0, io.SeekCurrent)
		return err == nil
	}
	return info.Mode()&os.ModeCharDevice != 0 // a terminal, or /dev/null
}

// spoolMost bounds what is copied of the standard input, which may never end.
const spoolMost = 64 << 20

// spool copies what cannot be read again into a temporary file, and returns it for the
// program to read.
func (in *input) spool() (*os.File, error) {
	f, err := os.CreateTemp("", "cyclestack-stdin-")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(f.Name()) // it lives as long as it is open
	n, err := io.Copy(f, io.LimitReader(in.file, spoolMost+1))
	if err == nil && n > spoolMost {
		err = fmt.Errorf("it is longer than %d MB, too much to keep for a simulation: redirect a file (< FILE)", spoolMost>>20)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	in.file, in.offset = f, 0
	return f, nil
}

// rewind returns what the program is to read once more: a file from where it was, nothing
// in the place of a terminal.
func (in *input) rewind() (*os.File, error) {
	info, err := in.file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, nil
	}
	_, err = in.file.Seek(in.offset, io.SeekStart)
	return in.file, err
}

// keep returns a function that puts a file back to where it is now: to where the program by
// itself has read.
func (in *input) keep() (restore func()) {
	at, err := in.file.Seek(0, io.SeekCurrent)
	if err != nil { // a terminal
		return func() {}
	}
	return func() { _, _ = in.file.Seek(at, io.SeekStart) }
}
