//go:build linux && (amd64 || arm64 || ppc64le || riscv64)

package calibrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"github.com/cyclestack/cyclestack/internal/sorting"
)

// A bench is a calibration in progress, on the thread that is pinned for it.
type bench struct {
	ctx     context.Context
	options Options
	result  *Result
	timer   *timer
	chaser  *chaser
	big     *memory // for working sets of all sizes
	nodes   map[int][]int

	processors []int // that may be used, the one measured on first

	lives []float64 // half-lives of lines in the third level, in ns

	end time.Time
}

// A part is a part of the calibration: its share of the time relative to the others, and
// its function.
type part struct {
	what   string
	weight float64
	run    func(*bench, *stage) error
}

var parts = []part{
	{"clock", 1, (*bench).clock},
	{"latency of caches and memory", 18, (*bench).curve},
	{"finding pages", 8, (*bench).pages},
	{"small working sets again", 4, (*bench).again},
	{"branches, stores and divisions", 10, (*bench).costs},
	{"small working sets again", 4, (*bench).again},
	{"latency under load, and bandwidth", 15, (*bench).bandwidth},
}

// How long a calibration takes at most. It includes time outside any budget: getting memory
// from the kernel. Variables for tests.
var (
	fullTime  = 80 * time.Second
	quickTime = 9 * time.Second
)

// Run calibrates the machine. It measures on one processor and pins the calling goroutine's
// thread to it until the end; for bandwidth it uses the others as well. What could not be
// measured is in the result with the reason. The error is for what makes all of it
// impossible, such as ErrUnsupported, or the end of ctx.
func Run(ctx context.Context, options Options) (*Result, error) {
	b := &bench{ctx: ctx, options: options, chaser: newChaser(), nodes: nodes("/")}
	if !options.Pin {
		b.options.CPU = current()
	}
	processors, err := usable()
	if err != nil {
		return nil, err
	}
	// The processor that is measured on comes first.
	b.processors = append([]int{b.options.CPU}, slices.DeleteFunc(processors, func(p int) bool { return p == b.options.CPU })...)
	undo, err := pin(b.options.CPU)
	if err != nil {
		return nil, err
	}
	defer undo()
	if options.Realtime {
		if err := realtime(); err != nil {
			return nil, err
		}
	}
	// A collection would stop this thread in the middle of a sample.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	b.result = &Result{Schema: Schema, Time: time.Now().UTC().Truncate(time.Second), Quick: options.Quick,
		Logical: b.options.CPU, Node: nodeOf(b.nodes, b.options.CPU), Threads: len(b.processors),
		PageCurves: []PageCurve{}, Costs: []Figure{}, Bandwidth: []Bandwidth{}, Loaded: []Loaded{}, Notes: []string{}}
	if options.Realtime {
		b.note("measured before all other programs on its processor (real-time scheduling)")
	}
	limit := fullTime
	if options.Quick {
		limit = quickTime
	}
	b.end = time.Now().Add(limit)
	if err := b.allocate(); err != nil {
		return nil, err
	}
	defer b.big.free()
	b.timer = newTimer(ctx, b.end)
	return b.result, b.run(parts)
}

func (b *bench) run(parts []part) error {
	var left float64
	for _, p := range parts {
		left += p.weight
	}
	for _, p := range parts {
		if b.options.Progress != nil {
			b.options.Progress(p.what)
		}
		share := time.Duration(float64(time.Until(b.end)) * p.weight / left)
		// On a very busy machine samples are few, and a part's other work takes long; later
		// parts need some of the time, too.
		b.timer.deadline = time.Now().Add(share * 3 / 2)
		b.chaser.forget()
		if err := p.run(b, &stage{end: time.Now().Add(share)}); err != nil {
			return fmt.Errorf("%s: %w", p.what, err)
		}
		if err := b.ctx.Err(); err != nil {
			return err
		}
		left -= p.weight
	}
	b.result.Curve = b.judged()
	b.result.Levels = findLevels(b.result.Curve)
	b.result.Costs = append(b.result.Costs, lifetime(b.lives, b.result.Clock.Value))
	return nil
}

// judged returns the curve with the errors by the fastest clock of all.
func (b *bench) judged() []Point {
	curve := slices.Clone(b.result.Curve)
	for i := range curve {
		curve[i].Error += curve[i].Cycles * b.behind(&curve[i])
	}
	return curve
}

// behind is how much slower than the fastest the clock was during a point, as a share.
func (b *bench) behind(p *Point) Number { return Number(b.timer.behind(float64(p.Nanos / p.Cycles))) }

// allocate gets the memory for the largest working set.
func (b *bench) allocate() error {
	size := b.options.MaxSize
	if size == 0 {
		size = 512 << 20
		if b.options.Quick {
			size = 128 << 20
		}
	}
	if spare := spareMemory("/"); size > spare {
		b.note("memory is short: the largest working set is a quarter of what is available")
		size = spare
	}
	size = max(size/hugeStep*hugeStep, hugeStep)
	var err error
	if b.big, err = allocate(size, b.result.Node, true, time.Now().Add(time.Until(b.end)/8)); err != nil {
		return err
	}
	if len(b.big.bytes) < size {
		b.note("the kernel gives huge pages slowly: the largest working set is smaller for that")
	}
	b.result.Pages, b.result.PageBytes = b.big.pages, b.big.page
	if b.big.page == os.Getpagesize() {
		b.note("no huge pages: latencies of large working sets have the cost of finding pages in them")
	}
	return nil
}

func (b *bench) note(text string) { b.result.Notes = append(b.result.Notes, text) }

// A stage divides the time of a part among its measurements.
type stage struct {
	end  time.Time
	left int // measurements to come
}

// budget is the time for the next measurement, up to a limit. A measurement that ended
// early leaves more for the later ones.
func (s *stage) budget(most time.Duration) time.Duration {
	each := time.Until(s.end) / time.Duration(max(s.left, 1))
	s.left--
	return max(min(each, most), 2*time.Millisecond)
}

// tooFarApart is the spread of the best samples that a reported figure may have.
const tooFarApart = 0.25

// noTime is why something was not measured at all.
const noTime = "no sample in the time there was: the machine is too busy"

// doubt returns why a timing is not to be reported, or nothing.
func doubt(t timing) string {
	switch {
	case t.samples == 0:
		return noTime
	case t.samples < keptBest || math.IsNaN(t.spread):
		return fmt.Sprintf("only %d samples in the time there was", t.samples)
	case t.ns <= 0:
		return "shorter than the clock's resolution"
	case t.error() > tooFarApart:
		return farApart(t.samples, t.error())
	}
	return ""
}

func farApart(samples int, spread float64) string {
	by := "more than 100 %"
	if spread <= 1 {
		by = fmt.Sprintf("%.0f %%", 100*spread)
	}
	return fmt.Sprintf("the best of %d samples are %s apart: the machine is too busy", samples, by)
}

// clock measures the rate of cycles.
func (b *bench) clock(s *stage) error {
	b.timer.deadline = b.end // without it there is nothing
	t := b.timer.measure(s.budget(time.Second))[0]
	b.result.Clock = clockOf(t)
	if why := doubt(t); why != "" && b.ctx.Err() == nil {
		return errors.New(why) // nothing can be said in cycles
	}
	return b.ctx.Err()
}

// curve measures the latency of loads by the size of their working set.
func (b *bench) curve(s *stage) error {
	sizes := workingSets(len(b.big.bytes), b.options.Quick)
	s.left = len(sizes) + 2*len(b.nodes)
	for _, size := range sizes {
		b.result.Curve = append(b.result.Curve, b.point(s, b.big, size))
	}
	b.result.Levels = findLevels(b.judged())
	b.lifetimes()
	b.remote(s)
	return nil
}

// again measures the working sets that fit a core's caches once more, the most uncertain
// first. It keeps the better points. Other users of these caches, such as the sibling
// thread, may disturb all samples of a point for seconds. They do not always. The same
// holds for the clock of the core.
func (b *bench) again(s *stage) error {
	const most = 2 << 20
	small := b.result.Curve
	for len(small) > 0 && small[len(small)-1].Bytes > most {
		small = small[:len(small)-1]
	}
	order := make([]*Point, len(small))
	for i := range small {
		order[i] = &small[i]
	}
	sorting.Stable(order, func(p, q *Point) int { return cmp.Compare(b.doubtful(q), b.doubtful(p)) })
	s.left = 1 + len(order)
	if t := b.timer.measure(s.budget(100 * time.Millisecond))[0]; doubt(t) == "" && clockOf(t).Value > b.result.Clock.Value {
		b.result.Clock = clockOf(t)
	}
	for _, old := range order {
		if p := b.point(s, b.big, old.Bytes); b.better(&p, old) {
			*old = p
		}
	}
	b.lifetimes()
	return nil
}

// doubtful is how far a point may be off, as a share; without a latency it is infinite.
func (b *bench) doubtful(p *Point) float64 {
	if p.Why != "" {
		return math.Inf(1)
	}
	return p.uncertainty() + float64(b.behind(p))
}

// better says whether a point replaces an earlier measurement of the same. Disturbances
// make times longer, so the shorter one counts. If both agree, the one with more certain
// cycles counts: a disturbed clock makes too few cycles.
func (b *bench) better(p, old *Point) bool {
	if p.Why != "" || old.Why != "" {
		return p.Why == ""
	}
	if math.Abs(float64(p.Nanos/old.Nanos-1)) > certainEnough {
		return p.Nanos < old.Nanos
	}
	return b.doubtful(p) < b.doubtful(old)
}

// workingSets returns the sizes of the curve: four to the octave, two beyond
// 32 MiB; half as many when quick.
func workingSets(most int, quick bool) []int {
	var sizes []int
	for octave := 4 << 10; octave <= most; octave *= 2 {
		steps := 4
		if octave >= 32<<20 {
			steps = 2
		}
		if quick {
			steps /= 2
		}
		for i := range steps {
			if size := octave + octave/steps*i; size <= most {
				sizes = append(sizes, size)
			}
		}
	}
	return sizes
}

// longSample bounds the iterations of a chase in a sample that takes longer than samples
// have to: half a millisecond of memory latencies. A scheduler's time slice has room for
// several.
const longSample = 24

// point measures one working set.
func (b *bench) point(s *stage, m *memory, size int) Point {
	const once = 8 << 20 // working sets up to here are visited before, to bring the caches into their usual state
	if b.timer.late() {
		return absentPoint(size, noTime)
	}
	p := b.chaser.lines(m, size)
	round := uint64(size/lineBytes/loadsPerChase + 1)
	p.least = min(round, longSample)
	if size <= once {
		p.run(round, p.a, p.b, p.c)
		p.warm = round
	}
	empty := program{run: loopEmpty, ops: loadsPerChase}
	t := b.timer.measure(s.budget(600*time.Millisecond), p, empty)
	if why := doubt(t[1]); why != "" {
		return absentPoint(size, why)
	}
	chase, baseline := t[1], t[2]
	return Point{Bytes: size, Cycles: Number(chase.cycles - baseline.cycles), Nanos: Number(chase.ns - baseline.ns), Error: Number(chase.cycles * chase.spread)}
}

func absentPoint(size int, why string) Point {
	return Point{Bytes: size, Cycles: unknown, Nanos: unknown, Error: unknown, Why: why}
}

// remote measures the memory of the other NUMA nodes.
func (b *bench) remote(s *stage) {
	memory := b.result.Level("memory")
	if len(b.nodes) < 2 || memory == nil {
		return
	}
	for node := range len(b.nodes) + maxNode(b.nodes) {
		if _, exists := b.nodes[node]; !exists || node == b.result.Node {
			continue
		}
		f := Figure{Name: fmt.Sprintf("memory-node-%d", node), Title: fmt.Sprintf("memory of NUMA node %d", node), Unit: "cycles/load"}
		m, err := allocate(memory.From/hugeStep*hugeStep+hugeStep, node, true, b.timer.deadline)
		if err != nil {
			b.result.Costs = append(b.result.Costs, absent(f, err.Error()))
			continue
		}
		p := absentPoint(len(m.bytes), noTime)
		if p.Bytes >= memory.From {
			p = b.point(s, m, p.Bytes)
		}
		m.free()
		f.Value, f.Error, f.Why = p.Cycles, p.Error+p.Cycles*b.behind(&p), p.Why
		b.result.Costs = append(b.result.Costs, f)
	}
}

func maxNode(all map[int][]int) int {
	most := 0
	for n := range all {
		most = max(most, n)
	}
	return most
}
