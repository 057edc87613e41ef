package branch

// depth is the number of return addresses that a core remembers: 32 on AMD's since
// Zen 2 (software optimization guides) and 16 on Intel's until Cypress Cove.
const depth = 32

// returns is the stack of return addresses. Calls nested deeper overwrite the oldest.
type returns struct {
	stack [depth]uint64
	top   uint32
	held  int // of the addresses on the stack that are still to be returned to
}

func (r *returns) push(next uint64) {
	r.top++
	r.stack[r.top%depth] = next
	r.held = min(r.held+1, depth)
}

// pop returns the address on top, and whether there was one.
func (r *returns) pop() (next uint64, ok bool) {
	if r.held == 0 {
		return 0, false
	}
	next = r.stack[r.top%depth]
	r.top--
	r.held--
	return next, true
}
