//go:build !linux

package ostime

import (
	"errors"
	"io/fs"
)

// exitSocket stands for the kernel's records of threads that end. Only Linux has them.
type exitSocket struct{}

func listen(fs.FS) (*exitSocket, error) { return nil, errors.ErrUnsupported }

func (*exitSocket) drain() ([]ending, bool, error) { return nil, false, nil }

func (*exitSocket) close() {}
