//go:build linux && (amd64 || arm64 || ppc64le || riscv64)

package calibrate

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/cyclestack/cyclestack/internal/sorting"
)

// A kernel is one way of moving data.
type kernel struct {
	name      string
	streaming bool
	arrays    int // bytes that it reads or writes
	run       loop
}

// kernels are those of a mover, in the order of STREAM.
func (m *mover) kernels() []kernel {
	all := []kernel{
		{"read", false, 1, m.read},
		{"write", false, 1, m.write},
		{"write", true, 1, m.writeStream},
		{"copy", false, 2, m.copy},
		{"copy", true, 2, m.copyStream},
		{"triad", false, 3, m.triad},
		{"triad", true, 3, m.triadStream},
	}
	return sorting.Delete(all, func(k kernel) bool { return k.run == nil })
}

// threadBytes is the memory of a thread, divided among the arrays of a kernel. chunkBytes is
// how much of each array is moved at a time: enough to fill the buffers on the way to memory.
// It takes less than a millisecond, so that a sample is rarely interrupted.
const (
	threadBytes      = 192 << 20
	threadBytesQuick = 64 << 20
	chunkBytes       = 4 << 20
)

// A worker is a thread on a processor of its own, with memory of its own.
type worker struct {
	memory *memory
	offset int // of the next chunk in each array
}

// chunk moves the next chunk of a number of arrays. After the last chunk it begins again;
// by then the caches have lost the first.
func (w *worker) chunk(run loop, arrays, bytes int) {
	size := len(w.memory.bytes) / 3 / hugeStep * hugeStep
	switch arrays {
	case 1:
		size = len(w.memory.bytes)
	case 2:
		size = len(w.memory.bytes) / 2 / hugeStep * hugeStep
	}
	if w.offset+bytes > size {
		w.offset = 0
	}
	var at [3]unsafe.Pointer // arrays that the kernel does not use are never read
	for i := range at {
		at[i] = w.memory.at(i%arrays*size + w.offset)
	}
	run(uint64(bytes/blockBytes), at[0], at[1], at[2])
	w.offset += bytes
}

// A crew is the workers of a measurement with several threads. They do one job after
// another at the same time.
type crew struct {
	workers []*worker
	jobs    []chan func(*worker)
	wait    sync.WaitGroup
}

// hire starts a worker on each processor, with memory of the processor's node: as much as
// there is time for.
func hire(processors []int, nodes map[int][]int, bytes int, until time.Time) (*crew, error) {
	c := &crew{}
	ready := make(chan error)
	for _, logical := range processors {
		w := &worker{}
		jobs := make(chan func(*worker))
		c.workers, c.jobs = append(c.workers, w), append(c.jobs, jobs)
		go func() {
			undo, err := pin(logical)
			if err != nil {
				ready <- err
				return
			}
			defer undo()
			w.memory, err = allocate(bytes, nodeOf(nodes, logical), true, until)
			if err == nil {
				fill(w.memory.bytes)
			}
			ready <- err
			for job := range jobs {
				job(w)
				c.wait.Done()
			}
		}()
	}
	var failed error
	for range processors {
		if err := <-ready; err != nil {
			failed = err
		}
	}
	if failed != nil {
		c.dismiss()
		return nil, failed
	}
	return c, nil
}

// fill writes numbers other than 0, because some memories treat 0 specially.
func fill(memory []byte) {
	memory[0] = 0x3f // doubles of about 0.0005
	for done := 1; done < len(memory); done *= 2 {
		copy(memory[done:], memory[:done])
	}
}

// dismiss ends the workers and gives their memory back.
func (c *crew) dismiss() {
	for _, jobs := range c.jobs {
		close(jobs)
	}
	for _, w := range c.workers {
		if w.memory != nil {
			w.memory.free()
		}
	}
}

// start has the workers from..to, to excluded, do a job. The returned function waits for
// them.
func (c *crew) start(from, to int, job func(*worker)) (wait func()) {
	c.wait.Add(to - from)
	for _, jobs := range c.jobs[from:to] {
		jobs <- job
	}
	return c.wait.Wait
}

// bandwidth measures how fast threads together move data, and the latency of memory
// meanwhile.
func (b *bench) bandwidth(s *stage) error {
	all := movers()
	best := &all[len(all)-1]
	b.result.Vectors = best.name
	bytes := threadBytes
	if b.options.Quick {
		bytes = threadBytesQuick
	}
	bytes = min(bytes, max(len(b.big.bytes), leastMemory))
	if memory := b.result.Level("memory"); memory != nil {
		bytes = max(bytes, (2*memory.From+hugeStep-1)/hugeStep*hugeStep) // not in a cache
	}
	if spare := spareMemory("/"); bytes*len(b.processors) > spare {
		bytes = max(spare/len(b.processors), leastMemory) / hugeStep * hugeStep
	}
	team, err := hire(b.processors, b.nodes, bytes, time.Now().Add(time.Until(s.end)/4))
	if err != nil {
		return err
	}
	defer team.dismiss()
	for _, w := range team.workers {
		bytes = min(bytes, len(w.memory.bytes))
	}
	// All of them run at the same time, whatever GOMAXPROCS is.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(len(b.processors)+1, runtime.GOMAXPROCS(0))))

	kernels, counts := best.kernels(), threadCounts(len(b.processors))
	b.loaded(&stage{end: time.Now().Add(time.Until(s.end) / 3)}, team)
	s.left = len(kernels) * len(counts)
	for _, k := range kernels {
		for _, n := range counts {
			// The saturation curve is measured with reading and the triads. The rest is
			// measured with one thread and with all.
			if n != 1 && n != len(b.processors) && k.name != "read" && k.name != "triad" {
				s.left--
				continue
			}
			b.result.Bandwidth = append(b.result.Bandwidth, b.move(s, team, k, n))
		}
	}
	b.checkArrays(bytes)
	return nil
}

// threadCounts returns the numbers of threads on the saturation curve: powers of two, and
// all.
func threadCounts(all int) []int {
	var list []int
	for n := 1; n < all; n *= 2 {
		list = append(list, n)
	}
	return append(list, all)
}

// move measures one kernel with n threads.
func (b *bench) move(s *stage, team *crew, k kernel, n int) Bandwidth {
	name := k.name
	if k.streaming {
		name += ", past the caches"
	}
	f := Bandwidth{Kernel: k.name, Streaming: k.streaming, Threads: n,
		Figure: Figure{Name: fmt.Sprintf("bandwidth-%s-%d", k.name, n), Title: name, Unit: "bytes/second"}}
	if k.streaming {
		f.Name = fmt.Sprintf("bandwidth-%s-streaming-%d", k.name, n)
	}
	if b.timer.late() {
		f.Figure = absent(f.Figure, noTime)
		return f
	}
	t := tally{}
	tried := 0
	for end := time.Now().Add(s.budget(time.Second)); b.ctx.Err() == nil && time.Now().Before(end) && (t.count < fewest || t.spread() > agreement); {
		r := newRace(n)
		team.start(0, n, func(w *worker) { r.run(w, team, k) })()
		for i := range r.rounds {
			tried++
			if took, undisturbed := r.took(i); undisturbed {
				t.add(took / float64(n*k.arrays*chunkBytes))
			}
		}
	}
	spread := t.spread()
	switch {
	case t.count < keptBest:
		f.Figure = absent(f.Figure, fmt.Sprintf("all threads ran at the same time in %d of %d attempts only: the machine is too busy", t.count, tried))
	case spread > tooFarApart:
		f.Figure = absent(f.Figure, farApart(t.count, spread))
	default:
		f.Value = Number(1e9 / t.best[0])
		f.Error = f.Value * Number(spread)
	}
	return f
}

// A race is some rounds. In each round several threads move a chunk at the same time.
type race struct {
	threads int
	arrived atomic.Int64
	rounds  [4][]lap // by round and thread
}

// A lap is what one thread did in one round: its start and end in ns, and its processor
// time.
type lap struct{ from, to, processor int64 }

func newRace(threads int) *race {
	r := &race{threads: threads}
	for i := range r.rounds {
		r.rounds[i] = make([]lap, threads)
	}
	return r
}

var epoch = time.Now()

func (r *race) run(w *worker, team *crew, k kernel) {
	me := slices.Index(team.workers, w)
	for i := range r.rounds {
		r.arrived.Add(1)
		for r.arrived.Load() < int64(r.threads*(i+1)) {
		}
		from, processor := time.Since(epoch), threadTime()
		w.chunk(k.run, k.arrays, chunkBytes)
		processor = threadTime() - processor
		r.rounds[i][me] = lap{int64(from), int64(time.Since(epoch)), processor}
	}
}

// took returns the ns of a round from the first start to the last end. It reports whether
// all threads ran all of the time.
func (r *race) took(round int) (ns float64, undisturbed bool) {
	laps := r.rounds[round]
	from, to := laps[0].from, laps[0].to
	for _, l := range laps {
		from, to = min(from, l.from), max(to, l.to)
		if float64(l.to-l.from) > 1.02*float64(l.processor)+2000 {
			return 0, false
		}
	}
	return float64(to - from), true
}

// checkArrays withdraws figures of arrays that a cache may have held.
func (b *bench) checkArrays(bytes int) {
	memory := b.result.Level("memory")
	for i := range b.result.Bandwidth {
		f := &b.result.Bandwidth[i]
		if memory != nil && f.Why == "" && bytes*f.Threads < 2*memory.From {
			f.Figure = absent(f.Figure, fmt.Sprintf("%s may be in a cache: memory begins at %s", Size(bytes*f.Threads), Size(memory.From)))
		}
	}
}

// A load is a number of threads that read memory for a share of the time.
type load struct {
	threads int
	share   float64
}

// loads are the loads to measure the latency under with a number of processors: none, one
// thread at a part of its speed and at all of it, and more threads.
func loads(processors int) []load {
	list := []load{{0, 0}}
	if processors < 2 {
		return list
	}
	list = append(list, load{1, 0.25}, load{1, 0.5})
	for _, n := range threadCounts(processors - 1) {
		list = append(list, load{n, 1})
	}
	return list
}

// loaded measures the latency of memory while others read it.
func (b *bench) loaded(s *stage, team *crew) {
	loads := loads(len(b.processors))
	s.left = len(loads)
	size := len(b.big.bytes)
	if memory := b.result.Level("memory"); memory != nil {
		size = min(size, max(64<<20, 2*memory.From))
	}
	for _, l := range loads {
		if b.timer.late() {
			b.result.Loaded = append(b.result.Loaded, absentLoaded(l, noTime))
			continue
		}
		b.result.Loaded = append(b.result.Loaded, b.underLoad(s, team, b.chaser.lines(b.big, size), l))
	}
}

// A moment is a sample of the chase, with the bytes that the others read meanwhile.
type moment struct{ ns, rate float64 }

func (b *bench) underLoad(s *stage, team *crew, chase program, l load) Loaded {
	var (
		stop    atomic.Bool
		bytes   atomic.Int64
		read    = movers()
		reader  = read[len(read)-1].read
		moments []moment
		clock   tally
	)
	wait := team.start(1, 1+l.threads, func(w *worker) {
		for !stop.Load() {
			bytes.Add(readPart(w, reader, l.share))
		}
	})
	for end := time.Now().Add(s.budget(time.Second)); b.ctx.Err() == nil && time.Now().Before(end); {
		b.timer.tick(&clock)
		before, start := bytes.Load(), time.Now()
		took, undisturbed := b.timer.sample(&chase, longSample)
		rate := float64(bytes.Load()-before) / time.Since(start).Seconds()
		if undisturbed {
			moments = append(moments, moment{took / (longSample * loadsPerChase), rate})
		}
	}
	stop.Store(true)
	wait()
	return summary(l, moments, clock)
}

// readPart reads some memory and then pauses, so that reading is the given share of the
// time. It returns the bytes read.
func readPart(w *worker, read loop, share float64) int64 {
	const part = 64 << 10
	start := time.Now()
	w.chunk(read, 1, part)
	took := time.Since(start)
	for end := start.Add(time.Duration(float64(took) / share)); time.Now().Before(end); {
	}
	return part
}

// summary takes the middle of the moments with the others reading at full speed. In the
// rest of the moments they were not running.
func summary(l load, moments []moment, clock tally) Loaded {
	var rates []float64
	for _, m := range moments {
		rates = append(rates, m.rate)
	}
	slices.Sort(rates)
	var latencies []float64
	if len(rates) >= keptBest {
		full := 0.85 * rates[len(rates)-keptBest]
		rates = sorting.Delete(rates, func(r float64) bool { return r < full })
		for _, m := range moments {
			if m.rate >= full && (m.rate > 0 || l.threads == 0) {
				latencies = append(latencies, m.ns)
			}
		}
	}
	if len(latencies) < 2*keptBest || clock.count < keptBest {
		return absentLoaded(l, fmt.Sprintf("all threads were running in %d samples only: the machine is too busy", len(latencies)))
	}
	slices.Sort(latencies)
	n, cycle := len(latencies), clock.best[0]
	return Loaded{Threads: l.threads, Share: Number(l.share), Bandwidth: Number(median(rates)),
		Nanos: Number(latencies[n/2]), Cycles: Number(latencies[n/2] / cycle),
		Error: Number((latencies[n*3/4] - latencies[n/4]) / 2 / cycle)}
}

func absentLoaded(l load, why string) Loaded {
	return Loaded{Threads: l.threads, Share: Number(l.share), Bandwidth: unknown, Cycles: unknown, Nanos: unknown, Error: unknown, Why: why}
}
