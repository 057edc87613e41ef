package perfdata

import (
	"math"

	"github.com/cyclestack/cyclestack/counts"
)

// statTables makes tables of the records of perf stat record. STAT records hold
// what each instance of an event has counted since the beginning; a STAT_ROUND
// ends an interval.
type statTables struct {
	t      *TableReader
	config StatConfig

	events []*Event
	column map[*Event]int
	now    map[statCell]statValue // of this interval
	before map[statCell]statValue // of the one before
	other  int64                  // records that were left out

	time, since uint64 // ns, when this interval and the one before ended
	rounds      int
	fresh       bool // there are counts since the last table
	complete    bool // and they are all
}

// A statCell is an event in a scope.
type statCell struct {
	scope, column int
}

type statValue struct{ value, enabled, running uint64 }

func newStatTables(t *TableReader) *statTables {
	s := &statTables{t: t, config: StatConfig{Scale: true}, column: map[*Event]int{},
		now: map[statCell]statValue{}, before: map[statCell]statValue{}}
	for _, e := range t.r.Events() {
		s.columnOf(e)
	}
	return s
}

// columnOf returns an event's column, -1 if there is no room for it.
func (s *statTables) columnOf(e *Event) int {
	col, ok := s.column[e]
	switch {
	case ok:
		return col
	case !s.t.scopes.columnFits(len(s.events)):
		return -1
	}
	s.column[e] = len(s.events)
	s.events = append(s.events, e)
	return s.column[e]
}

func (s *statTables) take(rec Record) {
	if s.complete {
		return // a file without intervals has one round
	}
	switch rec := rec.(type) {
	case *StatConfig:
		s.config = *rec
	case *Stat:
		s.stat(rec)
	case *StatRound:
		s.since, s.time = s.time, rec.Time
		s.rounds++
		s.complete = s.fresh
	}
}

func (s *statTables) ready(end bool) bool {
	// What follows the last interval is perf's reading of the counters as it stops them. perf
	// does not print that either. A file without any round is one of a perf that was killed.
	if end && s.fresh && s.rounds == 0 {
		s.complete = true
	}
	// Without intervals there is one table, which waits for the end of the file and its notes.
	return s.complete && (end || s.config.Interval > 0)
}

// stat adds one instance's counter. Instances of one event in one scope, as of
// inherited or hybrid ones, are summed.
func (s *statTables) stat(rec *Stat) {
	in := s.t.r.d.instance(rec.ID)
	if in == nil || len(s.now) >= maxCells {
		s.other++
		return
	}
	col := s.columnOf(in.event)
	if col < 0 {
		s.other++
		return
	}
	k := scopeKey{kind: counts.Run, cpu: counts.Unknown, tid: counts.Unknown}
	if rec.CPU >= 0 && !s.t.anyCPU {
		k.kind, k.cpu = counts.CPU, rec.CPU
	}
	if tids := s.t.tids; len(tids) > 1 && rec.Thread >= 0 && rec.Thread < len(tids) {
		k.kind, k.tid = counts.Thread, tids[rec.Thread]
	}
	cell := statCell{s.t.scopes.of(k, len(s.events)), col}
	v := s.now[cell]
	s.now[cell] = statValue{v.value + rec.Value, v.enabled + rec.Enabled, v.running + rec.Running}
	s.fresh = true
}

func (s *statTables) fill() {
	s.fresh, s.complete = false, false
	t := s.t
	t.makeLayout(s.events)
	table := &t.table
	table.Interval = s.config.Interval > 0
	since := uint64(0)
	if table.Interval {
		since = s.since
	}
	table.Start, table.Duration = seconds(since), math.NaN()
	if s.time > since {
		table.Duration = seconds(s.time - since)
	}
	s.refused()
	for cell, v := range s.now {
		if table.Interval {
			v = v.minus(s.before[cell])
		}
		*table.Cell(cell.scope, cell.column) = v.cell(s.events[cell.column].Scale, s.config.Scale)
	}
	s.before, s.now = s.now, s.before
	clear(s.now)
	if s.other > 0 && t.ended {
		table.Notes = append(table.Notes, counts.Notef("%d counts were left out: their ids are no event's", s.other))
	}
}

// refused marks the events that the kernel refused: perf writes them into the
// header, without ids.
func (s *statTables) refused() {
	for col, e := range s.events {
		if len(e.IDs) > 0 {
			continue
		}
		for scope := range s.t.table.Scopes {
			s.t.table.Cell(scope, col).State = counts.NotSupported
		}
	}
}

// minus returns what was counted since before; counters never fall.
func (v statValue) minus(before statValue) statValue {
	if v.value < before.value || v.enabled < before.enabled || v.running < before.running {
		return v // a new instance
	}
	return statValue{v.value - before.value, v.enabled - before.enabled, v.running - before.running}
}

// cell scales a counter to the time that it was enabled, as perf stat does.
func (v statValue) cell(unit float64, scale bool) counts.Cell {
	c := counts.Cell{State: counts.Counted, Value: float64(v.value) * unit,
		Enabled: float64(v.enabled), Running: float64(min(v.running, v.enabled))}
	switch {
	case v.enabled == 0 && v.value > 0: // its times were not recorded
	case v.running == 0:
		return counts.Cell{State: counts.NotCounted, Enabled: c.Enabled}
	case scale && v.running < v.enabled:
		c.Value *= float64(v.enabled) / float64(v.running)
	}
	return c
}

func seconds(ns uint64) float64 { return float64(ns) / 1e9 }
