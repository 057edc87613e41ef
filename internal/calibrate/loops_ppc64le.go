//go:build linux

package calibrate

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// lineBytes is the distance of the loads of a chase: the length of a cache line.
const lineBytes = 128

// clocks returns the chains that show the clock: an addition takes one cycle on POWER8,
// two since (GCC's machine descriptions power8.md, power9.md and power10.md).
func clocks() []program {
	latency := 1.0
	if cpu.PPC64.IsPOWER9 {
		latency = 2
	}
	return []program{{run: loopAdds, ops: latency * addsPerLoop}}
}

//go:noescape
func readVSX(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func writeVSX(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func copyVSX(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func triadVSX(n uint64, a, b, c unsafe.Pointer)

// movers returns the sets of data loops that this processor can run.
func movers() []mover {
	return []mover{{name: "VSX", read: readVSX, write: writeVSX, copy: copyVSX, triad: triadVSX}}
}
