//go:build !linux

package ostime

import (
	"errors"
	"io/fs"
)

// exitSocket would tell of threads that end; only Linux does.
type exitSocket struct{}

func listen(fs.FS) (*exitSocket, error) { return nil, errors.ErrUnsupported }

func (*exitSocket) drain() ([]ending, bool, error) { return nil, false, nil }

func (*exitSocket) close() {}
