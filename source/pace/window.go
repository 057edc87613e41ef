package pace

// A window is a short piece of the run that is executed by two machines: one that
// predicts branches perfectly, and one that does so as the predictor does. Windows
// are at random places, as otherwise they might be at the same ones of a loop; the random
// numbers are the same each time.
type window struct {
	ideal, real machine
	random      uint64
	seen        int64 // blocks
	wait        int   // blocks until the next window begins
	left        int   // blocks of the window that are still to come
	record      *record
}

// A record is what was executed in the windows of a process.
type record struct {
	steps []step
	room  *int // steps that there is room for in all records
}

// maxSteps bounds what is recorded of all processes. It is more than windows have of
// some sixty million blocks.
const maxSteps = 1 << 22

// add records a step; it returns false if there is no room.
func (r *record) add(s step) bool {
	if *r.room == 0 {
		return false
	}
	*r.room--
	r.steps = append(r.steps, s)
	return true
}

// A step is a block that was executed in a window, up to an instruction that may have
// jumped. Steps are kept to be executed once more when it is known which loads miss.
type step struct {
	block  *block
	n      uint16 // instructions
	begins bool   // the window
	counts bool   // the machines are full
	taken  bool
	missed bool
}

const (
	windowBlocks = 400  // of a window
	warmBlocks   = 100  // of them the first, in which the machines fill, and which do not count
	leastGap     = 400  // blocks between windows on the average, at the beginning
	mostGap      = 5600 // and later
	growth       = 64   // blocks after which the gap is one block longer
	seed         = 0x9e3779b97f4a7c15
)

// schedule decides when the next window begins. Programs that execute little are looked
// at more closely. The random numbers are those of xorshift64:
// G. Marsaglia, Xorshift RNGs (2003).
func (w *window) schedule() {
	x := w.random
	x ^= x << 13
	x ^= x >> 7
	x ^= x << 17
	w.random = x
	gap := min(leastGap+w.seen/growth, mostGap)
	w.wait = int(gap/2 + int64(x%uint64(gap)))
}

// end ends a window before its time, where it is not known how the process went on.
func (w *window) end() {
	if w.left > 0 {
		w.left = 0
		w.schedule()
	}
}

// block goes on with a block of which the first instructions were executed: whether the
// last of these jumped, and was mispredicted.
func (w *window) block(b *block, n int, taken, missed bool) {
	w.seen++
	if w.left == 0 {
		if w.wait--; w.wait > 0 {
			return
		}
		w.begin()
	}
	w.execute(step{b, uint16(n), w.left == windowBlocks, w.counts(), taken, missed})
	if w.left--; w.left == 0 {
		w.schedule()
	}
}

// turn goes on with one more turn of an instruction that repeats. The machines know the
// first one; what the others take cannot be done at the same time as something else.
func (w *window) turn(in *instruction) {
	if w.counts() {
		in.timed++
		in.ideal += in.turn
		in.real += in.turn
		in.late += in.turn
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
	recorded := w.record.add(s)
	insts := s.block.insts[:s.n]
	for i, in := range insts {
		last := i == len(insts)-1
		ideal := w.ideal.Execute(&in.op, s.taken && last, false)
		real := w.real.Execute(&in.op, s.taken && last, s.missed && last)
		if s.counts {
			in.timed++
			in.ideal += ticksOf(ideal)
			in.real += ticksOf(real)
			if !recorded { // it is not known what misses add
				in.late += ticksOf(real)
			}
		}
	}
}
