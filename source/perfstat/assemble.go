package perfstat

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/cyclestack/cyclestack/counts"
)

// Bounds of one table, far above what perf can count: no input makes the reader take all
// memory or time.
const (
	maxEvents = 8 << 10
	maxCells  = 2 << 20
	smallest  = 64 << 10 // cells of a table that may be as empty as it likes
	maxEmpty  = 64       // cells of a larger one for each count
)

// A record is a count on its way from a row to a cell.
type record struct {
	scope, event int32
	col          int32 // -1: to be found, by counting the readings of the event in the scope
	times        times
	lone         marks // text: the one between the value's digits, taken to group them
	line         int
	cell         counts.Cell
}

// times says what a record's times are.
type times uint8

const (
	exact    times = iota // nanoseconds
	relative              // shares of the table's duration
	inVain                // enabled for an unknown time, and (nearly) never on a counter
)

// An assembler collects the records of a table and gives them their places.
// What it learns of columns and scopes it keeps from interval to interval.
type assembler struct {
	recs    []record
	scopes  []scope
	scopeAt map[string]int32 // by the text before the count and the cgroup
	events  []event
	eventAt map[string]int32
	columns []counts.Column
	rows    int // how many records the first table of the layout had

	layout *counts.Layout // of the last table
	dirty  bool           // there are scopes, events or repetitions that layout lacks
	marks  [][]uint32     // for each scope, by column, the last table with it
	serial uint32         // of the table
	key    []byte
}

type scope struct {
	key string
	counts.Scope
}

// An event has one column, or several if it was counted more than once.
type event struct {
	name, unit string
	columns    []int32
}

var errTooLarge = errors.New("too large")

// forget makes ready for a block with other columns.
func (a *assembler) forget() {
	a.scopes, a.events, a.columns = a.scopes[:0], a.events[:0], nil
	clear(a.scopeAt)
	clear(a.eventAt)
	a.dirty = true
}

// add appends a row that belongs to a block.
func (a *assembler) add(r *row, b *block) error {
	if len(a.recs) >= maxCells {
		return fmt.Errorf("%w: more than %d counts in one table", errTooLarge, maxCells)
	}
	e, err := a.event(r)
	if err != nil {
		return err
	}
	rec := record{scope: a.scope(r, b), event: e, col: -1, line: r.line, lone: r.spelling.lone}
	rec.cell, rec.times = r.cell()
	if b.repeats > 1 {
		rec.cell.Repeats = int32(b.repeats)
	}
	a.recs = append(a.recs, rec)
	return nil
}

// scope returns the number of a row's scope.
func (a *assembler) scope(r *row, b *block) int32 {
	a.key = append(append(append(a.key[:0], r.id...), 0), r.cgroup...)
	if s, ok := a.scopeAt[string(a.key)]; ok {
		return s
	}
	s := scope{key: string(a.key), Scope: r.scope(b)}
	a.scopes = append(a.scopes, s)
	if a.scopeAt == nil {
		a.scopeAt = map[string]int32{}
	}
	a.scopeAt[s.key] = int32(len(a.scopes) - 1)
	a.dirty = true
	return int32(len(a.scopes) - 1)
}

// event returns the number of a row's event.
func (a *assembler) event(r *row) (int32, error) {
	if e, ok := a.eventAt[string(r.event)]; ok {
		if a.events[e].unit == "" && len(r.unit) > 0 && len(a.events[e].columns) == 0 {
			a.events[e].unit = string(r.unit)
		}
		return e, nil
	}
	if len(a.events) >= maxEvents {
		return 0, fmt.Errorf("%w: more than %d different events", errTooLarge, maxEvents)
	}
	e := event{name: string(r.event), unit: string(r.unit)}
	if e.unit == "" && isClock(r.event) {
		e.unit = "msec"
	}
	a.events = append(a.events, e)
	if a.eventAt == nil {
		a.eventAt = map[string]int32{}
	}
	a.eventAt[e.name] = int32(len(a.events) - 1)
	a.dirty = true
	return int32(len(a.events) - 1), nil
}

// drop forgets the first n records.
func (a *assembler) drop(n int) { a.recs = append(a.recs[:0], a.recs[n:]...) }

// table fills t from the first n records.
func (a *assembler) table(t *counts.Table, n int, b *block) error {
	recs := a.recs[:n]
	if err := a.place(recs); err != nil {
		return err
	}
	fresh, before := a.dirty || a.sparse(n), a.layout
	if fresh {
		if err := a.lay(recs); err != nil {
			return err
		}
	}
	t.Reset(a.layout)
	for i := range recs {
		*t.Cell(int(recs[i].scope), int(recs[i].col)) = recs[i].cell
	}
	if math.IsNaN(t.Duration) {
		t.Duration = elapsed(t)
	}
	scaleTimes(t, recs)
	if fresh {
		a.rows = n
		a.group(t, recs, b)
		if same(before, a.layout) {
			a.layout, t.Layout = before, before
		}
	}
	return nil
}

// same reports whether a layout is like the one before it, so that the earlier
// pointer can stay.
func same(before, now *counts.Layout) bool {
	return before != nil && slices.Equal(before.Columns, now.Columns) && slices.Equal(before.Scopes, now.Scopes)
}

// place gives every record its column. The nth reading of an event in a scope
// is in the nth column of the event.
func (a *assembler) place(recs []record) error {
	if !slices.ContainsFunc(recs, func(r record) bool { return r.col < 0 }) {
		return nil
	}
	a.serial++
	for len(a.marks) < len(a.scopes) {
		a.marks = append(a.marks, nil)
	}
	for i := range recs {
		if recs[i].col >= 0 {
			a.mark(recs[i].scope, recs[i].col)
		}
	}
	for i := range recs {
		r := &recs[i]
		if r.col >= 0 {
			continue
		}
		e := &a.events[r.event]
		for _, c := range e.columns {
			if !a.marked(r.scope, c) {
				r.col = c
				break
			}
		}
		if r.col < 0 {
			if len(a.columns) >= maxEvents {
				return fmt.Errorf("%w: more than %d readings of events", errTooLarge, maxEvents)
			}
			r.col = int32(len(a.columns))
			e.columns = append(e.columns, r.col)
			a.columns = append(a.columns, counts.Column{Event: e.name, Unit: e.unit})
			a.dirty = true
		}
		a.mark(r.scope, r.col)
	}
	return nil
}

func (a *assembler) marked(scope, col int32) bool {
	m := a.marks[scope]
	return int(col) < len(m) && m[col] == a.serial
}

func (a *assembler) mark(scope, col int32) {
	for int(col) >= len(a.marks[scope]) {
		a.marks[scope] = append(a.marks[scope], make([]uint32, len(a.columns)+1)...)
	}
	a.marks[scope][col] = a.serial
}

// lay makes the layout of the records. Scopes that are gone are dropped, so
// that a recording by thread does not collect all that ever ran.
func (a *assembler) lay(recs []record) error {
	a.dropScopes(recs)
	if len(a.scopes)*len(a.columns) > maxCells || a.sparse(len(recs)) {
		return fmt.Errorf("%w: a table of %d places × %d events for %d counts", errTooLarge, len(a.scopes), len(a.columns), len(recs))
	}
	l := &counts.Layout{Columns: slices.Clone(a.columns), Scopes: make([]counts.Scope, len(a.scopes))}
	for i := range a.scopes {
		l.Scopes[i] = a.scopes[i].Scope
	}
	a.layout, a.dirty = l, false
	return nil
}

// sparse reports whether n counts would leave a large table nearly empty.
func (a *assembler) sparse(n int) bool {
	cells := len(a.scopes) * len(a.columns)
	return cells > smallest && cells/maxEmpty > n
}

// dropScopes renumbers the scopes of the records from 0.
func (a *assembler) dropScopes(recs []record) {
	renumbered := make([]int32, len(a.scopes))
	for i := range renumbered {
		renumbered[i] = -1
	}
	used := int32(0)
	for i := range recs {
		if s := recs[i].scope; renumbered[s] < 0 {
			renumbered[s] = 0
			used++
		}
	}
	if int(used) == len(a.scopes) {
		return
	}
	kept := a.scopes[:0]
	clear(a.scopeAt)
	for i, s := range a.scopes {
		if renumbered[i] == 0 {
			renumbered[i] = int32(len(kept))
			a.scopeAt[s.key] = renumbered[i]
			kept = append(kept, s)
		}
	}
	clear(a.scopes[len(kept):])
	a.scopes = kept
	for i := range recs {
		recs[i].scope = renumbered[recs[i].scope]
	}
}

// scope is what a row says about where it was counted.
func (r *row) scope(b *block) counts.Scope {
	s := counts.RunScope(b.label)
	if b.interval {
		s.Kind = counts.Interval
	}
	if len(r.id) > 0 {
		if place, ok := parseScope(r.id); ok {
			s = place
		}
		s.Label = string(r.id)
	}
	if r.cpus > 0 {
		s.CPUs = r.cpus
	}
	if len(r.cgroup) > 0 {
		s.Cgroup = string(r.cgroup)
		if len(r.id) == 0 {
			s.Kind, s.Label = counts.Cgroup, s.Cgroup
		}
	}
	return s
}

// cell is a row's count.
func (r *row) cell() (counts.Cell, times) {
	c := counts.Cell{State: r.state}
	kind := exact
	if r.form == textForm {
		kind = relative
	}
	switch r.state {
	case counts.Counted:
		c.Value = r.value
		c.Variance = square(standardError(r.value, r.noise))
		switch {
		case kind == relative && r.shared:
			c.Enabled, c.Running = relativeTimes(r.share)
		case kind == relative:
			c.Enabled, c.Running = 1, 1 // perf prints no share of an event that was always on a counter
		case r.share == 0 && r.run > 0:
			c.Running, kind = r.run, inVain // a share below what perf prints
		case kind == exact && r.run >= 0 && r.share > 0 && r.share <= 1:
			c.Enabled, c.Running = r.run/r.share, r.run
		}
	case counts.NotCounted:
		if r.share == 0 {
			c.Enabled = 1
			if kind == exact {
				kind = inVain
			}
		}
	}
	return c, kind
}

// relativeTimes returns the times of a share, none for one that cannot be.
func relativeTimes(share float64) (enabled, running float64) {
	if !(share >= 0 && share <= 1) {
		return 0, 0
	}
	return 1, share
}

// standardError returns the error of a value. perf prints relative errors with two
// decimals, so 0.00 % may be up to half of the last one.
func standardError(value, noise float64) float64 {
	if !(noise >= 0) {
		return 0
	}
	const half = 0.005 / 100
	return value * max(noise, half)
}

func square(v float64) float64 { return v * v }

// elapsed returns the seconds that the event duration_time counted, NaN if it
// is not in the table.
func elapsed(t *counts.Table) float64 {
	for i, c := range t.Columns {
		if c.Event != "duration_time" || c.Unit != "" && c.Unit != "ns" {
			continue
		}
		for s := range t.Scopes {
			if cell := t.Cell(s, i); cell.Ok() {
				return cell.Value / 1e9
			}
		}
	}
	return math.NaN()
}

// scaleTimes makes nanoseconds of times that are shares. Events that were enabled in
// vain get the time enabled of others of their scope.
func scaleTimes(t *counts.Table, recs []record) {
	ns := t.Duration * 1e9
	t.Relative = false
	if !(ns > 0) {
		ns = 1e9 // only the ratio of two times is used
		for i := range recs {
			t.Relative = t.Relative || recs[i].times == relative
		}
	}
	vain := false
	for i := range recs {
		c := t.Cell(int(recs[i].scope), int(recs[i].col))
		switch recs[i].times {
		case relative:
			c.Enabled *= ns
			c.Running *= ns
		case inVain:
			c.Enabled = 0
			vain = true
		}
		if c.State == counts.NotCounted {
			c.Lost = c.Enabled
		}
	}
	if !vain {
		return
	}
	for i := range recs {
		if recs[i].times != inVain {
			continue
		}
		c := t.Cell(int(recs[i].scope), int(recs[i].col))
		enabled := 0.0
		for _, other := range t.Row(int(recs[i].scope)) {
			if other.State == counts.Counted {
				enabled = max(enabled, other.Enabled)
			}
		}
		if c.Running > enabled/100 {
			continue // not the less than 1 % that perf rounded to nothing: the others say nothing of it
		}
		c.Enabled = enabled
		if c.State == counts.NotCounted {
			c.Lost = enabled
		}
	}
}
