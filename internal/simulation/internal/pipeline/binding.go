package pipeline

import "math/bits"

// maxBound is how many ports a core may have that binds micro-ops to ports at dispatch.
const maxBound = 16

// binding is the choice of a port at dispatch, as Intel's cores do it: A. Abel and J.
// Reineke, "uiCA" (ICS 2022), section 4.2. The micro-ops of even slots of a cycle get the
// port with the fewest waiting micro-ops. Those of odd slots get the one with the second
// fewest, unless the difference is large. Loads alternate.
type binding struct {
	waiting [maxBound]int16 // micro-ops that wait, by port, as of the beginning of the cycle
	added   [maxBound]int16 // more, in this cycle
	any     bool            // added has some
	leaving [window][maxBound / 8]uint64
	load    ports // of the latest load
}

// imbalance is a difference between two ports, in waiting micro-ops. From it on all
// micro-ops get the port with fewer.
const imbalance = 3

func (b *binding) advance(from, to int64) {
	if b.any {
		for i, n := range b.added {
			b.waiting[i] += n
		}
		b.added, b.any = [maxBound]int16{}, false
	}
	for c := from + 1; c <= min(to, from+window); c++ {
		l := &b.leaving[c%window]
		for word := range l {
			for rest := l[word]; rest != 0; {
				i := bits.TrailingZeros64(rest) / 8
				b.waiting[word*8+i] -= int16(rest >> (8 * i) & 0xff)
				rest &^= 0xff << (8 * i)
			}
			l[word] = 0
		}
	}
}

// choose returns the port for a micro-op in a slot of the cycle.
func (b *binding) choose(of ports, slot int) ports {
	if of&(of-1) == 0 {
		return of
	}
	first, second := -1, -1
	for rest := of; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros32(uint32(rest))
		switch {
		case first < 0 || b.waiting[i] <= b.waiting[first]:
			first, second = i, first
		case second < 0 || b.waiting[i] <= b.waiting[second]:
			second = i
		}
	}
	if slot&1 == 1 && b.waiting[second]-b.waiting[first] < imbalance {
		first = second
	}
	return 1 << first
}

// alternate returns the port of a load: the next one of those for loads.
func (b *binding) alternate(of ports) ports {
	after := of & -(b.load << 1)
	if after == 0 {
		after = of
	}
	b.load = after & -after
	return b.load
}

// add notes that a micro-op waits for a port until a cycle.
func (b *binding) add(port ports, now, until int64) {
	i := bits.TrailingZeros32(uint32(port))
	b.added[i]++
	b.any = true
	b.leaving[min(max(until, now+1), now+window-1)%window][i/8] += 1 << (i % 8 * 8)
}

// remove takes back add.
func (b *binding) remove(port ports, now, until int64) {
	i := bits.TrailingZeros32(uint32(port))
	if until <= now || b.added[i] == 0 {
		return
	}
	b.added[i]--
	b.leaving[min(max(until, now+1), now+window-1)%window][i/8] -= 1 << (i % 8 * 8)
}
