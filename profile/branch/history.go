package branch

// lengths are the numbers of taken branches by which the tagged tables predict.
var lengths = [tables]int{2, 4, 7, 11, 17, 26, 40, 62, 96, 148, 230, 360}

const (
	tables = 12

	// remembered is the number of branches of the path that are kept, a power of two
	// above the longest of lengths.
	remembered = 512

	// spread is an odd number whose products have their bits mixed well: 2^64 divided
	// by the golden ratio.
	spread = 0x9e3779b97f4a7c15
)

// A history is the path on which the program came: the branches that it took last.
// Those not taken are on it by what came instead of them.
//
// A core folds the path into the few bits of an index by shifting and XOR. Here each
// length has a polynomial over the branches' hashes in their order, modulo 2^64: one
// more branch multiplies it by a constant, and takes the oldest out. All that a table
// needs, its index and its tag, is in the upper bits of one such number.
type history struct {
	path  [remembered]uint64 // hashes of branches
	at    uint32             // where the last one is in path
	state [tables]uint64     // by length
	leave [tables]uint64     // what the oldest has been multiplied by when it leaves
}

// step is the polynomials' variable: odd, so that nothing is lost at the lower end.
const step = 0xd1342543de82ef95

func (h *history) init() {
	for i, n := range lengths {
		h.leave[i] = 1
		for range n {
			h.leave[i] *= step
		}
	}
}

// add adds a taken branch to the path.
func (h *history) add(branch uint64) {
	branch = (branch ^ branch>>29) * spread
	branch ^= branch >> 32
	h.at++
	h.path[h.at%remembered] = branch
	for i, n := range lengths {
		oldest := h.path[(h.at-uint32(n))%remembered]
		h.state[i] = h.state[i]*step + branch - oldest*h.leave[i]
	}
}

// hash returns 64 bits for a branch and the part of the path that table i sees, of
// which the upper ones are the better.
func (h *history) hash(i int, addr uint64) uint64 {
	x := h.state[i] + addr*spread
	return (x ^ x>>31) * spread
}
