package pipeline

import (
	"fmt"
	"math"
	"strconv"

	"github.com/cyclestack/cyclestack/internal/disasm"
)

// A Block is code that is executed again and again: as a loop, whose last instruction jumps
// back, or as copies one behind the other.
type Block struct {
	same  bool // see Same
	arm   bool // instructions of arm64
	ops   []Op
	taken []bool // by instruction: the path jumps there; nil if only the last one does
	size  uint64 // bytes of a copy
	loop  bool

	crossed bool // see findJumps
}

// blockStart is the address of a block's code.
const blockStart = 0x10000

// NewBlock decodes the code of a block. The error names the first byte that is no
// instruction.
func NewBlock(code []byte, loop bool) (*Block, error) {
	b := &Block{size: uint64(len(code)), loop: loop}
	list, err := disasm.New(disasm.AMD64, disasm.ATT)
	if err != nil {
		return nil, err
	}
	d, err := NewDecoder(disasm.AMD64)
	if err != nil {
		return nil, err
	}
	for at := 0; at < len(code); {
		i := list.Decode(code[at:], blockStart+uint64(at))
		if i.Bad {
			return nil, fmt.Errorf("byte %d is not an instruction", at)
		}
		b.ops = append(b.ops, d.Op(i, code[at:]))
		at += i.Len
	}
	if len(b.ops) == 0 {
		return nil, fmt.Errorf("the block has no instruction")
	}
	return b, nil
}

// RegisterName returns the name of a register that instructions of the block have.
func (b *Block) RegisterName(r Register) string {
	if !b.arm {
		return r.String()
	}
	switch {
	case r == NoRegister:
		return ""
	case r < Carry:
		return "x" + strconv.Itoa(int(r-RAX))
	case r == Carry || r == Flags:
		return "nzcv"
	case r == armSP:
		return "sp"
	case r >= moreGeneral:
		return "x" + strconv.Itoa(int(r-moreGeneral)+16)
	}
	return "v" + strconv.Itoa(int(r-XMM0))
}

// Ops returns the instructions of a block.
func (b *Block) Ops() []Op { return b.ops }

// Instructions executed before a block is timed, and while it is timed, at least.
const (
	warmOps  = 1000
	timedOps = 800
)

// Same lets all general registers and all memory hold one number when the block starts. The
// measurements of BHive do so: Y. Chen and others, "BHive: a benchmark suite and
// measurement framework for validating x86-64 basic block performance models" (IISWC 2019).
// Otherwise different registers are taken to point to different memory.
func (b *Block) Same() { b.same = true }

// bhiveNumber is the number of BHive's measurements.
const bhiveNumber = 0x2324000

// Cycles returns the cycles per execution of a block that is executed for long. It ends as
// soon as the cycles of executions repeat.
func (m *Machine) Cycles(b *Block) float64 {
	if m.values.same = 0; b.same {
		m.values.same = bhiveNumber
	}
	m.Reset()
	m.links.forget()
	m.begin(b)
	warm, timed := rounds(b)
	least := min(b.settles()/len(b.ops)+16, warm+timed)
	var last repeats
	var start progress
	for n := range warm + timed {
		if n == warm {
			start = m.progress()
		}
		m.round(b, uint64(n))
		last.add(m.progress())
		if n >= least && n%2 == 0 {
			if p := last.period(); p > 0 {
				m.rounds = n + 1
				return last.mean(p)
			}
			if (m.core.decoders == 0 || b.loop) && last.settled() {
				m.rounds = n + 1
				return last.mean(2 * halfSettled)
			}
		}
	}
	m.rounds = warm + timed
	return float64(m.progress().since(start)) / float64(timed)
}

// begin finds where the code of a block comes from.
func (m *Machine) begin(b *Block) {
	m.findCrowded(b)
	m.uncached, m.streaming = !b.loop, len(m.crowded) == 0 && m.streams(b)
	m.queued = m.streaming || b.loop && b.Jumps() == 1 && m.core.microOps(b) <= m.core.streams
	if m.width = m.core.fetch; m.core.cached > 0 && b.loop && m.core.microOps(b) > m.core.cached {
		m.width = m.core.decode
	}
}

// rounds returns how often a block is executed before it is timed, and while it is timed.
func rounds(b *Block) (warm, timed int) { return warmOps/len(b.ops) + 8, timedOps/len(b.ops) + 24 }

// settles returns how many instructions are executed at least before the cycles of executions
// can be seen to repeat: most queues of most cores are in their final state then. Loads learn
// from stores, so blocks with both take longer.
func (b *Block) settles() int {
	const alone, learning = 300, 700
	loads, stores := false, false
	for i := range b.ops {
		loads, stores = loads || b.ops[i].Loads, stores || b.ops[i].Stores
	}
	if loads && stores {
		return learning
	}
	return alone
}

// repeats are when the latest executions of a block ended.
type repeats struct {
	ends [64]progress
	n    int
}

// progress is how far the parts of a core have come.
type progress struct{ fetched, dispatched, retired, committed int64 }

func (m *Machine) progress() progress {
	return progress{m.fetched, m.now, m.retired, m.memory.committed}
}

// since returns the cycles that the slowest part took. The others have to wait for it as soon
// as the queues between them are full or empty.
func (p progress) since(start progress) int64 {
	return max(p.fetched-start.fetched, p.dispatched-start.dispatched, p.retired-start.retired, p.committed-start.committed)
}

func (r *repeats) add(p progress) {
	r.ends[r.n%len(r.ends)] = p
	r.n++
}

// end returns the end of an execution, so many before the latest.
func (r *repeats) end(back int) *progress { return &r.ends[uint(r.n-1-back)%uint(len(r.ends))] }

// at returns the cycles of an execution.
func (r *repeats) at(back int) int64 { return r.end(back).retired - r.end(back+1).retired }

// steady says whether all parts of the core were equally fast in the latest executions: no
// queue fills or empties.
func (r *repeats) steady(n int) bool {
	a, b := r.end(0), r.end(n)
	d := a.retired - b.retired
	return a.dispatched-b.dispatched == d && a.fetched-b.fetched == d
}

// halfSettled is how many executions are compared with as many before them.
const halfSettled = 12

// settled says whether no part of the core changed its speed by half a percent lately.
// Executions that never repeat end so.
func (r *repeats) settled() bool {
	if r.n <= 2*halfSettled {
		return false
	}
	now, middle, before := r.end(0), r.end(halfSettled), r.end(2*halfSettled)
	least, most := int64(math.MaxInt64), int64(0)
	for _, d := range [...]int64{
		now.retired - middle.retired, now.dispatched - middle.dispatched, now.fetched - middle.fetched,
		middle.retired - before.retired, middle.dispatched - before.dispatched, middle.fetched - before.fetched,
	} {
		least, most = min(least, d), max(most, d)
	}
	return (most-least)*200 <= least
}

// period returns after how many executions their cycles repeat, 0 if that is not seen. They
// have to repeat for some 30 executions.
func (r *repeats) period() int {
	const longest, times, least = 16, 3, 30
	for p := 1; p <= longest; p++ {
		span := (max(times*p, least)+p-1)/p*p + p
		if span+1 > min(r.n, len(r.ends)) {
			return 0
		}
		if !r.steady(span - p) {
			continue
		}
		i := 0
		for i < span-p && r.at(i) == r.at(i+p) {
			i++
		}
		if i == span-p {
			return p
		}
	}
	return 0
}

// mean returns the mean of the latest executions. If stores reach the cache more slowly than
// they retire, that is what a full store queue will allow.
func (r *repeats) mean(n int) float64 {
	sum := float64(r.end(0).retired - r.end(n).retired)
	span := (min(r.n, len(r.ends)) - 1) / n * n
	written := float64(r.end(0).committed-r.end(span).committed) / float64(span)
	return max(sum/float64(n), written)
}

// round executes a block once. Copies of unrolled code have addresses of their own.
func (m *Machine) round(b *Block, n uint64) {
	m.shift = 0
	if !b.loop {
		m.shift = n * b.size
	}
	for i := range b.ops {
		m.Execute(&b.ops[i], b.jumps(i), false)
	}
	m.shift = 0
}
