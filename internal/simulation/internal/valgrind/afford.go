package valgrind

import "time"

// slowdown is how many times longer a program takes under a simulator: from 20 times
// for one that mostly waits for memory to 100 times.
const slowdown = 50

// starting is how long valgrind takes to start a program.
const starting = time.Second

// Takes predicts how long it takes to simulate a program that uses so much processor time
// by itself. The simulator runs its threads one at a time.
func Takes(cpu time.Duration) time.Duration { return starting + slowdown*cpu }

// For returns the geometry to simulate for a program of up to so many bytes of memory, 0 for
// few. It also returns the share of the misses of the last simulated level that a further level
// answers.
//
// The simulators have two of three levels. If the program's memory fits the third, the last
// simulated level is the second, and the third answers its misses. If it does not fit,
// misses to memory cost most: the last simulated level is the third, and hits of the second
// and third are counted together.
func (h Hierarchy) For(resident int64) (g Geometry, beyond float64) {
	g = Geometry{I1: h.L1I, D1: h.L1D, LL: h.L3}
	switch {
	case h.L3.Size == 0:
		g.LL = h.L2
	case h.L2.Size > 0 && resident <= int64(h.L3.Size):
		return Geometry{I1: h.L1I, D1: h.L1D, LL: h.L2}, 1
	}
	return g, 0
}
