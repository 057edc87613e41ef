package simulated

import (
	"math"
	"path/filepath"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/accounting"
	"github.com/cyclestack/cyclestack/internal/core"
	"github.com/cyclestack/cyclestack/internal/fault"
)

// Tables are what a simulation counted by function, and by line within functions. They are
// read once.
type tables struct {
	functions, lines *counts.Table
	whole            *counts.Table // functions, with their part of the run's cycles; nil if it is not known
}

// read reads the tables.
func (s *Simulator) read() (err error) {
	if s.tables.functions, s.tables.lines, err = s.result.Tables(); err != nil {
		return err
	}
	if s.tables.functions == nil {
		return fault.Machinef("the simulator counted nothing")
	}
	for _, t := range []*counts.Table{s.tables.functions, s.tables.lines} {
		t.Label, t.Duration = s.m.Options().Label, math.NaN()
	}
	s.tables.whole = s.method.Account.WithWhole(s.tables.functions, accounting.WholeEvent)
	return nil
}

// by returns the counts of the places of a kind, with their part of the run's cycles; nil if it is not
// known.
func (s *Simulator) by(kind counts.Kind) *counts.Table {
	t := s.tables.whole
	if kind == counts.Line && t != nil {
		t = s.method.Account.WithWhole(joined(s.tables.lines), accounting.WholeEvent)
	}
	if t == nil {
		return nil
	}
	t = selected(t, len(t.Scopes))
	t.Notes = nil // they are the run's
	return t
}

// selected returns a copy of the first scopes of a table.
func selected(t *counts.Table, scopes int) *counts.Table {
	out := counts.NewTable(&counts.Layout{Columns: t.Columns, Scopes: t.Scopes[:scopes]})
	out.Label, out.CPU, out.Start, out.Duration, out.Notes, out.NoError = t.Label, t.CPU, t.Start, t.Duration, t.Notes, t.NoError
	for i := range scopes {
		copy(out.Row(i), t.Row(i))
	}
	return out
}

// joined returns a table with one scope for each line. A line is in several functions if it
// was inlined into others.
func joined(t *counts.Table) *counts.Table {
	l := &counts.Layout{Columns: t.Columns, Scopes: []counts.Scope{t.Scopes[0]}}
	to, rows := make([]int, len(t.Scopes)), map[counts.Code]int{}
	for i := 1; i < len(t.Scopes); i++ {
		scope := t.Scopes[i]
		code := *scope.Code
		key := counts.Code{Module: code.Module, File: code.File, Line: code.Line}
		if code.Line == 0 {
			key.Function = code.Function
		}
		at, ok := rows[key]
		switch {
		case !ok:
			at = len(l.Scopes)
			rows[key] = at
			l.Scopes = append(l.Scopes, scope)
		case l.Scopes[at].Code.Function != code.Function:
			code.Function = ""
			l.Scopes[at].Code, l.Scopes[at].Label, l.Scopes[at].Caller = &code, code.Label(counts.Line), nil
		}
		to[i] = at
	}
	out := counts.NewTable(l)
	out.Label, out.CPU, out.Start, out.Duration, out.Notes, out.NoError = t.Label, t.CPU, t.Start, t.Duration, t.Notes, t.NoError
	for i := range t.Scopes {
		for k, cell := range t.Row(i) {
			c := out.Cell(to[i], k)
			c.Value, c.Variance, c.State = c.Value+cell.Value, c.Variance+cell.Variance, cell.State
		}
	}
	return out
}

// hotLoops returns what the model of the core says of the hottest loops; none where it says
// nothing, such as of another architecture.
func (s *Simulator) hotLoops() []*core.Result {
	m := s.method.Account
	functions := s.tables.whole
	if functions == nil || s.result.Core == nil {
		return nil
	}
	column := len(functions.Columns) - 1
	var o core.HotOptions
	hot := map[counts.Code]bool{}
	program := filepath.Base(core.ProgramOf(s.m.Options().Label, ""))
	for _, f := range o.Functions(functions, column) {
		if f.Code.Module == program {
			hot[counts.Code{Module: program, Function: f.Code.Function}] = true
		}
	}
	if len(hot) == 0 {
		return nil
	}
	run := core.Simulated{Table: counts.NewTable(&counts.Layout{})}
	run.Symbols.Indexes = s.options.Indexes
	run.Table.Label = s.m.Options().Label
	defer run.Close()
	var pieces []*counts.Table
	l := &counts.Layout{Scopes: functions.Scopes[:1:1]}
	of := func(c *counts.Code) bool { return hot[counts.Code{Module: c.Module, Function: c.Function}] }
	wanted := func(c *counts.Code) bool { return of(c) && run.Counts(c.Addr) }
	err := s.result.Instructions(of, wanted, func(t *counts.Table) {
		for i := range t.Scopes {
			for k := range t.Row(i) {
				t.Cell(i, k).Variance = 0 // loops have no errors
			}
		}
		if t = m.WithWhole(t, accounting.WholeEvent, core.LoopEvents...); t != nil {
			pieces = append(pieces, t)
			l.Columns, l.Scopes = t.Columns, append(l.Scopes, t.Scopes[1:]...)
		}
	})
	if err != nil || len(pieces) == 0 {
		return nil
	}
	t, last, row := counts.NewTable(l), len(l.Columns)-1, 1
	t.Label, run.Table, run.Column = run.Table.Label, t, last
	*t.Cell(0, last) = *functions.Cell(0, column)
	for _, part := range pieces {
		for i := range part.Scopes[1:] {
			copy(t.Row(row), part.Row(i+1))
			row++
		}
	}
	list, err := run.Analyse(s.result.Core)
	if err != nil {
		return nil
	}
	return list
}
