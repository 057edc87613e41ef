//go:build !linux || !(amd64 || arm64 || ppc64le || riscv64)

package calibrate

import "context"

// Run returns ErrUnsupported: there are no loops for this system.
func Run(context.Context, Options) (*Result, error) { return nil, ErrUnsupported }
