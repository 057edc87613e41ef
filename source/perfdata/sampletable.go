package perfdata

import (
	"math"
	"time"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/perffile"
)

// sampleTables makes tables of samples: events × periods.
type sampleTables struct {
	t        *TableReader
	interval uint64 // ns; 0 for one table
	origin   uint64 // beginning of interval 0
	started  bool

	columns []*Event
	column  map[*Event]int
	spans   map[uint64]*span // intervals that are not complete, by their number
	next    uint64           // the first of them that may be yielded
	cells   int              // of all spans
	late    int64            // samples of intervals that were yielded already
	left    int64            // samples that found no room

	newest, safe uint64 // the latest time when the last round ended, and when the one before did
	pending      bool   // an interval may be complete
	first, last  uint64 // times of samples

	meter *Meter
}

// A span is what was counted in an interval.
type span struct {
	cells   []Sum // by scope and column
	columns int   // of cells
}

func newSampleTables(t *TableReader) *sampleTables {
	s := &sampleTables{t: t, column: map[*Event]int{}, spans: map[uint64]*span{}, meter: NewMeter(t.r)}
	if t.opts.Interval > 0 {
		s.interval = uint64(t.opts.Interval)
	} else if t.opts.By.Has(counts.Interval) {
		s.interval = uint64(time.Second)
	}
	for _, e := range t.r.Events() {
		s.columnOf(e)
	}
	return s
}

// columnOf returns an event's column, -1 for one that counts nothing.
func (s *sampleTables) columnOf(e *Event) int {
	if col, ok := s.column[e]; ok {
		return col
	}
	col := -1
	if !e.IsDummy() && s.t.scopes.columnFits(len(s.columns)) {
		col = len(s.columns)
		s.columns = append(s.columns, e)
	}
	s.column[e] = col
	return col
}

func (s *sampleTables) take(rec Record) {
	switch rec := rec.(type) {
	case *Sample:
		s.sample(rec)
	case *FinishedRound:
		// What comes now is not older than what had come before the previous
		// round ended.
		s.safe, s.newest = s.newest, s.last
		// Each part of a directory has rounds of its own, from the beginning.
		s.pending = s.interval > 0 && len(s.t.opts.Reader.Parts) == 0
	}
}

func (s *sampleTables) ready(end bool) bool {
	if !s.pending && !end || len(s.spans) == 0 {
		return false
	}
	// Intervals without samples are passed over: there may be any number.
	first := uint64(math.MaxUint64)
	for n := range s.spans {
		first = min(first, n)
	}
	if !end && (s.safe < s.origin || (s.safe-s.origin)/s.interval <= first) {
		s.pending = false
		return false
	}
	s.next = first
	return true
}

// sample counts a sample.
func (s *sampleTables) sample(rec *Sample) {
	now := rec.Time()
	if !s.started {
		s.begin(now)
	}
	if rec.Has(perffile.SampleTime) {
		s.first, s.last = min(s.first, now), max(s.last, now)
	}
	sp := s.span(now)
	if sp == nil {
		s.left++
		return
	}
	scope := s.t.scopes.of(s.key(rec), len(s.columns))
	amounts := s.meter.Of(rec)
	for i := range amounts {
		if col := s.columnOf(amounts[i].Event); col >= 0 {
			s.add(sp, scope, col, &amounts[i])
		}
	}
}

func (s *sampleTables) begin(now uint64) {
	s.started = true
	s.first, s.last = now, now
	s.origin = now
	if at := s.t.r.Features().SampleTime[0]; at > 0 && at < now {
		s.origin = at
	}
}

// span returns the interval that a time is in. What comes too late, or before
// the first sample, joins the first interval that is still open.
func (s *sampleTables) span(now uint64) *span {
	n := uint64(0)
	if s.interval > 0 && now > s.origin {
		n = (now - s.origin) / s.interval
	}
	if n < s.next {
		n = s.next
		s.late++
	}
	sp := s.spans[n]
	if sp == nil && len(s.spans) < maxSpans {
		sp = &span{}
		s.spans[n] = sp
	}
	return sp
}

// key returns the scope of a sample.
func (s *sampleTables) key(rec *Sample) scopeKey {
	by := s.t.opts.By
	k := scopeKey{kind: counts.Run, cpu: counts.Unknown, tid: counts.Unknown}
	if by.Has(counts.Cgroup) && rec.Has(perffile.SampleCgroup) {
		k.kind, k.cgroup = counts.Cgroup, rec.Cgroup()
	}
	if by.Has(counts.CPU) || by.Has(counts.Core) || by.Has(counts.Die) || by.Has(counts.Socket) || by.Has(counts.Node) {
		if cpu := s.cpu(rec); cpu >= 0 {
			k.kind, k.cpu = counts.CPU, cpu
		}
	}
	switch {
	case !rec.Has(perffile.SampleTID):
	case by.Has(counts.Thread):
		k.kind, k.tid = counts.Thread, rec.TID()
	case by.Has(counts.Process):
		k.kind, k.tid = counts.Process, rec.PID()
	}
	return k
}

// cpu returns the processor of a sample, or else the one that its event was
// opened on.
func (s *sampleTables) cpu(rec *Sample) int {
	if rec.Has(perffile.SampleCPU) {
		return rec.CPU()
	}
	_, cpu, _ := s.t.r.Instance(rec.ID())
	return cpu
}

// add adds a sample to a cell.
func (s *sampleTables) add(sp *span, scope, col int, a *Amount) {
	if sp.columns != len(s.columns) {
		s.widen(sp)
	}
	i := scope*sp.columns + col
	if i >= len(sp.cells) {
		more := i + sp.columns - col - len(sp.cells)
		if s.cells+more > maxCells {
			s.left++
			return
		}
		s.cells += more
		sp.cells = append(sp.cells, make([]Sum, more)...)
	}
	sp.cells[i].Add(a)
}

// widen makes room for columns that came while the span was open.
func (s *sampleTables) widen(sp *span) {
	if sp.columns > 0 {
		wide := make([]Sum, len(sp.cells)/sp.columns*len(s.columns))
		for i, c := range sp.cells {
			wide[i/sp.columns*len(s.columns)+i%sp.columns] = c
		}
		s.cells += len(wide) - len(sp.cells)
		sp.cells = wide
	}
	sp.columns = len(s.columns)
}

func (s *sampleTables) fill() {
	t := s.t
	t.makeLayout(s.columns)
	table := &t.table
	table.Start, table.Duration = 0, math.NaN()
	if s.last > s.first {
		table.Duration = seconds(s.last - s.first)
	}
	n := s.next
	sp := s.spans[n]
	if s.interval > 0 {
		table.Interval = true
		table.Start, table.Duration = seconds(n*s.interval), seconds(s.interval)
		if end := s.origin + (n+1)*s.interval; t.ended && s.last < end && s.last > end-s.interval {
			table.Duration = seconds(s.last - (end - s.interval))
		}
	}
	delete(s.spans, n)
	s.next++
	for scope := range table.Scopes {
		for col, e := range s.columns {
			*table.Cell(scope, col) = s.cell(sp, scope, col, e)
		}
	}
	if sp != nil {
		s.cells -= len(sp.cells)
	}
	if t.ended && len(s.spans) == 0 { // the last one
		table.Notes = append(table.Notes, s.notes()...)
	}
}

// cell makes a cell of what was counted. No sample is a count of 0 unless the
// periods are not known.
func (s *sampleTables) cell(sp *span, scope, col int, e *Event) counts.Cell {
	if !s.meter.Known(e) {
		return counts.Cell{}
	}
	if sp == nil || sp.columns == 0 || scope*sp.columns+col >= len(sp.cells) || col >= sp.columns {
		return counts.Cell{State: counts.Counted}
	}
	out := sp.cells[scope*sp.columns+col].Cell(e)
	if s.t.table.Scopes[scope].Kind == counts.Run {
		out.Variance = 0
	}
	return out
}

func (s *sampleTables) notes() []counts.Note {
	out := s.meter.Notes()
	if s.late > 0 {
		out = append(out, counts.Notef("%d samples came too late for their interval and are in a later one", s.late))
	}
	if s.left > 0 {
		out = append(out, counts.Notef("%d samples were not counted: there are too many scopes and intervals", s.left))
	}
	if s.t.scopes.lumped {
		out = append(out, counts.Notef("there are more than %d scopes: the others are together", maxScopes))
	}
	return out
}
