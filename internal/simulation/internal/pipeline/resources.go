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

// pending is the place of loads without an address or data, behind those of schedulers.
const pending = maxSchedulers - 1

// queues are a core's schedulers, where ops wait for their operands. Ops leave them in any
// order.
type queues struct {
	used    [maxSchedulers]int
	routes  [16]route      // by a hash of the ports
	turn    [16]int8       // by a hash of the ports: the scheduler that a micro-op went to last
	leaving [window]uint64 // by cycle: a byte for each scheduler
	first   int            // the scheduler that is first in turn in this cycle
	given   uint16         // the places in turn that were taken in this cycle
}

// add fills an entry of a scheduler from now until the op leaves it.
func (q *queues) add(scheduler int, now, until int64) {
	q.used[scheduler]++
	q.leaving[min(max(until, now+1), now+window-1)%window] += 1 << (8 * scheduler)
}

func (q *queues) advance(from, to int64) {
	q.first, q.given = q.first+bits.OnesCount16(q.given), 0
	for c := from + 1; c <= min(to, from+window); c++ {
		left := q.leaving[c%window]
		if left == 0 {
			continue
		}
		for i := 0; left != 0; i++ {
			q.used[i&(maxSchedulers-1)] -= int(left & 0xff)
			left >>= 8
		}
		q.leaving[c%window] = 0
	}
}

// A route is the schedulers of micro-ops that need some of a set of ports.
type route struct {
	home ports
	list uint8 // a bit for each scheduler
}

// feeding returns the schedulers that feed some of a set of ports: a bit for each.
func (q *queues) feeding(list []scheduler, home ports) uint8 {
	r := &q.routes[uint32(home*0x9e3779b1)>>28]
	if r.home != home {
		r.home, r.list = home, 0
		for i := range list {
			if list[i].ports&home != 0 {
				r.list |= 1 << i
			}
		}
	}
	return r.list
}

// next returns the scheduler of a computation, or noScheduler if it has no room. They are taken
// in turn. One that a micro-op cannot use is kept for the others of the cycle. Each is taken
// twice in a cycle at most.
func (q *queues) next(list []scheduler, home ports) int {
	n, may := len(list), uint16(q.feeding(list, home))
	first := q.first % n
	may = (may>>first | may<<(n-first)) & (1<<n - 1)
	places := (may | may<<n) &^ q.given
	if places == 0 {
		return noScheduler
	}
	place := bits.TrailingZeros16(places)
	i := (first + place) % n
	if q.used[i] >= list[i].size {
		return noScheduler
	}
	q.given |= 1 << place
	return i
}

// choose returns a scheduler that feeds some of a set of ports, or noScheduler if none has
// room: the one with the most room, of several the next in turn.
func (q *queues) choose(list []scheduler, home ports) int {
	may := q.feeding(list, home)
	turn := &q.turn[uint32(home*0x9e3779b1)>>28]
	// A key is below 0 if the scheduler has room. The least one has the most; its last bits are
	// the place in turn and the number.
	least := 0
	for rest := may; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros8(rest)
		least = min(least, (q.used[i]-list[i].size)*maxSchedulers*maxSchedulers+(i-int(*turn)-1)&(maxSchedulers-1)*maxSchedulers+i)
	}
	if least == 0 {
		return noScheduler
	}
	best := least & (maxSchedulers - 1)
	*turn = int8(best)
	return best
}

// units are the execution ports.
type units struct {
	busy  [32][window / 64]uint64 // by port: a bit for each cycle
	now   int64
	usage [32]uint32 // by port: recent work
	taken int
	ideal bool // all are always free
}

func (u *units) advance(from, to int64) {
	for w := from >> 6; w < min(to>>6, from>>6+window/64); w++ { // whole words behind
		for i := range u.busy {
			u.busy[i][w%(window/64)] = 0
		}
	}
	u.now = to
}

// reserve reserves one of the ports for hold cycles, as early as possible from a cycle on. It
// returns that cycle and the port.
func (u *units) reserve(from int64, of ports, hold int64) (at int64, port ports) {
	if u.ideal {
		return from, of & -of
	}
	if hold == 1 && from < u.now+window-65 {
		at, i := from, u.freeNow(from, of)
		if i < 0 {
			if at = u.free(from+1, of); at < u.now+window-65 {
				i = u.freeNow(at, of)
			}
		}
		if i >= 0 {
			u.take(i)
			u.busy[i][uint64(at)/64%(window/64)] |= 1 << (uint64(at) % 64)
			return at, 1 << i
		}
	}
	for at = from; ; at++ {
		if at = u.free(at, of); at+hold >= u.now+window-64 {
			return from, 0
		}
		free := u.freeAt(at, of)
		for c := at + 1; c < at+hold && free != 0; c++ {
			free = u.freeAt(c, free)
		}
		if free == 0 {
			continue
		}
		i := u.leastUsed(free)
		u.take(i)
		for c := uint64(at); c < uint64(at+hold); c++ {
			u.busy[i][c/64%(window/64)] |= 1 << (c % 64)
		}
		return at, 1 << i
	}
}

// free returns the first cycle from one on when one of the ports is free.
func (u *units) free(from int64, of ports) int64 {
	mask := ^uint64(0) << (uint64(from) % 64)
	for c := from &^ 63; c < u.now+window; c += 64 {
		all, w := mask, uint64(c)/64%(window/64)
		for rest := of; rest != 0; rest &= rest - 1 {
			all &= u.busy[bits.TrailingZeros32(uint32(rest))&31][w]
		}
		if free := mask &^ all; free != 0 {
			return c + int64(bits.TrailingZeros64(free))
		}
		mask = ^uint64(0)
	}
	return u.now + window
}

// freeAt returns those of the ports that are free in a cycle.
func (u *units) freeAt(at int64, of ports) ports {
	w, bit := uint64(at)/64%(window/64), uint64(at)%64
	for rest := of; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros32(uint32(rest)) & 31
		of &^= ports(u.busy[i][w]>>bit&1) << i
	}
	return of
}

// release gives back a port that was reserved for one cycle.
func (u *units) release(at int64, port ports) {
	if at < u.now+window-64 && !u.ideal {
		u.busy[bits.TrailingZeros32(uint32(port))&31][uint64(at)/64%(window/64)] &^= 1 << (uint64(at) % 64)
	}
}

// freeNow returns the port with the least work of those that are free in a cycle; -1 if none is.
func (u *units) freeNow(at int64, of ports) int {
	w, bit, best := uint64(at)/64%(window/64), uint64(at)%64, -1
	for rest := of; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros32(uint32(rest)) & 31
		if u.busy[i][w]>>bit&1 == 0 && (best < 0 || u.usage[i] < u.usage[best]) {
			best = i
		}
	}
	return best
}

// leastUsed chooses a port as cores do: the one with the least work.
func (u *units) leastUsed(of ports) int {
	best := bits.TrailingZeros32(uint32(of)) & 31
	for rest := of & (of - 1); rest != 0; rest &= rest - 1 {
		if i := bits.TrailingZeros32(uint32(rest)) & 31; u.usage[i] < u.usage[best] {
			best = i
		}
	}
	return best
}

// take notes that a port got more work. Work becomes less important with time.
func (u *units) take(port int) {
	u.usage[port&31]++
	if u.taken++; u.taken == 256 {
		u.taken = 0
		for i := range u.usage {
			u.usage[i] /= 2
		}
	}
}
