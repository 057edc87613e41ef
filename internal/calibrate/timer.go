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
	sampleTime = 75 * time.Microsecond // at least
	clockTime  = 25 * time.Microsecond // the same of the clock
	keptBest   = 5                     // samples that must agree
	fewest     = 12                    // samples of each program
	agreement  = 0.002                 // spread of the best samples that is good enough
	patience   = 4                     // budgets after which even the fewest samples are not waited for
)

// A program is a loop with its arguments.
type program struct {
	run     loop
	a, b, c unsafe.Pointer
	ops     float64 // operations in one iteration
	least   uint64  // iterations that a sample must have; 0 for as many as fill its time

	// Iterations in front of a sample. Reading the processor time enters the kernel,
	// which on some virtual machines empties the TLBs: of a working set of 8 MiB that
	// made loads a half slower.
	warm uint64
}

// A timing is what an operation of a program takes.
type timing struct {
	ns, cycles float64
	spread     float64 // of the best samples, as a share of the best, and what the clock adds to that
	behind     float64 // how much slower the clock was than the fastest so far, as a share
	samples    int
}

// error is how far the cycles may be off, as a share of them.
func (t *timing) error() float64 { return t.spread + t.behind }

// A timer is the one way in which programs are timed. It takes short samples of
// several programs in turn, drops those during which the processor time of the thread
// it runs on did not go on, and keeps the best of each. What disturbs a sample
// (interrupts, other programs on the same core, a cache that has to be filled again
// after they ran) can only make it longer; of many samples that are short beside a
// scheduler's time slice some are not disturbed, and the best ones agree. Their spread
// says how sure that is.
//
// Samples are timed by the clock on the wall. Processor time can make them too short:
// where the hypervisor takes processors away, the kernel has to guess how much of a
// sample that was (one was seen to be a fifth of what it was). And telling it is a
// system call that takes half a microsecond on some virtual machines, 2 % of a sample of
// the clock, of which only the least of many is known.
//
// In turn with the programs it times the clock that the core has meanwhile, which the
// time stamp counter or the nominal frequency do not tell: by chains of instructions
// that take a known number of cycles at least. Several kinds of them, as whoever shares
// the core, its other thread above all, takes the units away that one kind needs, for
// minutes perhaps; the fastest was disturbed least.
type timer struct {
	ctx      context.Context
	deadline time.Time // of all measurements
	overhead float64   // ns that reading the time adds to a sample
	around   float64   // ns of processor time more than go by: what reading that takes
	clocks   []timed
	fastest  float64 // ns of a cycle, the least so far
}

// A timed program has so many iterations in a sample.
type timed struct {
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
	t.around = median(more) // where the thread does not run in between, the least is far below 0
	for _, p := range clocks() {
		t.clocks = append(t.clocks, timed{p, t.iterations(&p, clockTime)})
	}
	return t
}

// threadTime returns the processor time that the calling thread has used, in ns.
func threadTime() int64 {
	var ts unix.Timespec
	// The call that does not tell Go's scheduler: it is over before that would
	// have mattered, and takes a third of the time.
	unix.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_THREAD_CPUTIME_ID, uintptr(unsafe.Pointer(&ts)), 0)
	return ts.Nano()
}

// read runs a program once and returns the ns that it took; those that went by with what
// runs in front of it, and those of processor time meanwhile.
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

// sample runs a program once and returns the ns that it took, and whether nothing came
// between: the processor time is then the same.
func (t *timer) sample(p *program, n uint64) (took float64, undisturbed bool) {
	took, elapsed, processor := read(p, n)
	const slack = 2000 // ns: a page fault of the clock's, or the like
	return took - t.overhead, math.Abs(processor-t.around-elapsed) <= 0.02*elapsed+slack
}

// take adds a sample of a program to its tally, if nothing came between.
func (t *timer) take(p *timed, to *tally) {
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

// iterations returns how many of them fill a sample. Finding that out warms the
// caches and predictors up.
func (t *timer) iterations(p *program, least time.Duration) uint64 {
	want, n := float64(least), uint64(1)
	for {
		took, _ := t.sample(p, n)
		if took >= want { // a page that has to be found, or a frequency to be changed, can take as long
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

// spread is how far apart the best samples are; NaN if there are too few.
func (a *tally) spread() float64 {
	if a.count < keptBest {
		return math.NaN()
	}
	return a.best[keptBest-1]/a.best[0] - 1
}

// measure times the clock and programs for as long as the budget lasts, or until the
// best samples of all of them agree; behind the deadline not at all. The first timing is
// the clock's, of a cycle; the others are the programs'.
func (t *timer) measure(budget time.Duration, programs ...program) []timing {
	all := make([]timed, len(programs))
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

// behind is how much longer a cycle was than the shortest so far, as a share: the clock
// may have changed, or all that shows it have been disturbed.
func (t *timer) behind(ns float64) float64 { return ns/t.fastest - 1 }

// enough says whether there are as many samples as are needed to say anything.
func enough(tallies []tally) bool {
	return !slices.ContainsFunc(tallies, func(a tally) bool { return a.count < keptBest })
}

// agreed says whether more samples would tell nothing new. If the clock was faster
// before, it may be that the additions are held up: the other thread of the core can
// do that to all of them for a while.
func (t *timer) agreed(tallies []tally) bool {
	for i := range tallies {
		if tallies[i].count < fewest || !(tallies[i].spread() <= agreement) {
			return false
		}
	}
	return tallies[0].best[0] <= t.fastest*(1+2*agreement)
}
