//go:build linux && (amd64 || arm64 || ppc64le || riscv64)

package calibrate

import (
	"math/rand/v2"
	"unsafe"
)

// A chaser lays out lists of pointers through memory.
type chaser struct {
	random *rand.Rand
	order  []uint32
	at     unsafe.Pointer // where the last chase is

	list  *memory // list that lines has made, by number of lines; nil if it was overwritten
	count int
}

func newChaser() *chaser { return &chaser{random: rand.New(rand.NewPCG(1, 2))} }

// cycle lays out one list that visits count places of memory in random order and then
// begins again; place returns the address of each. The order is a random cyclic permutation
// (Sattolo's algorithm). So no prefetcher can predict the next place, and no part of the
// places is a list of its own.
func (c *chaser) cycle(base unsafe.Pointer, count int, place func(i int) int) program {
	c.forget()
	for len(c.order) < count {
		c.order = append(c.order, 0)
	}
	order := c.order[:count]
	for i := range order {
		order[i] = uint32(i)
	}
	for i := count - 1; i > 0; i-- {
		j := c.random.IntN(i)
		order[i], order[j] = order[j], order[i]
	}
	from := unsafe.Add(base, place(int(order[count-1])))
	for _, next := range order {
		to := unsafe.Add(base, place(int(next)))
		*(*uintptr)(from) = uintptr(to)
		from = to
	}
	c.at = from
	return program{run: loopChase, a: unsafe.Pointer(&c.at), ops: loadsPerChase}
}

// forget drops the list that lines has made, after something else has written to the
// memory.
func (c *chaser) forget() { c.list = nil }

// lines visits every line of the first size bytes, in an order like that of cycle. It makes
// the list of fewer lines longer that it made in the same memory before: each further line
// is inserted after a random one of those before it. That takes a small part of the time;
// for large lists, making them anew takes longer than following them.
func (c *chaser) lines(m *memory, size int) program {
	count := size / lineBytes
	if c.list != m || c.count > count {
		*(*uintptr)(m.at(0)) = uintptr(m.at(0))
		c.list, c.count = m, 1
	}
	for ; c.count < count; c.count++ {
		before, at := m.at(c.random.IntN(c.count)*lineBytes), m.at(c.count*lineBytes)
		*(*uintptr)(at) = *(*uintptr)(before)
		*(*uintptr)(before) = uintptr(at)
	}
	c.at = m.at(0)
	return program{run: loopChase, a: unsafe.Pointer(&c.at), ops: loadsPerChase}
}
