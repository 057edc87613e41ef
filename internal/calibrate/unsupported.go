//go:build !linux || !(amd64 || arm64 || ppc64le || riscv64)

package calibrate

import (
	"context"
	"time"
)

// Run returns ErrUnsupported: there are no loops for this system.
func Run(context.Context, Options) (*Result, error) { return nil, ErrUnsupported }

// Clock returns ErrUnsupported.
func Clock(context.Context, time.Duration) (Figure, error) { return Figure{}, ErrUnsupported }
