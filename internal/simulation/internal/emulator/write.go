package emulator

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"os"
	"sort"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/internal/disasm"
	"github.com/cyclestack/cyclestack/internal/object"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/caches"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/valgrind"
	"github.com/cyclestack/cyclestack/internal/sorting"
)

// Write writes what was simulated in callgrind's format.
func (s *Simulation) Write(w io.Writer) error {
	f := valgrind.NewFileWriter(w, valgrind.FileHeader{Command: s.command, Caches: s.caches(), About: s.about(), Error: s.sampling()})
	costs := rounder{values: make([]uint64, len(valgrind.EmulatedEvents)), carry: make([]float64, len(valgrind.EmulatedEvents))}
	for _, i := range s.run.code.ordered() {
		names := newSymbols(i)
		for in := range s.run.code.sorted(i) {
			if in.executed == 0 {
				continue
			}
			function, source, line := names.at(in.addr)
			costs.round(s.run.code.known(in).costs())
			f.Costs(names.object, source, function, in.addr, line, costs.values)
		}
	}
	return f.Close()
}

// A rounder makes integers of counts, and carries the remainders.
type rounder struct {
	values []uint64
	carry  []float64
}

func (r *rounder) round(costs []float64) {
	clear(r.values)
	for i, v := range costs {
		if v == 0 || math.IsNaN(v) {
			continue
		}
		v += r.carry[i]
		whole := max(math.Floor(v+0.5), 0)
		r.carry[i] = v - whole
		r.values[i] = uint64(min(whole, 1e18))
	}
}

// costs returns the counts of an instruction in the order of valgrind.EmulatedEvents.
func (in *instruction) costs() []float64 {
	n := float64(in.executed)
	list := make([]float64, 0, len(valgrind.EmulatedEvents))
	loads, stores := in.data(n)
	miss := func(of [caches.Levels]int64, from caches.Level) (sum float64) {
		for _, v := range of[from:] {
			sum += float64(v)
		}
		return sum
	}
	perFetch := 0.0
	if in.seen > 0 {
		perFetch = n / float64(in.seen)
	}
	cold := 0.0 // the first fetch is in no sample
	if in.cold && in.fetches == [caches.Levels]int64{} {
		cold = 1
	}
	list = append(list, n, loads, stores,
		cold+perFetch*miss(in.fetches, caches.Second), miss(in.misses[0], caches.Second), miss(in.misses[1], caches.Second),
		cold+perFetch*miss(in.fetches, caches.Third), miss(in.misses[0], caches.Memory), miss(in.misses[1], caches.Memory))
	conditional, indirect := in.flow == disasm.CondJump, in.flow == disasm.IndirectJump || in.flow == disasm.IndirectCall || in.flow == disasm.Return
	missed := perFetch * float64(in.mispredicted)
	when := func(is bool, v float64) float64 {
		if is {
			return v
		}
		return 0
	}
	list = append(list, when(conditional, n), when(conditional, missed), when(indirect, n), when(indirect, missed))
	timed := in.timed > 0
	s := &in.settled
	second, walks := float64(in.pages[caches.Second]), float64(in.pages[caches.Third])
	list = append(list, second, walks, float64(in.lines), when(timed, n*s.waits[latePages]), when(!timed, second), when(!timed, walks), when(timed, n*s.cycles), when(timed, n*s.lost), when(timed, n*s.waits[lateL2]),
		when(timed, n*s.waits[lateL3]), when(timed, n*s.waits[lateMemory]), when(timed && conditional, missed), when(timed && indirect, missed),
		when(!timed, n), when(!timed && conditional, missed), when(!timed && indirect, missed))
	for _, v := range []float64{miss(in.misses[0], caches.Second), miss(in.misses[1], caches.Second), miss(in.misses[0], caches.Memory), miss(in.misses[1], caches.Memory)} {
		list = append(list, when(!timed, v))
	}
	for _, v := range in.variance {
		list = append(list, v/valgrind.VarianceUnit)
	}
	return list
}

// data returns the loads and stores of an instruction.
func (in *instruction) data(n float64) (loads, stores float64) {
	if in.watched > 0 {
		return n * min(1, float64(in.accesses[0])/float64(in.watched)), n * min(1, float64(in.accesses[1])/float64(in.watched))
	}
	if in.op.Loads {
		loads = n
	}
	if in.op.Stores {
		stores = n
	}
	return loads, stores
}

// symbols name the code of an image.
type symbols struct {
	image  *image
	object string
	made   []symbol // of code that a process has made

	latest, plain string // the last name, and how it is written
}

// A symbol is a function that a process has made.
type symbol struct {
	start, size uint64
	name        string
}

func newSymbols(i *image) *symbols {
	s := &symbols{image: i, object: i.path}
	if i.path == "" {
		s.object = "[JIT]"
		s.made = perfMap(fmt.Sprintf("/tmp/perf-%d.map", i.pid))
	}
	return s
}

// at returns the function, the source file and the line of an address.
func (s *symbols) at(addr uint64) (function, source string, line int) {
	if s.image.file == nil {
		n := sort.Search(len(s.made), func(i int) bool { return s.made[i].start > addr })
		if n > 0 && addr-s.made[n-1].start < s.made[n-1].size {
			return s.made[n-1].name, "", 0
		}
		return "", "", 0
	}
	if f, ok := s.image.file.Symbol(addr); ok {
		if f.Name != s.latest {
			s.latest, s.plain = f.Name, object.Demangle(f.Name, true)
		}
		function = s.plain
	}
	source, line = s.image.file.Line(addr)
	return function, source, line
}

// mostSymbols bounds what is read of a file that programs write for perf.
const mostSymbols = 1 << 20

// perfMap reads the functions that a process has made, as it tells them perf: start, size
// and name.
func perfMap(path string) []symbol {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	var list []symbol
	lines := bufio.NewScanner(f)
	for lines.Scan() && len(list) < mostSymbols {
		parts := strings.SplitN(lines.Text(), " ", 3)
		if len(parts) != 3 {
			continue
		}
		start, err := strconv.ParseUint(strings.TrimPrefix(parts[0], "0x"), 16, 64)
		size, err2 := strconv.ParseUint(strings.TrimPrefix(parts[1], "0x"), 16, 64)
		if err == nil && err2 == nil {
			list = append(list, symbol{start, size, parts[2]})
		}
	}
	sorting.Stable(list, func(a, b symbol) int {
		switch {
		case a.start < b.start:
			return -1
		case a.start > b.start:
			return 1
		}
		return 0
	})
	return list
}

// caches describes the simulated caches.
func (s *Simulation) caches() (list []string) {
	c := &s.run.options.Caches
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
	l := &s.run.options.Latencies
	return fmt.Sprintf("as a model of %s's core executes them, in %d windows over the whole run; latencies of L2, L3 and memory: %.3g, %.3g and %.3g cycles",
		s.run.options.Core.Name, len(s.run.windows), l.L2, l.L3, l.Memory)
}

// sampling returns the relative errors of the sums of cycles.
func (s *Simulation) sampling() string {
	n := float64(len(s.run.windows))
	if n < 2 {
		return ""
	}
	var sum window
	for _, w := range s.run.windows {
		sum.instructions += w.instructions
		sum.cycles += w.cycles
		sum.lost += w.lost
		sum.waits += w.waits
	}
	error := func(of func(*window) float64) float64 {
		total := of(&sum)
		if total <= 0 {
			return 0
		}
		squares := 0.0
		for i := range s.run.windows {
			w := &s.run.windows[i]
			r := of(w) - total*w.instructions/sum.instructions
			squares += r * r
		}
		return math.Sqrt(squares*n/(n-1)) / total
	}
	return fmt.Sprintf("Ct %.6g Cbt %.6g C2t %.6g C3t %.6g Cmt %.6g Cpt %.6g",
		error(func(w *window) float64 { return w.cycles - w.lost - w.waits }), error(func(w *window) float64 { return w.lost }),
		error(func(w *window) float64 { return w.waits }), error(func(w *window) float64 { return w.waits }),
		error(func(w *window) float64 { return w.waits }), error(func(w *window) float64 { return w.waits }))
}
