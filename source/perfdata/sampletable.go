package perfdata

import (
	"fmt"
	"math"
	"time"

	"github.com/cyclestack/cyclestack/counts"
)

// sampleTables makes tables of samples: events × periods.
type sampleTables struct {
	t        *TableReader
	interval uint64 // ns; 0 for one table
	origin   uint64 // time at which interval 0 begins
	started  bool

	columns []*Event
	column  map[*Event]int
	spans   map[uint64]*span // intervals that are not complete, by their number
	next    uint64           // the first of them that may be yielded
	cells   int              // of all spans
	late    int64            // samples of intervals that were yielded already
	left    int64            // samples for which there was no room
	mute    map[*Event]int64 // samples of events whose periods are not known

	newest, safe uint64 // the latest time when the last round ended, and when the one before did
	pending      bool   // an interval may be complete
	first, last  uint64 // times of samples

	reading Reading
	grown   map[growthKey]growth // of counters that samples read
}

// A span is what was counted in an interval.
type span struct {
	cells   []sampleCell // by scope and column
	columns int          // of cells
}

type sampleCell struct {
	value, squares   float64
	samples          int64
	enabled, running float64
}

// A growthKey is a counter that samples read: of an inherited event each thread
// has its own behind one id.
type growthKey struct {
	id  uint64
	tid int
}

type growth struct{ value, enabled, running uint64 }

func newSampleTables(t *TableReader) *sampleTables {
	s := &sampleTables{t: t, column: map[*Event]int{}, spans: map[uint64]*span{},
		mute: map[*Event]int64{}, grown: map[growthKey]growth{}}
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
	if !e.isDummy() && s.t.scopes.columnFits(len(s.columns)) {
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
	e := rec.Event()
	now := rec.Time()
	if !s.started {
		s.begin(now)
	}
	if rec.Has(SampleTime) {
		s.first, s.last = min(s.first, now), max(s.last, now)
	}
	sp := s.span(now)
	if sp == nil {
		s.left++
		return
	}
	scope := s.t.scopes.of(s.key(rec), len(s.columns))
	if rec.Read(&s.reading) {
		s.counters(sp, scope, rec)
		return
	}
	col := s.columnOf(e)
	if col < 0 {
		return
	}
	period := rec.Period()
	if period == 0 && !rec.Has(SamplePeriod) {
		s.mute[e]++
		return
	}
	s.add(sp, scope, col, float64(period), 0, 0)
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
	if by.Has(counts.Cgroup) && rec.Has(SampleCgroup) {
		k.kind, k.cgroup = counts.Cgroup, rec.Cgroup()
	}
	if by.Has(counts.CPU) || by.Has(counts.Core) || by.Has(counts.Die) || by.Has(counts.Socket) || by.Has(counts.Node) {
		if cpu := s.cpu(rec); cpu >= 0 {
			k.kind, k.cpu = counts.CPU, cpu
		}
	}
	switch {
	case !rec.Has(SampleTID):
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
	if rec.Has(SampleCPU) {
		return rec.CPU()
	}
	_, cpu, _ := s.t.r.Instance(rec.ID())
	return cpu
}

// counters adds what the counters that the sample read have grown by. Those of
// a group share the times of their leader.
func (s *sampleTables) counters(sp *span, scope int, rec *Sample) {
	e := rec.Event()
	tid := 0
	if e.Has(FlagInherit) {
		tid = rec.TID()
	}
	for i := range s.reading.Values {
		v := &s.reading.Values[i]
		of, id := e, v.ID
		if id == 0 {
			if i > 0 {
				break // without ids only the first one's event is known
			}
			id = rec.ID()
		} else if in := s.t.r.d.instance(id); in != nil {
			of = in.event
		}
		col := s.columnOf(of)
		key := growthKey{id, tid}
		before, seen := s.grown[key]
		if col < 0 || !seen && len(s.grown) >= maxIDs {
			continue
		}
		now := growth{v.Value, s.reading.Enabled, s.reading.Running}
		s.grown[key] = now
		if now.value < before.value || now.enabled < before.enabled || now.running < before.running {
			before = growth{} // it was opened anew
		}
		if grown := now.value - before.value; grown > 0 {
			s.add(sp, scope, col, float64(grown), float64(now.enabled-before.enabled), float64(now.running-before.running))
		}
	}
}

// add adds a sample to a cell.
func (s *sampleTables) add(sp *span, scope, col int, value, enabled, running float64) {
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
		sp.cells = append(sp.cells, make([]sampleCell, more)...)
	}
	c := &sp.cells[i]
	c.value += value
	c.squares += value * value
	c.samples++
	c.enabled += enabled
	c.running += running
}

// widen makes room for columns that came while the span was open.
func (s *sampleTables) widen(sp *span) {
	if sp.columns > 0 {
		wide := make([]sampleCell, len(sp.cells)/sp.columns*len(s.columns))
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
	if s.mute[e] > 0 {
		return counts.Cell{}
	}
	out := counts.Cell{State: counts.Counted}
	if sp == nil || sp.columns == 0 || scope*sp.columns+col >= len(sp.cells) || col >= sp.columns {
		return out
	}
	c := &sp.cells[scope*sp.columns+col]
	out.Value, out.Samples = c.value*e.Scale, c.samples
	if s.t.table.Scopes[scope].Kind != counts.Run {
		out.Variance = c.squares * e.Scale * e.Scale
	}
	if c.enabled > 0 && c.running > 0 {
		out.Enabled, out.Running = c.enabled, min(c.running, c.enabled)
		if c.running < c.enabled {
			out.Value *= c.enabled / c.running
			out.Variance *= c.enabled / c.running * (c.enabled / c.running)
		}
	}
	return out
}

func (s *sampleTables) notes() []string {
	var out []string
	for _, e := range s.columns {
		if n := s.mute[e]; n > 0 {
			out = append(out, fmt.Sprintf("%s: %d samples without their periods, taken at a frequency of %d Hz: how many events they stand for is not known",
				e.Name, n, e.SamplePeriod))
		}
	}
	if s.late > 0 {
		out = append(out, fmt.Sprintf("%d samples came too late for their interval and are in a later one", s.late))
	}
	if s.left > 0 {
		out = append(out, fmt.Sprintf("%d samples were not counted: there are too many scopes and intervals", s.left))
	}
	if s.t.scopes.lumped {
		out = append(out, fmt.Sprintf("there are more than %d scopes: the others are together", maxScopes))
	}
	return out
}
