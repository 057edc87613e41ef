//go:build !linux

package perfrecord

import (
	"errors"
	"io/fs"
)

// is returns false: nothing is mapped where nothing is recorded.
func (i inode) is(string) bool { return false }

// inodeOf returns 0, likewise.
func inodeOf(fs.FileInfo) uint64 { return 0 }

// setRealtime fails: nothing is recorded here.
func setRealtime(int) error { return errors.ErrUnsupported }

// tryRealtime returns nil, likewise: the sampling fails.
func tryRealtime(int) error { return nil }
