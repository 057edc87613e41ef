package pipeline

// Sandy Bridge's first-level cache has banks. Of two loads in a cycle from one bank of
// different sets, one is executed again: Intel 64 and IA-32 Architectures Optimization
// Reference Manual, on bank conflicts of the first-level data cache. The addresses agree in
// bits 2 to 5 then, and differ in bits 6 to 12. Haswell has no such conflicts.

// mostReplays is how often a load is executed again at most.
const mostReplays = 64

// banks are the addresses of the loads of recent cycles.
type banks struct {
	loads [64]bankLoad
}

// A bankLoad is the latest load of a cycle.
type bankLoad struct {
	cycle int64
	addr  uint64
}

// conflict reports whether a load of a cycle has to be executed again, and notes it if not.
// Addresses that are unknown numbers are far apart: they do not conflict.
func (b *banks) conflict(cycle int64, addr uint64) bool {
	l := &b.loads[uint64(cycle)%uint64(len(b.loads))]
	if l.cycle == cycle && near40(l.addr, addr) {
		if x := l.addr ^ addr; x>>2&0xf == 0 && x>>6&0x7f != 0 {
			return true
		}
	}
	*l = bankLoad{cycle, addr}
	return false
}

// near40 says whether two addresses are less than 2⁴⁰ apart, as real ones are.
func near40(a, b uint64) bool {
	const far = 1 << 40
	return a-b+far < 2*far
}

// replayed returns when a load is executed that meets others of its bank from a cycle on.
func (m *Machine) replayed(at int64, addr uint64, of ports) int64 {
	for again := 0; again < mostReplays && m.banks.conflict(at, addr); again++ {
		at, _ = m.units.reserve(at+1, of, 1)
	}
	return at
}
