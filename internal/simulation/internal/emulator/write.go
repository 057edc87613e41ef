package emulator

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/internal/disasm"
	"github.com/cyclestack/cyclestack/internal/object"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/caches"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/valgrind"
)

// Write writes what was simulated in callgrind's format.
func (s *Simulation) Write(w io.Writer) error {
	about, last := s.about(), caches.Memory
	h := valgrind.FileHeader{Command: s.command, About: about, Error: s.sampling()}
	if about == "" {
		last = caches.Third
		h.Beyond = s.beyond()
	}
	h.Caches = s.caches(last)
	f := valgrind.NewFileWriter(w, h)
	costs := rounder{values: make([]uint64, len(valgrind.EmulatedEvents)), carry: make([]float64, len(valgrind.EmulatedEvents))}
	var list []float64
	var by *callers
	own := func(i *image) bool { return i.file != nil && i.at.n > 0 && !strings.HasPrefix(i.path, system) }
	if last == caches.Memory && slices.ContainsFunc(s.run.code.ordered(), own) {
		by = &callers{number: map[uint64]uint32{}, of: make([][]calling, 1), at: map[string]int{}, lines: make([]foreign, 1)}
	}
	for _, i := range s.run.code.ordered() {
		names := newSymbols(i)
		for in := range s.run.code.sorted(i) {
			if in.executed == 0 {
				continue
			}
			p := names.at(in)
			plain := in.sample == nil && in.traffic == nil
			known := in
			if !plain || by != nil {
				known = s.run.code.known(in)
			}
			if clear(costs.values); plain {
				costs.plain(in, s.run.code.formOf(in))
			} else {
				list = known.costs(list[:0], last)
				costs.round(list)
			}
			f.Costs(p.object, p.source, p.function, p.addr, p.line, costs.values)
			if by != nil {
				by.see(i, in, known, &p)
			}
		}
	}
	if by != nil {
		by.write(s.run.code, &s.run.calls, f)
	}
	return f.Close()
}

// A rounder makes integers of counts, and carries the remainders.
type rounder struct {
	values []uint64
	carry  []float64
}

func (r *rounder) round(costs []float64) {
	for i, v := range costs {
		if v == 0 || math.IsNaN(v) {
			continue
		}
		r.one(i, v)
	}
}

func (r *rounder) one(i int, v float64) {
	v += r.carry[i]
	whole := max(math.Floor(v+0.5), 0)
	r.carry[i] = v - whole
	r.values[i] = uint64(min(whole, 1e18))
}

// plain is round for the costs of an instruction that was in no sample and missed nothing. Most are such.
func (r *rounder) plain(in *instruction, f form) {
	n := float64(in.executed)
	for _, e := range [...]struct {
		is    bool
		event int
		v     float64
	}{
		{true, eventIr, n}, {f.loads, eventDr, n}, {f.stores, eventDw, n}, {in.cold, eventI1mr, 1}, {in.cold, eventILmr, 1},
		{f.flow == disasm.CondJump, eventBc, n}, {indirect(f.flow), eventBi, n}, {true, eventUntimed, n},
	} {
		if e.is {
			r.one(e.event, e.v)
		}
	}
}

// The places of events in valgrind.EmulatedEvents.
const (
	eventIr      = 0
	eventDr      = 1
	eventDw      = 2
	eventI1mr    = 3
	eventILmr    = 6
	eventBc      = 9
	eventBi      = 11
	eventUntimed = 26
)

func indirect(f disasm.Flow) bool {
	return f == disasm.IndirectJump || f == disasm.IndirectCall || f == disasm.Return
}

// beyond returns the share of the second level's misses that the third level answers. Files of
// instruction sets without a model of the core have no other word on the third level.
func (s *Simulation) beyond() float64 {
	var of [caches.Levels]float64
	for _, i := range s.run.code.ordered() {
		for in := range s.run.code.sorted(i) {
			for level := caches.Third; in.traffic != nil && level <= caches.Memory; level++ {
				of[level] += float64(in.misses[0][level] + in.misses[1][level])
			}
		}
	}
	if of[caches.Third] == 0 {
		return 0
	}
	return of[caches.Third] / (of[caches.Third] + of[caches.Memory])
}

// costs appends the counts of an instruction in the order of valgrind.EmulatedEvents. Misses of
// the last level are those that are answered by this one, or behind it.
func (in *instruction) costs(list []float64, last caches.Level) []float64 {
	n := float64(in.executed)
	loads, stores := in.data(n)
	miss := func(of [caches.Levels]int64, from caches.Level) (sum float64) {
		for _, v := range of[from:] {
			sum += float64(v)
		}
		return sum
	}
	perFetch := 0.0
	if in.seen > 0 {
		perFetch = n / in.seen
	}
	// A line comes from behind the second level once. What a sample finds missing there has mostly
	// been fetched since the sample before, which the caches have not seen.
	cold, fetches := 0.0, perFetch*in.fetches
	if in.cold {
		cold, fetches = 1, max(fetches, 1)
	}
	list = append(list, n, loads, stores,
		fetches, miss(in.misses[0], caches.Second), miss(in.misses[1], caches.Second),
		cold, miss(in.misses[0], last), miss(in.misses[1], last))
	conditional, indirect := in.flow == disasm.CondJump, indirect(in.flow)
	missed := perFetch * in.mispredicted
	when := func(is bool, v float64) float64 {
		if is {
			return v
		}
		return 0
	}
	list = append(list, when(conditional, n), when(conditional, missed), when(indirect, n), when(indirect, missed))
	timed := in.timed > 0
	o := in.outcome
	if o == nil {
		o = &outcome{}
	}
	s := &o.settled
	second, walks := float64(in.pages[caches.Second]), float64(in.pages[caches.Third])
	list = append(list, second, walks, float64(in.lines), when(timed, n*s.waits[latePages]), when(!timed, second), when(!timed, walks), when(timed, n*s.cycles), when(timed, n*s.lost), when(timed, n*s.waits[lateL2]),
		when(timed, n*s.waits[lateL3]), when(timed, n*s.waits[lateMemory]), when(timed && conditional, missed), when(timed && indirect, missed),
		when(!timed, n), when(!timed && conditional, missed), when(!timed && indirect, missed))
	for _, v := range []float64{miss(in.misses[0], caches.Second), miss(in.misses[1], caches.Second), miss(in.misses[0], last), miss(in.misses[1], last)} {
		list = append(list, when(!timed, v))
	}
	list = append(list, when(timed, n*in.sampled/in.timed))
	for _, v := range o.variance {
		list = append(list, v/valgrind.VarianceUnit)
	}
	return list
}

// data returns the loads and stores of an instruction.
func (in *instruction) data(n float64) (loads, stores float64) {
	if in.watched > 0 {
		return n * min(1, in.accesses[0]/in.watched), n * min(1, in.accesses[1]/in.watched)
	}
	var missed [2]float64
	if in.op.Loads {
		loads = n
	}
	if in.op.Stores {
		stores = n
	}
	for _, level := range []caches.Level{caches.Second, caches.Third, caches.Memory} { // of other processors nothing else is known
		missed[0] += float64(in.misses[0][level])
		missed[1] += float64(in.misses[1][level])
	}
	return max(loads, missed[0]), max(stores, missed[1])
}

// symbols name the code of an image.
type symbols struct {
	image *image
	made  madeCode

	until uint64 // the end of the last function
	plain string // how its name is written

	lineTo uint64 // the end of the last line
	source string
	line   int
}

// A place is where an instruction is, as a file has it.
type place struct {
	object, function, source string
	line                     int
	addr                     uint64
}

func newSymbols(i *image) *symbols {
	s := &symbols{image: i}
	if i.file == nil {
		s.made = i.names()
	}
	return s
}

// at returns the place of an instruction, of instructions in the order of their addresses.
func (s *symbols) at(in *instruction) place {
	if s.image.file == nil {
		return s.made.at(s.image, in)
	}
	if in.addr >= s.lineTo {
		s.source, s.line, s.lineTo = s.image.file.LineTo(in.addr)
	}
	p := place{object: s.image.path, addr: in.addr, source: s.source, line: s.line}
	if in.addr >= s.until {
		f, _ := s.image.file.Symbol(in.addr)
		s.until, s.plain = s.image.file.Until(in.addr), object.Demangle(f.Name, true)
	}
	p.function = s.plain
	return p
}

// caches describes the simulated caches, up to the one before a level.
func (s *Simulation) caches(last caches.Level) (list []string) {
	c := s.run.options.Caches
	if last == caches.Third {
		c.L2, c.L3 = caches.Size{}, c.L2
	}
	for _, one := range []struct {
		name string
		size caches.Size
	}{{"I1", c.L1I}, {"D1", c.L1D}, {"L2", c.L2}, {"LL", c.L3}} {
		if one.size.Bytes > 0 {
			list = append(list, fmt.Sprintf("%s cache: %d B, %d B, %d-way associative", one.name, one.size.Bytes, 1<<caches.LineBits, one.size.Ways))
		}
	}
	return list
}

// about says where the cycles of instructions come from.
func (s *Simulation) about() string {
	if s.run.options.Core == nil || s.run.code.ops == nil {
		return ""
	}
	l, run := &s.run.options.Latencies, "the whole run"
	if s.Partial {
		run = "the run until it was interrupted"
	}
	return fmt.Sprintf("as a model of %s's core executes them, in %d windows over %s; latencies of L2, L3 and memory: %.3g, %.3g and %.3g cycles",
		s.run.options.Core.Name, s.run.whole.windows, run, l.L2, l.L3, l.Memory)
}

// sampling returns the relative errors of the sums of cycles, or how many windows are too few for
// them.
func (s *Simulation) sampling() string {
	if s.about() == "" {
		return ""
	}
	whole := &s.run.whole
	if whole.effective() < windowsLeast {
		return fmt.Sprintf("%s %d", valgrind.FewWindows, whole.windows)
	}
	waits := s.run.code.relative(costWaits)
	return fmt.Sprintf("Ct %.6g Cbt %.6g C2t %.6g C3t %.6g Cmt %.6g Cpt %.6g", s.run.code.relative(costIdeal), s.run.code.relative(costLost), waits, waits, waits, waits)
}
