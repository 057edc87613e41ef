package branch

// lengths are the numbers of taken branches of the parts of the path by which is
// predicted.
var lengths = [...]int{4, 8, 16, 32, 64, 128, 256, 500}

const (
	// remembered is the number of branches of the path that are kept: a power of two
	// above the longest of lengths.
	remembered = 512

	// spread is an odd number that mixes the bits of what it is multiplied with: 2^64
	// divided by the golden ratio.
	spread = 0x9e3779b97f4a7c15

	// step is the variable of the polynomials below, odd so that nothing is lost at
	// their lower ends: a multiplier for generators of random numbers (G. Steele, S.
	// Vigna: Computationally easy, spectrally good multipliers, 2021).
	step = 0xd1342543de82ef95
)

// A history is the path on which the program came: the branches that it took last.
// Those that it did not take are on it by what came instead of them.
//
// A core folds the path into the few bits of an index with shifts and XOR. Here each
// length has a polynomial over the branches' hashes in their order, modulo 2^64: one
// more branch multiplies it by a constant and takes the oldest out. All that a table
// needs, its index and its tag, is in the upper bits of such a number.
type history struct {
	path  [remembered]uint64   // hashes of branches
	at    uint32               // where the last one is in path
	state [len(lengths)]uint64 // by length
	leave [len(lengths)]uint64 // what a hash has become a multiple of when it leaves
}

func (h *history) init() {
	for i, n := range lengths {
		h.leave[i] = 1
		for range n {
			h.leave[i] *= step
		}
	}
}

// add adds a taken branch to the path.
func (h *history) add(addr, target uint64) {
	branch := addr ^ target*spread
	branch = (branch ^ branch>>29) * spread
	branch ^= branch >> 32
	h.at++
	h.path[h.at%remembered] = branch
	for i := range h.state {
		oldest := h.path[(h.at-uint32(lengths[i]))%remembered]
		h.state[i] = h.state[i]*step + branch - oldest*h.leave[i]
	}
}

// last returns the hash of the branch that was taken last.
func (h *history) last() uint64 {
	return h.path[h.at%remembered]
}

// hash returns 64 bits for a branch and the part of the path that has lengths[i]
// branches. The upper bits are the better ones.
func (h *history) hash(i int, addr uint64) uint64 {
	x := h.state[i] + addr*spread
	return (x ^ x>>31) * spread
}
