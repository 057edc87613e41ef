// Package hotspots finds the code that a program's time was spent in, from samples of a
// recording: functions, and in each the hottest line and loop.
//
//	s, err := hotspots.Read(rec, hotspots.Options{})
//	h := hotspots.OfSamples(s)
//	s.Locate(h)
package hotspots

import (
	"cmp"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/disasm"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/sorting"
	"github.com/cyclestack/cyclestack/internal/source/code"
	"github.com/cyclestack/cyclestack/internal/source/samples"
	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/source"
)

// Options say which samples count, and where programs are.
type Options struct {
	Symbols profile.Config
	Filter  samples.Filter
	Column  func(*counts.Table) int // the event; nil is the first that was sampled
	// Cause says what holds back a loop of a listing, given the samples by address; nil for
	// nothing.
	Cause func(l *code.Listing, loop int, samples map[uint64]int64) *account.Cause
}

// Samples are the samples of a recording by function.
type Samples struct {
	Total, Kernel int64
	Seconds       float64       // that the samples stand for; NaN if they are not of time
	Table         *counts.Table // by instruction; the first row is the whole

	rec       *source.Recording
	in        *samples.Reader // that has read it; nil if another has
	o         Options
	column    int
	functions []*function // the largest first
}

// A function has the rows of a table that are of one function.
type function struct {
	code    counts.Code // of the hottest instruction
	kernel  bool
	samples int64
	most    int64 // at one place
	rows    []int
}

// placesMost is how many functions are looked at. placesLeast is the least share of the
// samples that is worth it, and samplesLeast their least number.
const (
	placesMost   = 8
	placesLeast  = 0.02
	samplesLeast = 5
)

// Fold is the least share of the samples that a function's instructions matter at, for hotspots and
// the core model: see [samples.Options]. Both look at functions with more than that: placesLeast here,
// and 0.005 in package core.
const Fold = 0.004

// Read reads the samples of a recording.
func Read(rec *source.Recording, o Options) (*Samples, error) {
	in := rec.Samples(samples.Options{By: counts.Instruction, NoInline: true, Filter: o.Filter, Symbols: o.Symbols})
	defer in.Close()
	if !in.Next() {
		return nil, fault.As(fault.Input, in.Err())
	}
	own, _ := in.(*samples.Reader)
	return New(rec, own, in.Table().Clone(), o), nil
}

// New returns the samples of a recording whose table by instruction was read with the options.
// The reader is nil if it was another's.
func New(rec *source.Recording, in *samples.Reader, t *counts.Table, o Options) *Samples {
	s := &Samples{Table: t, rec: rec, in: in, o: o}
	if o.Column != nil {
		s.column = o.Column(s.Table)
	} else if i := slices.IndexFunc(s.Table.Row(0), func(c counts.Cell) bool { return c.Samples > 0 }); i >= 0 {
		s.column = i
	}
	s.gather()
	return s
}

// gather adds up the samples by function.
func (s *Samples) gather() {
	of := map[counts.Code]*function{}
	t := s.Table
	s.Total = t.Cell(0, s.column).Samples
	s.Seconds = t.Cell(0, s.column).Value / 1e9
	for row := 1; row < len(t.Scopes); row++ {
		c, n := t.Scopes[row].Code, t.Cell(row, s.column).Samples
		if n == 0 {
			continue
		}
		if c == nil {
			c = &counts.Code{}
		}
		key := counts.Code{Module: c.Module, BuildID: c.BuildID, Function: c.Function}
		f := of[key]
		if f == nil {
			f = &function{kernel: InKernel(c.Module)}
			of[key] = f
			s.functions = append(s.functions, f)
		}
		if f.samples += n; n > f.most {
			f.most, f.code = n, *c
		}
		f.rows = append(f.rows, row)
		if f.kernel {
			s.Kernel += n
		}
	}
	sorting.Stable(s.functions, func(a, b *function) int {
		return cmp.Or(cmp.Compare(b.samples, a.samples), cmp.Compare(a.code.Module, b.code.Module), cmp.Compare(a.code.Function, b.code.Function))
	})
}

// InKernel reports whether the code of a module is the kernel's: perf writes the names of
// both the kernel's modules and a process's special mappings in brackets.
func InKernel(module string) bool {
	name, compressed := strings.CutSuffix(strings.TrimSuffix(strings.TrimSuffix(module, ".xz"), ".zst"), ".ko")
	switch {
	case compressed, strings.HasPrefix(name, "[kernel"), strings.HasPrefix(name, "[guest.kernel"):
		return true
	case !strings.HasPrefix(name, "["):
		return false
	}
	for _, user := range []string{"[vdso", "[vsyscall", "[unknown", "[heap", "[stack", "[anon", "[uprobes", "[vvar", "[JIT", "[bpf"} {
		if strings.HasPrefix(name, user) {
			return user == "[bpf"
		}
	}
	return true
}

// Locate adds the places with the most samples to the hotspots of the same run.
func (s *Samples) Locate(h *account.Hotspots) {
	reader := (*code.Reader)(nil) // without it, there are no loops
	if s.in != nil {
		reader = code.Of(s.in, s.o.Symbols)
	} else {
		reader, _ = s.rec.Code(s.o.Symbols)
	}
	if reader != nil {
		defer reader.Close()
	}
	shown := int64(0)
	for i, f := range s.functions {
		if i >= placesMost || f.samples < samplesLeast || float64(f.samples) < placesLeast*float64(s.Total) {
			break
		}
		p := account.Hot{Function: f.code.Function, Module: f.code.Module, Kernel: f.kernel, File: f.code.File, Line: f.code.Line,
			Addr: f.code.Addr, Samples: f.samples}
		p.Share, p.Error = of(h, f.samples)
		if reader != nil && !f.kernel && f.code.Function != "" {
			s.loop(reader, f, h, &p)
		}
		h.Places = append(h.Places, p)
		shown += f.samples
	}
	h.Left = len(s.functions) - len(h.Places)
	h.Others, _ = of(h, s.Total-shown)
}

// loopShare is the share of a function's samples that a loop must have to be the hottest.
const loopShare = 0.5

// loop finds the innermost loop with most of a function's samples.
func (s *Samples) loop(r *code.Reader, f *function, h *account.Hotspots, p *account.Hot) {
	fn, err := r.Function(&f.code)
	if err != nil {
		return
	}
	l, err := r.List(fn, disasm.Intel)
	if err != nil || l.Graph == nil {
		return
	}
	at := map[uint64]int64{}
	for _, row := range f.rows {
		at[s.Table.Scopes[row].Code.Addr] += s.Table.Cell(row, s.column).Samples
	}
	best, most, depth := -1, int64(0), 0
	for n := range l.Graph.Loops {
		loop := &l.Graph.Loops[n]
		sum := int64(0)
		for _, b := range loop.Blocks {
			for _, i := range l.Graph.Blocks[b].Insts {
				sum += at[i.Addr]
			}
		}
		if float64(sum) >= loopShare*float64(f.samples) && (loop.Depth > depth || loop.Depth == depth && sum > most) {
			best, most, depth = n, sum, loop.Depth
		}
	}
	if best < 0 {
		return
	}
	p.Loop = hotLoop(l, best)
	p.Loop.Share, _ = of(h, most)
	if s.o.Cause != nil {
		p.Cause = s.o.Cause(l, best, at)
	}
}

// hotLoop describes a loop of a listing.
func hotLoop(l *code.Listing, n int) *account.HotLoop {
	loop := &account.HotLoop{}
	inside := map[uint64]bool{}
	for _, b := range l.Graph.Loops[n].Blocks {
		for _, i := range l.Graph.Blocks[b].Insts {
			inside[i.Addr] = true
			loop.Instructions++
			if loop.Start == 0 || i.Addr < loop.Start {
				loop.Start = i.Addr
			}
			loop.End = max(loop.End, i.Addr+uint64(i.Len))
		}
	}
	file := ""
	for i := range l.Insts {
		in := &l.Insts[i]
		if !inside[in.Addr] || in.Line == 0 || file != "" && in.File != file {
			continue
		}
		file = in.File
		if loop.First == 0 || in.Line < loop.First {
			loop.First = in.Line
		}
		loop.Last = max(loop.Last, in.Line)
	}
	return loop
}
