package counts

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/internal/peers"
)

// By is a set of kinds of scope: what to keep apart when counts are summed.
// The empty set, and Run, sum everything.
type By uint32

// With returns the set with another kind in it.
func (b By) With(k Kind) By {
	if k == Run {
		return b
	}
	return b | 1<<k
}

// Has reports whether a kind is in the set.
func (b By) Has(k Kind) bool { return b&(1<<k) != 0 }

// A Total sums tables: over intervals, and over the scopes that are not to be
// kept apart. Its memory does not grow with the number of tables.
type Total struct {
	by     By
	table  *Table // nil if nothing was gathered since the last Reset
	spare  *Table // the memory of table after a Reset
	source *Layout
	column []int  // of table, by column of source
	scope  []int  // of table, by scope of source
	had    []bool // by cell of source: an earlier interval had it
	shares []bool // by column of source: it is no count, and has no sum
	open   bool   // what was gathered is intervals, which later ones continue
	end    float64

	now       []Cell     // by cell of table: what the interval adds
	drifts    [][]*drift // by scope of table
	histories []history  // by scope of table

	courses []Course // by cell of table
}

// NewTotal returns an empty total that keeps apart the kinds of by.
func NewTotal(by By) *Total { return &Total{by: by} }

// Begins reports whether a table belongs to another recording than what was
// gathered: only an interval that comes later than others continues them, never a
// whole run.
func (s *Total) Begins(t *Table) bool {
	if s.table == nil {
		return false
	}
	return !t.Interval || !s.open || t.Start < s.end-1e-9
}

// Table returns what was gathered since the last Reset, nil if nothing. It is
// valid until the next Add or Reset. Its *Layout stays the same as long as the
// columns and scopes do, also over a Reset.
func (s *Total) Table() *Table {
	if s.table != nil && s.table.spreads == nil {
		s.spread()
	}
	return s.table
}

// spread puts what the intervals tell about their spread into the sum.
func (s *Total) spread() {
	for i, drifts := range s.drifts {
		p := newPrediction(s.table, i, &s.histories[i])
		for _, d := range drifts {
			if spread, ok := d.spread(s.table.Row(i), p); ok {
				s.table.spreads = append(s.table.spreads, make([][]Spread, i+1-len(s.table.spreads))...)
				s.table.spreads[i] = append(s.table.spreads[i], spread)
			}
		}
		share(s.table.Spreads(i))
	}
}

// Reset forgets what was gathered, for the next run or interval.
func (s *Total) Reset() {
	if s.table == nil {
		return
	}
	s.spare, s.table = s.table, nil
	s.now, s.drifts, s.histories, s.courses = nil, nil, nil, nil
	clear(s.had)
}

// Add adds a table. It returns an error if the table's scopes cannot be kept
// apart as asked: counts per socket do not tell CPUs. It also returns one if they must be
// kept apart: what another tool published is no counts, and has no sum.
func (s *Total) Add(t *Table) error {
	if s.source != t.Layout {
		if err := s.adopt(t.Layout); err != nil {
			return err
		}
	}
	if s.table == nil {
		s.begin(t)
	} else {
		s.extend(t)
	}
	follow := t.Interval && !s.by.Has(Interval)
	if follow {
		s.follow()
	}
	for i := range t.Scopes {
		row, into := t.Row(i), s.table.Row(s.scope[i])
		had := s.had[i*len(row) : (i+1)*len(row)]
		for j := range row {
			switch {
			case row[j].State != Absent:
				if s.shares[j] && into[s.column[j]].State != Absent {
					return fmt.Errorf("what another tool published by %s has no sum: report that tool's own file", t.kind(i))
				}
				had[j] = true
				into[s.column[j]].Add(&row[j])
			case had[j]:
				s.gap(row, &into[s.column[j]])
			}
			if follow {
				s.now[s.scope[i]*len(into)+s.column[j]].Add(&row[j])
			}
		}
	}
	if follow {
		s.step()
	}
	return nil
}

// kind is what a scope of the table is by.
func (t *Table) kind(scope int) Kind {
	if t.Interval {
		return Interval
	}
	return t.Scopes[scope].Kind
}

// follow makes ready to compare an interval with the one before.
func (s *Total) follow() {
	s.table.spreads = nil
	if n := len(s.table.cells); len(s.now) != n {
		s.now, s.courses = make([]Cell, n), make([]Course, n)
		s.drifts, s.histories = make([][]*drift, len(s.table.Scopes)), make([]history, len(s.table.Scopes))
		for i := range s.drifts {
			s.drifts[i], s.histories[i] = driftsOf(s.table.Layout), newHistory(n)
		}
	}
	clear(s.now)
}

// step ends an interval.
func (s *Total) step() {
	n := len(s.table.Columns)
	for i := range s.now {
		s.courses[i].add(&s.now[i])
	}
	s.table.courses, s.table.histories = s.courses, s.histories
	for i, drifts := range s.drifts {
		s.histories[i].step(s.now[i*n : (i+1)*n])
		for _, d := range drifts {
			d.step(s.now[i*n : (i+1)*n])
		}
	}
}

// gap notes that an interval lacks a cell that earlier ones had: for as long as
// the others were enabled, this one was not counted. It is not 0.
func (s *Total) gap(row []Cell, into *Cell) {
	lost := Cell{State: NotCounted}
	for j := range row {
		lost.Enabled = max(lost.Enabled, row[j].Enabled)
	}
	into.Add(&lost)
}

// begin starts a sum with a table's description.
func (s *Total) begin(t *Table) {
	layout := s.spare.Layout
	s.table, s.spare = s.spare, nil
	s.table.Reset(layout)
	cells, notes := s.table.cells, s.table.Notes[:0]
	*s.table = *t
	s.table.Layout, s.table.cells = layout, cells
	s.table.Notes = append(notes, t.Notes...)
	s.table.Interval = t.Interval && s.by.Has(Interval)
	s.table.joints, s.table.courses, s.table.histories = nil, nil, nil
	if !t.Interval && inOrder(s.column, len(layout.Columns)) && inOrder(s.scope, len(layout.Scopes)) {
		s.table.joints, s.table.courses = t.joints, t.courses
	}
	s.open, s.end = t.Interval, t.Start+t.Duration
}

// inOrder reports whether indexes are those of all n things in their order: nothing is summed
// with something else.
func inOrder(at []int, n int) bool {
	for i, x := range at {
		if i != x {
			return false
		}
	}
	return len(at) == n
}

// extend adds a later interval's time and notes.
func (s *Total) extend(t *Table) {
	s.table.joints, s.table.courses, s.table.histories = nil, nil, nil
	s.end = t.Start + t.Duration
	if !math.IsNaN(t.Duration) {
		s.table.Duration += t.Duration
	}
	for _, n := range t.Notes {
		if len(s.table.Notes) < notesMost && !slices.Contains(s.table.Notes, n) {
			s.table.Notes = append(s.table.Notes, n)
		}
	}
}

// notesMost bounds the notes of a sum.
const notesMost = 100

// adopt works out where a layout's columns and scopes go. It extends the total's layout by
// those it lacks.
func (s *Total) adopt(l *Layout) error {
	old := &Layout{}
	switch {
	case s.table != nil:
		old = s.table.Layout
	case s.spare != nil:
		old = s.spare.Layout
	}
	own := &Layout{Columns: slices.Clone(old.Columns), Scopes: slices.Clone(old.Scopes)}
	column, scope := place(own, l), make([]int, len(l.Scopes))
	for i := range l.Scopes {
		r, err := s.by.reduce(l.Scopes[i])
		if err != nil {
			return err
		}
		at := slices.IndexFunc(own.Scopes, func(o Scope) bool { return same(o, r) })
		if at < 0 {
			at = len(own.Scopes)
			own.Scopes = append(own.Scopes, r)
		} else if at >= len(old.Scopes) {
			own.Scopes[at].CPUs += r.CPUs
		}
		scope[i] = at
	}
	s.source, s.column, s.scope = l, column, scope
	s.had = make([]bool, len(l.Columns)*len(l.Scopes))
	s.shares = make([]bool, len(l.Columns))
	for i := range l.Columns {
		s.shares[i] = strings.HasPrefix(l.Columns[i].Event, peers.Published)
	}
	switch {
	case s.table == nil:
		if s.spare == nil || !own.equal(old) {
			s.spare = NewTable(own)
		}
	case !own.equal(old):
		s.grow(own)
	}
	return nil
}

// place finds a layout's columns among another's, adding those it lacks. Equal
// columns are matched by their order.
func place(own, l *Layout) []int {
	at := make([]int, len(l.Columns))
	taken := make([]bool, len(own.Columns), len(own.Columns)+len(l.Columns))
	for i, c := range l.Columns {
		k := 0
		for k < len(own.Columns) && (taken[k] || own.Columns[k] != c) {
			k++
		}
		if k == len(own.Columns) {
			own.Columns = append(own.Columns, c)
			taken = append(taken, false)
		}
		taken[k] = true
		at[i] = k
	}
	return at
}

// same says whether two reduced scopes are one, whatever number of logical
// processors each stands for.
func same(a, b Scope) bool {
	a.CPUs, b.CPUs = 0, 0
	return a == b
}

// grow gives the sum a larger layout.
func (s *Total) grow(own *Layout) {
	old := s.table
	bigger := NewTable(own)
	for i := range old.Scopes {
		copy(bigger.Row(i), old.Row(i))
	}
	s.table = old
	s.table.Layout, s.table.cells = own, bigger.cells
	s.table.Notes = append(s.table.Notes, Notef("events or scopes came or went during the recording: sums are over the intervals that have them"))
}

// reduce returns the scope that a scope is summed into.
func (b By) reduce(s Scope) (Scope, error) {
	r := RunScope("")
	r.CPUs = s.CPUs
	if r.CPUs == 0 && s.CPU != Unknown {
		r.CPUs = 1
	}
	if b.Has(Interval) {
		r.Kind = Interval
	}
	keep := func(k Kind, to *int, v int) error {
		if !b.Has(k) {
			return nil
		}
		if v == Unknown {
			return fmt.Errorf("the counts are by %s: they cannot be split by %s", s.Kind, k)
		}
		*to, r.Kind = v, k
		return nil
	}
	// From the coarse to the fine, so that Kind is the finest asked for.
	for _, f := range []struct {
		kind Kind
		to   *int
		v    int
	}{{Node, &r.Node, s.Node}, {Socket, &r.Socket, s.Socket}, {Die, &r.Die, s.Die}, {Core, &r.Core, s.Core},
		{CPU, &r.CPU, s.CPU}, {Process, &r.TID, s.process()}, {Thread, &r.TID, s.TID}} {
		if err := keep(f.kind, f.to, f.v); err != nil {
			return r, err
		}
	}
	// A part of the machine is known with what it is part of.
	if b.Has(Die) || b.Has(Core) || b.Has(CPU) {
		r.Socket = s.Socket
	}
	if b.Has(Core) || b.Has(CPU) {
		r.Die = s.Die
	}
	if b.Has(CPU) {
		r.Core, r.Node = s.Core, s.Node
	}
	if b.Has(Cgroup) {
		if s.Cgroup == "" {
			return r, fmt.Errorf("the counts are by %s: they cannot be split by cgroup", s.Kind)
		}
		r.Cgroup = s.Cgroup
		if r.Kind == Run || r.Kind == Interval {
			r.Kind = Cgroup
		}
	}
	if b.Has(Comm) {
		if r.Comm = s.comm(); r.Comm == "" {
			return r, fmt.Errorf("the counts are by %s: they cannot be split by comm", s.Kind)
		}
		if r.Kind == Run || r.Kind == Interval || r.Kind == Cgroup {
			r.Kind = Comm
		}
	}
	r.Label = s.label(r)
	return r, nil
}

// comm is the name of a thread or process without its number: "bash" of "bash-1234".
func (s Scope) comm() string {
	number := "-" + strconv.Itoa(s.TID)
	switch {
	case s.Comm != "":
		return s.Comm
	case s.Kind != Thread && s.Kind != Process:
		return ""
	case s.Label == number[1:]: // a thread without a name
		return s.Label
	}
	return strings.TrimSuffix(s.Label, number)
}

// process is the number of the scope's process, if that is what it is about.
func (s Scope) process() int {
	if s.Kind == Process {
		return s.TID
	}
	return Unknown
}

// label names what s was reduced to.
func (s Scope) label(r Scope) string {
	switch r.Kind {
	case Run, Interval:
		return ""
	case s.Kind:
		return s.Label
	case Node:
		return fmt.Sprintf("N%d", r.Node)
	case Socket:
		return fmt.Sprintf("S%d", r.Socket)
	case Die:
		return fmt.Sprintf("S%d-D%d", r.Socket, max(r.Die, 0))
	case Core:
		return fmt.Sprintf("S%d-D%d-C%d", r.Socket, max(r.Die, 0), r.Core)
	case Cgroup:
		return r.Cgroup
	case Comm:
		return r.Comm
	}
	return s.Label
}
