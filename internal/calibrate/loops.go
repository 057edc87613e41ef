//go:build linux && (amd64 || arm64 || ppc64le || riscv64)

package calibrate

import "unsafe"

// A loop runs n iterations, n above 0. An iteration is a few instructions on the memory
// that a, b and c point to. Its comment in the assembly says what it does.
type loop func(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func loopEmpty(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func loopAdds(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func loopChase(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func loopForward(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func loopForwardPart(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func loopForwardJoin(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func loopForwardOverlap(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func loopStoreLate(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func loopStoreEarly(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func loopStoreThenLoad(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func loopStores(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func loopBranches(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func loopJumps(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func loopCalls(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func loopDivide64(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func loopDivide32(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func loopDivideFloat(n uint64, a, b, c unsafe.Pointer)

//go:noescape
func loopMultiply(n uint64, a, b, c unsafe.Pointer)

// How often a loop does in one iteration what it is named after. The same on all
// architectures.
const (
	addsPerLoop     = 64
	loadsPerChase   = 128
	bodiesPerLoop   = 16 // all that are not listed
	storesPerLate   = 8
	branchesPerLoop = 64
	jumpsPerLoop    = 64
	branchWords     = 8192 // words of random bits
	blockBytes      = 256  // that a data loop moves in one iteration, of each array
)

// A mover is a set of loops for one vector width: a[i] = b[i] + s*c[i], and parts of it.
// Streaming loops write past the caches, and are nil if the architecture has no such
// stores.
type mover struct {
	name                                 string // of the instruction set
	read, write, copy, triad             loop
	writeStream, copyStream, triadStream loop
}
