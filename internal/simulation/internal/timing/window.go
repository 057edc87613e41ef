package timing

import (
	"cmp"
	"slices"
)

// A window is a short piece of the run that two machines execute: one with perfect branch
// prediction, and one with the predictor's. Windows begin at random blocks, since otherwise
// they might always meet the same part of a loop. The random numbers are the same each
// time.
type window struct {
	ideal, real machine
	random      uint64
	seen        int64 // blocks
	wait        int   // blocks until the next window begins
	left        int   // blocks of the window that are still to come
	record      *record
}

// records are the steps of the windows of all processes. If they are full, every other window
// of each process is dropped. So the kept windows do not depend on the processes' order, which
// changes from run to run.
type records struct {
	list    []*record
	room    int   // for further steps
	every   int   // one of so many windows of a process is recorded: a power of two
	counted int64 // steps that count, of all windows
}

// A record is the steps of a process in its windows.
type record struct {
	of      *records
	steps   []step
	windows int // that have begun
}

// maxSteps bounds the recorded steps of all processes. It is more than the windows of one
// process have in some sixty million blocks.
const maxSteps = 1 << 22

func newRecords() *records { return &records{room: maxSteps, every: 1} }

// begin begins the record of a process.
func (r *records) begin() *record {
	one := &record{of: r}
	r.list = append(r.list, one)
	return one
}

// thin drops every other recorded window of each process.
func (r *records) thin() {
	r.every *= 2
	for _, one := range r.list {
		var kept []step
		windows := 0
		for _, s := range one.steps {
			if s.begins {
				windows++
			}
			if windows%2 == 0 {
				kept = append(kept, s)
			}
		}
		r.room += len(one.steps) - len(kept)
		one.steps = kept
	}
}

// add records a step, if its window is recorded.
func (r *record) add(s step) {
	if s.begins {
		r.windows++
	}
	if s.counts {
		r.of.counted++
	}
	for r.windows%r.of.every == 0 {
		if r.of.room > 0 {
			r.of.room--
			r.steps = append(r.steps, s)
			return
		}
		r.of.thin()
	}
}

// compare orders records by what was executed alone: the longest first.
func (r *record) compare(other *record) int {
	if c := cmp.Compare(len(other.steps), len(r.steps)); c != 0 {
		return c
	}
	return slices.CompareFunc(r.steps, other.steps, step.compare)
}

// A step is a block that was executed in a window, up to an instruction that may have
// jumped. Steps are kept and executed again when it is known which loads miss.
type step struct {
	first  *instruction
	n      uint16 // instructions
	begins bool   // the window
	counts bool   // the machines are full
	taken  bool
	missed bool
}

func (s step) insts() stretch { return stretch{s.first, int(s.n)} }

func (s step) compare(other step) int {
	return cmp.Or(cmp.Compare(s.first.number, other.first.number), cmp.Compare(s.n, other.n), cmp.Compare(s.flags(), other.flags()))
}

func (s step) flags() (bits int) {
	for i, flag := range [...]bool{s.begins, s.counts, s.taken, s.missed} {
		if flag {
			bits |= 1 << i
		}
	}
	return bits
}

const (
	windowBlocks = 400  // of a window
	warmBlocks   = 100  // the first of them, which fill the machines and do not count
	leastGap     = 400  // mean number of blocks between windows, at the beginning
	mostGap      = 5600 // and later
	growth       = 64   // the gap grows by one block for so many blocks
	seed         = 0x9e3779b97f4a7c15
)

// schedule decides when the next window begins. Programs that execute little have more
// windows for their length. The random numbers are those of xorshift64: G. Marsaglia,
// Xorshift RNGs (2003).
func (w *window) schedule() {
	x := w.random
	x ^= x << 13
	x ^= x >> 7
	x ^= x << 17
	w.random = x
	gap := min(leastGap+w.seen/growth, mostGap)
	w.wait = int(gap/2 + int64(x%uint64(gap)))
}

// end ends a window early, if it is not known how the process went on.
func (w *window) end() {
	if w.left > 0 {
		w.left = 0
		w.schedule()
	}
}

// block executes the instructions of a block. It is told whether the last of them jumped,
// and was mispredicted.
func (w *window) block(insts stretch, taken, missed bool) {
	w.seen++
	if w.left == 0 {
		if w.wait--; w.wait > 0 {
			return
		}
		w.begin()
	}
	w.execute(step{insts.first, uint16(insts.n), w.left == windowBlocks, w.counts(), taken, missed})
	if w.left--; w.left == 0 {
		w.schedule()
	}
}

// repeat adds one more repetition of a string instruction. The machines execute the first
// one; the time of the others does not overlap with other instructions.
func (w *window) repeat(in *instruction) {
	if w.counts() {
		in.timed++
		in.ideal += in.again
		in.real += in.again
	}
}

// counts reports whether the machines are full.
func (w *window) counts() bool { return w.left > 0 && w.left <= windowBlocks-warmBlocks }

func (w *window) begin() {
	w.ideal.Reset()
	w.real.Reset()
	w.left = windowBlocks
}

// execute executes a step.
func (w *window) execute(s step) {
	w.record.add(s)
	for i, in := range s.insts().all() {
		last := i == int(s.n)-1
		ideal := w.ideal.Execute(&in.op, s.taken && last, false)
		real := w.real.Execute(&in.op, s.taken && last, s.missed && last)
		if s.counts {
			in.timed++
			in.ideal += ticksOf(ideal)
			in.real += ticksOf(real)
		}
	}
}
