//go:build !linux

package valgrind

import (
	"context"
	"errors"
)

// Follow is possible on Linux only.
func Follow(context.Context, Command, int64, func() Follower) (*Trace, error) {
	return nil, errors.New("the order of code is followed on Linux only")
}
