//go:build linux

package calibrate

import "unsafe"

// lineBytes is the distance of the loads of a chase: the length of a cache line.
const lineBytes = 64

//go:noescape
func loopVectorAdds(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func loopProducts(n uint64, a, b, c unsafe.Pointer)

// clocks returns the chains that show the clock. No x86 processor takes less than a cycle for a
// scalar or vector addition, or three for a multiplication.
func clocks() []program {
	return []program{
		{run: loopAdds, ops: addsPerLoop},
		{run: loopVectorAdds, ops: addsPerLoop},
		{run: loopProducts, ops: 3 * addsPerLoop},
	}
}

//go:noescape
func loopCode(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func readSSE(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func writeSSE(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func streamSSE(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func copySSE(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func copyStreamSSE(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func triadSSE(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func triadStreamSSE(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func readAVX2(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func writeAVX2(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func streamAVX2(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func copyAVX2(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func copyStreamAVX2(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func triadAVX2(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func triadStreamAVX2(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func readAVX512(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func writeAVX512(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func streamAVX512(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func copyAVX512(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func copyStreamAVX512(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func triadAVX512(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func triadStreamAVX512(n uint64, a, b, c unsafe.Pointer)

// movers returns the sets of data loops that this processor can run.
func movers() []mover {
	list := []mover{{"SSE2", readSSE, writeSSE, copySSE, triadSSE, streamSSE, copyStreamSSE, triadStreamSSE}}
	avx2, avx512 := vectors()
	if avx2 {
		list = append(list, mover{"AVX2", readAVX2, writeAVX2, copyAVX2, triadAVX2, streamAVX2, copyStreamAVX2, triadStreamAVX2})
	}
	if avx512 {
		list = append(list, mover{"AVX-512", readAVX512, writeAVX512, copyAVX512, triadAVX512, streamAVX512, copyStreamAVX512, triadStreamAVX512})
	}
	return list
}
