//go:build linux

package calibrate

import "unsafe"

//go:noescape
func peakSIMD(n uint64, a, b, c unsafe.Pointer)

// peaks returns the loops of floating-point operations that this processor can run.
func peaks() []peak { return []peak{{"Advanced SIMD", peakSIMD, 2 * 2 * 24}} }
