//go:build linux

package calibrate

import "unsafe"

// lineBytes is the distance of the loads of a chase: the length of a cache line.
const lineBytes = 64

// clocks returns the chains that show the clock: an addition takes a cycle.
func clocks() []program { return []program{{run: loopAdds, ops: addsPerLoop}} }

//go:noescape
func readFP(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func writeFP(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func copyFP(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func triadFP(n uint64, a, b, c unsafe.Pointer)

// movers returns the sets of data loops that this processor can run.
func movers() []mover {
	return []mover{{name: "scalar", read: readFP, write: writeFP, copy: copyFP, triad: triadFP}}
}
