//go:build !unix

package emulator

import (
	"errors"
	"os"
)

// A listener accepts the connections of a Unix socket, on Unix.
type listener struct{}

func listen(string) (*listener, error) { return nil, errors.ErrUnsupported }

func (l *listener) accept() (*os.File, error) { return nil, errors.ErrUnsupported }

func (l *listener) stop() {}

func (l *listener) close() {}
