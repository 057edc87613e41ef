//go:build !linux

package output

import (
	"errors"
	"os"
)

// A Scratch is a file for the time that it is open.
type Scratch struct {
	*os.File
	Path string // that this process can open
}

// NewScratch returns a temporary file.
func NewScratch() (*Scratch, error) {
	f, err := os.CreateTemp("", "cyclestack-*")
	if err != nil {
		return nil, err
	}
	return &Scratch{f, f.Name()}, nil
}

// Close closes the file, and removes it.
func (s *Scratch) Close() error { return errors.Join(s.File.Close(), os.Remove(s.Path)) }
