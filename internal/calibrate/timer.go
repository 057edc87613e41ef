//go:build linux && (amd64 || arm64 || ppc64le || riscv64)

package calibrate

import (
	"context"
	"math"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// How samples are taken: see timer.
const (
	sampleTime = 75 * time.Microsecond // the least
	clockTime  = 25 * time.Microsecond // the same of the clock
	keptBest   = 5                     // samples that must agree
	fewest     = 12                    // samples of each program, at least
	agreement  = 0.002                 // spread of the best samples that is good enough
	patience   = 4                     // budgets; then it does not wait for the least number of samples either
)

// A program is a loop with its arguments.
type program struct {
	run     loop
	a, b, c unsafe.Pointer
	ops     float64 // operations in one iteration
	least   uint64  // iterations that a sample must have; 0 for as many as fill its time

	// Iterations in front of a sample. Reading the processor time enters the kernel, which
	// on some virtual machines empties the TLBs: with a working set of 8 MiB that made
	// loads a half slower.
	warm uint64
}

// A timing is the time of an operation of a program.
type timing struct {
	ns, cycles float64
	spread     float64 // of the best samples, as a share of the best, with the clock's own
	behind     float64 // how much slower the clock was than the fastest so far, as a share
	samples    int
}

// error is how far the cycles may be off, as a share of them.
func (t *timing) error() float64 { return t.spread + t.behind }

// A timer times programs. It takes short samples of several programs, one after the other,
// and keeps the best of each. Samples with interruptions of the thread are dropped.
// Disturbances can only make a sample longer: interrupts, other programs on the same core, a
// cache that they emptied. Many samples are much shorter than a scheduler's time slice; some
// of them are not disturbed, and the best ones agree. Their spread says how certain the
// result is.
//
// Samples are timed by the wall clock. Processor time can make them too short: if the
// hypervisor takes processors away, the kernel guesses how much that was (once a fifth of the
// true time). Reading it is also a system call of half a microsecond on some virtual machines:
// 2 % of a sample of the clock, and only the least of many is known.
//
// In turn with the programs it times the core's current clock. The time stamp counter and
// the nominal frequency do not show that. It uses chains of instructions with a known
// least number of cycles. There are several kinds of them: the sibling thread may occupy
// the units of one kind for minutes. The fastest was disturbed least.
type timer struct {
	ctx      context.Context
	deadline time.Time // of all measurements
	overhead float64   // ns that reading the time adds to a sample
	around   float64   // ns of processor time beyond the sample: reading it
	clocks   []timedProgram
	fastest  float64 // ns of a cycle, the least so far
}

// A timedProgram has so many iterations in a sample.
type timedProgram struct {
	program
	n uint64
}

// newTimer returns a timer for the calling thread, which must stay on its core.
func newTimer(ctx context.Context, deadline time.Time) *timer {
	t := &timer{ctx: ctx, deadline: deadline, fastest: math.Inf(1), overhead: math.Inf(1)}
	nothing := program{run: func(uint64, unsafe.Pointer, unsafe.Pointer, unsafe.Pointer) {}}
	var more []float64
	for range 1000 {
		took, elapsed, processor := read(&nothing, 0)
		t.overhead, more = min(t.overhead, took), append(more, processor-elapsed)
	}
	t.around = median(more) // if the thread does not run in between, the least is far below 0
	for _, p := range clocks() {
		t.clocks = append(t.clocks, timedProgram{p, t.iterations(&p, clockTime)})
	}
	return t
}

// threadTime returns the processor time that the calling thread has used, in ns.
func threadTime() int64 {
	var ts unix.Timespec
	// The call does not inform Go's scheduler. It is over before that would matter, and
	// takes a third of the time.
	unix.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_THREAD_CPUTIME_ID, uintptr(unsafe.Pointer(&ts)), 0)
	return ts.Nano()
}

// read runs a program once and returns the ns of the program; those with the iterations in
// front of it; and the processor time of these.
func read(p *program, n uint64) (took, elapsed, processor float64) {
	before := threadTime()
	begin := time.Now()
	if p.warm > 0 {
		p.run(p.warm, p.a, p.b, p.c)
	}
	start := time.Now()
	p.run(n, p.a, p.b, p.c)
	end := time.Now()
	processor = float64(threadTime() - before)
	return float64(end.Sub(start)), float64(end.Sub(begin)), processor
}

// sample runs a program once and returns the ns that it took, and whether it was
// undisturbed: the processor time is then the same.
func (t *timer) sample(p *program, n uint64) (took float64, undisturbed bool) {
	took, elapsed, processor := read(p, n)
	const slack = 2000 // ns: a page fault of the clock's code, for example
	return took - t.overhead, math.Abs(processor-t.around-elapsed) <= 0.02*elapsed+slack
}

// take adds a sample of a program to its tally, if it was undisturbed.
func (t *timer) take(p *timedProgram, to *tally) {
	if took, undisturbed := t.sample(&p.program, p.n); undisturbed {
		to.add(took / (float64(p.n) * p.ops))
	}
}

// tick adds samples of the clock to a tally.
func (t *timer) tick(clock *tally) {
	for i := range t.clocks {
		t.take(&t.clocks[i], clock)
	}
}

// iterations returns how many of them fill a sample. Finding that out warms up the caches
// and predictors.
func (t *timer) iterations(p *program, least time.Duration) uint64 {
	want, n := float64(least), uint64(1)
	for {
		took, _ := t.sample(p, n)
		if took >= want { // a page fault or a change of frequency can take as long
			again, _ := t.sample(p, n)
			took = min(took, again)
		}
		if took >= want || n >= 1<<40 {
			return max(n, p.least)
		}
		grow := 2.0
		if took > want/100 {
			grow = min(1.1*want/took, 100)
		}
		n = uint64(math.Ceil(float64(n) * max(grow, 1.01)))
	}
}

// A tally holds the best samples of a program, the smallest first.
type tally struct {
	best  [keptBest]float64
	count int
}

func (a *tally) add(x float64) {
	if a.count < keptBest {
		a.best[a.count] = x
		slices.Sort(a.best[:a.count+1])
	} else if x < a.best[keptBest-1] {
		a.best[keptBest-1] = x
		slices.Sort(a.best[:])
	}
	a.count++
}

// spread is the spread of the best samples; NaN if there are too few.
func (a *tally) spread() float64 {
	if a.count < keptBest {
		return math.NaN()
	}
	return a.best[keptBest-1]/a.best[0] - 1
}

// measure times the clock and programs until the best samples of all agree, or the budget
// ends. After the deadline it does not measure at all. The first timing is the clock's,
// of a cycle; the others are the programs'.
func (t *timer) measure(budget time.Duration, programs ...program) []timing {
	all := make([]timedProgram, len(programs))
	late := t.late()
	for i := range programs {
		all[i].program = programs[i]
		if !late {
			all[i].n = t.iterations(&programs[i], sampleTime)
		}
	}
	tallies := make([]tally, 1+len(all))
	clock := &tallies[0]
	for start := time.Now(); !late && t.ctx.Err() == nil && !t.agreed(tallies); {
		if spent := time.Since(start); spent > budget && (enough(tallies) || spent > patience*budget || t.late()) {
			break
		}
		t.tick(clock)
		for i := range all {
			t.take(&all[i], &tallies[1+i])
		}
	}
	if clock.count > 0 {
		t.fastest = min(t.fastest, clock.best[0])
	}
	timings := make([]timing, len(tallies))
	for i := range tallies {
		a := &tallies[i]
		timings[i] = timing{ns: a.best[0], cycles: a.best[0] / clock.best[0], spread: a.spread(), samples: a.count}
		if i > 0 {
			timings[i].spread += clock.spread()
			timings[i].behind = t.behind(clock.best[0])
		}
	}
	return timings
}

// late says whether the time for measurements is over.
func (t *timer) late() bool { return time.Now().After(t.deadline) }

// behind is how much longer a cycle was than the shortest so far, as a share. Either the
// clock has changed, or all chains were disturbed.
func (t *timer) behind(ns float64) float64 { return ns/t.fastest - 1 }

// enough says whether there are enough samples to say anything.
func enough(tallies []tally) bool {
	return !slices.ContainsFunc(tallies, func(a tally) bool { return a.count < keptBest })
}

// agreed says whether more samples would not change the result. If the clock was faster
// before, the additions may be delayed: the sibling thread of the core can delay all of
// them for a while.
func (t *timer) agreed(tallies []tally) bool {
	for i := range tallies {
		if tallies[i].count < fewest || !(tallies[i].spread() <= agreement) {
			return false
		}
	}
	return tallies[0].best[0] <= t.fastest*(1+2*agreement)
}
