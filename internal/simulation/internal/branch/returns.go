package branch

// depth is the number of return addresses that are remembered: 32 on AMD's cores since
// Zen 2, by their software optimization guides. Intel's older ones have 16.
const depth = 32

// returns is the stack of return addresses: a ring, so that calls nested deeper overwrite
// the oldest ones. The returns from them find the addresses of other calls. These are right
// if a function calls itself from one place only.
type returns struct {
	stack [depth]uint64
	top   uint32
}

func (r *returns) push(next uint64) {
	r.top++
	r.stack[r.top%depth] = next
}

func (r *returns) pop() (next uint64) {
	next = r.stack[r.top%depth]
	r.top--
	return next
}
