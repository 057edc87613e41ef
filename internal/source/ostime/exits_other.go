//go:build !linux

package ostime

import (
	"errors"
	"io/fs"
)

// exits would tell of threads that end; only Linux does.
type exits struct{}

func listen(fs.FS) (*exits, error) { return nil, errors.ErrUnsupported }

func (*exits) drain() ([]ending, bool, error) { return nil, false, nil }

func (*exits) close() {}
