package branch

// lengths are the lengths of the paths that predict, in taken branches.
var lengths = [...]int{4, 8, 16, 32, 64, 128, 256, 500}

const (
	// remembered is the number of branches of the path that are kept: a power of two above
	// the longest of lengths.
	remembered = 512

	// spread is an odd number that mixes the bits of its factor: 2^64 divided by the golden
	// ratio.
	spread = 0x9e3779b97f4a7c15

	// step is the variable of the polynomials below, odd so that nothing is lost at their
	// lower ends: a multiplier for generators of random numbers (G. Steele, S. Vigna:
	// Computationally easy, spectrally good multipliers, 2021).
	step = 0xd1342543de82ef95
)

// A history is the path of the program: the branches that it took last. Branches that it
// did not take show on it by the branches that follow them.
//
// A core folds the path into the few bits of an index with shifts and XOR. Here each length
// has a polynomial over the branches' hashes in their order, modulo 2^64. One more branch
// multiplies it by a constant and removes the oldest. The upper bits of such a number give
// the index and the tag of a table.
type history struct {
	path  [remembered]uint64   // hashes of branches
	at    uint32               // position of the last one in path
	state [len(lengths)]uint64 // by length
	leave [len(lengths)]uint64 // the factor of a hash when it leaves
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

// hash returns 64 bits for a branch and the last lengths[i] branches of the path. The upper
// bits are the better ones.
func (h *history) hash(i int, addr uint64) uint64 {
	x := h.state[i] + addr*spread
	return (x ^ x>>31) * spread
}
