package pipeline

import "math/bits"

// A ring is a queue of entries that become free in the order in which they were
// taken. It holds the cycles in which they do.
type ring struct {
	times []int64
	at    int
}

// reset returns the ring with n entries, all free.
func (r ring) reset(n int) ring {
	if len(r.times) != n {
		return ring{times: make([]int64, n)}
	}
	clear(r.times)
	return ring{times: r.times}
}

// next returns when the next n entries are free.
func (r *ring) next(n int) int64 {
	i := r.at + min(n, len(r.times)) - 1
	if i >= len(r.times) {
		i -= len(r.times)
	}
	return r.times[i]
}

// put takes the next entry until a cycle.
func (r *ring) put(until int64) {
	r.times[r.at] = until
	if r.at++; r.at == len(r.times) {
		r.at = 0
	}
}

// window is how many cycles ahead it is known what is in use. Beyond it there is
// always room.
const window = 1 << 13

// A pool is a scheduler: entries are left in any order.
type pool struct {
	size, used int
	leaving    [window]uint16 // by cycle
}

// add takes an entry from now until it is left.
func (p *pool) add(now, until int64) {
	p.used++
	p.leaving[min(max(until, now+1), now+window-1)%window]++
}

func (p *pool) advance(from, to int64) {
	for c := from + 1; c <= min(to, from+window); c++ {
		p.used -= int(p.leaving[c%window])
		p.leaving[c%window] = 0
	}
}

// units are the execution ports.
type units struct {
	busy  [window]ports // by cycle
	now   int64
	usage [32]uint32 // by port: how often it was taken of late
	taken int
}

func (u *units) advance(from, to int64) {
	for c := from; c < min(to, from+window); c++ {
		u.busy[c%window] = 0
	}
	u.now = to
}

// reserve takes one of the ports for hold cycles, as early as it is free from a cycle
// on, and returns that cycle and the port.
func (u *units) reserve(from int64, of ports, hold int64) (at int64, port ports) {
	for at = from; at+hold < u.now+window; at++ {
		free := of
		for c := at; c < at+hold; c++ {
			free &^= u.busy[c%window]
		}
		if free == 0 {
			continue
		}
		port = u.leastUsed(free)
		for c := at; c < at+hold; c++ {
			u.busy[c%window] |= port
		}
		return at, port
	}
	return from, 0
}

// release gives back a port that was reserved for one cycle.
func (u *units) release(at int64, port ports) {
	if at < u.now+window {
		u.busy[at%window] &^= port
	}
}

// leastUsed chooses a port as cores do: that with the least work given to it.
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
