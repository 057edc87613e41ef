//go:build linux

package calibrate

import "unsafe"

// lineBytes is the distance of the loads of a chase: the length of a cache line.
const lineBytes = 64

// clocks returns the chains that show the clock: an addition takes a cycle.
func clocks() []program { return []program{{run: loopAdds, ops: addsPerLoop}} }

//go:noescape
func readSIMD(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func writeSIMD(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func streamSIMD(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func copySIMD(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func copyStreamSIMD(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func triadSIMD(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func triadStreamSIMD(n uint64, a, b, c unsafe.Pointer)

// movers returns the sets of data loops that this processor can run.
func movers() []mover {
	return []mover{{"Advanced SIMD", readSIMD, writeSIMD, copySIMD, triadSIMD, streamSIMD, copyStreamSIMD, triadStreamSIMD}}
}
