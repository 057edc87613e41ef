//go:build amd64 || arm64 || ppc64le || riscv64

package loop

// Run takes 2n instructions, and the few of a call; n is at least 1.
//
// The Go runtime interrupts it now and then, which costs instructions too: some
// thousands for every 10 ms. A [Program] has no runtime.
func Run(n uint64)

// Twin is Run in other words: a function of its own, to be told from it.
func Twin(n uint64)
