package pipeline

import "math/bits"

// A ring is a queue whose entries become free in the order of filling. It holds the cycles
// of their release.
type ring struct {
	times []int64
	at    int
}

// newRing returns a queue of n entries, all free.
func newRing(n int) ring { return ring{times: make([]int64, n)} }

// next returns when the next n entries are free.
func (r *ring) next(n int) int64 {
	if len(r.times) == 0 {
		return 0
	}
	i := r.at + min(n, len(r.times)) - 1
	if i >= len(r.times) {
		i -= len(r.times)
	}
	return r.times[i]
}

// put fills the next entry until a cycle.
func (r *ring) put(until int64) {
	r.times[r.at] = until
	if r.at++; r.at == len(r.times) {
		r.at = 0
	}
}

// window is how many cycles ahead the use of ports is known. Beyond it there is always
// room.
const window = 1 << 12

// maxSchedulers is how many a core may have.
const maxSchedulers = 8

// queues are a core's schedulers, where ops wait for their operands. Ops leave them in any
// order.
type queues struct {
	used    [maxSchedulers]int
	turn    [16]int8       // by a hash of ports: the scheduler that an op for them went to last
	leaving [window]uint64 // by cycle: a byte for each scheduler
}

// add fills an entry of a scheduler from now until the op leaves it.
func (q *queues) add(scheduler int, now, until int64) {
	q.used[scheduler]++
	q.leaving[min(max(until, now+1), now+window-1)%window] += 1 << (8 * scheduler)
}

func (q *queues) advance(from, to int64) {
	for c := from + 1; c <= min(to, from+window); c++ {
		left := q.leaving[c%window]
		if left == 0 {
			continue
		}
		for i := range q.used {
			q.used[i] -= int(left >> (8 * i) & 0xff)
		}
		q.leaving[c%window] = 0
	}
}

// choose returns a scheduler of those that some ports belong to, or noScheduler if none has
// room. It chooses round robin, separately for each set of ports.
func (q *queues) choose(list []scheduler, home ports) int {
	turn := &q.turn[uint32(home*0x9e3779b1)>>28]
	i := int(*turn)
	for range list {
		if i++; i >= len(list) {
			i = 0
		}
		if s := &list[i]; s.ports&home != 0 && s.size > q.used[i] {
			*turn = int8(i)
			return i
		}
	}
	return noScheduler
}

// units are the execution ports.
type units struct {
	busy  [window]ports // by cycle
	now   int64
	usage [32]uint32 // by port: recent work
	taken int
	ideal bool // all are always free
}

func (u *units) advance(from, to int64) {
	for c := from; c < min(to, from+window); c++ {
		u.busy[c%window] = 0
	}
	u.now = to
}

// reserve reserves one of the ports for hold cycles, as early as it is free from a cycle
// on, and returns that cycle and the port.
func (u *units) reserve(from int64, of ports, hold int64) (at int64, port ports) {
	if u.ideal {
		return from, of & -of
	}
	single := of&(of-1) == 0
	for at = from; at+hold < u.now+window; at++ {
		free, c := of, at
		for ; c < at+hold && free != 0; c++ {
			free &^= u.busy[c%window]
		}
		if free != 0 {
			port = u.leastUsed(free)
			for c := at; c < at+hold; c++ {
				u.busy[c%window] |= port
			}
			return at, port
		}
		if single {
			at = c - 1 // in use there
		}
	}
	return from, 0
}

// release gives back a port that was reserved for one cycle.
func (u *units) release(at int64, port ports) {
	if at < u.now+window && !u.ideal {
		u.busy[at%window] &^= port
	}
}

// leastUsed chooses a port as cores do: the one with the least work.
func (u *units) leastUsed(of ports) ports {
	best := bits.TrailingZeros32(uint32(of))
	for rest := of & (of - 1); rest != 0; rest &= rest - 1 {
		if i := bits.TrailingZeros32(uint32(rest)); u.usage[i] < u.usage[best] {
			best = i
		}
	}
	u.usage[best]++
	if u.taken++; u.taken == 256 {
		u.taken = 0
		for i := range u.usage {
			u.usage[i] /= 2
		}
	}
	return 1 << best
}
