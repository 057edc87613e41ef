//go:build linux

package calibrate

import "unsafe"

//go:noescape
func peakSSE(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func peakAVX2(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func peakAVX512(n uint64, a, b, c unsafe.Pointer)

// peaks returns the loops of floating-point operations that this processor can run.
func peaks() []peak {
	list := []peak{{"SSE2", peakSSE, 2 * 28}}
	avx2, avx512 := vectors()
	if avx2 {
		list = append(list, peak{"AVX2 with FMA", peakAVX2, 2 * 4 * 28})
	}
	if avx512 {
		list = append(list, peak{"AVX-512", peakAVX512, 2 * 8 * 28})
	}
	return list
}
