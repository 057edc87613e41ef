package recorded

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/accounting"
	"github.com/cyclestack/cyclestack/internal/export"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/internal/sorting"
	"github.com/cyclestack/cyclestack/internal/source/samples"
	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/source"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// StackOptions are those of a profile of stacks.
type StackOptions struct {
	By       counts.Kind // what frames are split by; Run is functions
	Event    string      // the one event; "" is all, or those of the nodes
	Memory   int         // bytes for the stacks; 0 is samples.DefaultStackMemory
	Calls    int         // see samples.Options.StackCalls
	Filter   Filter
	Symbols  profile.Config
	NoInline bool // inlined calls are part of the function around them
	NoLines  bool // functions need no files
	Cgroups  bool // stacks are split by cgroup, too
	// Intervals makes the pieces of the profile: the stacks of each interval.
	Intervals bool
	Interval  time.Duration // see [PlaceOptions]
}

// A StackProfile is the stacks of a recording, with the amounts of a method's nodes.
type StackProfile struct {
	*export.Profile
	Notes  []counts.Note // for the user, where the format has no room for them
	stacks stacks
}

// Close closes the files with symbols.
func (p *StackProfile) Close() error { return p.stacks.Close() }

// One refuses a profile of more than one of the user's nodes, for a format of one.
func (p *StackProfile) One(nodes, format string) error {
	var names []string
	for _, t := range p.Types {
		if t.Path != "" {
			names = append(names, t.Name)
		}
	}
	if len(names) > 1 {
		return &fault.OptionError{Option: "nodes", Value: nodes, Err: fmt.Errorf("%s is of one node, and these are %d: %s", format, len(names), accounting.FirstOf(names))}
	}
	return nil
}

// stacks are what is exported, with the table of their innermost places.
type stacks interface {
	Table() *counts.Table
	All() iter.Seq[*samples.Stack]
	Callchains() bool
	Notes() []counts.Note
	Close() error
}

// A stackReport is the making of a profile.
type stackReport struct {
	placeReport
	stacks  stacks
	event   string
	memory  int
	calls   int
	noLines bool
	within  counts.By // what else stacks are split by
}

// Stacks returns the profile of the first recording. It must be closed.
func (r *Recordings) Stacks(o StackOptions) (*StackProfile, error) {
	if o.By == counts.Run || o.NoLines && (o.By == counts.Line || o.By == counts.Instruction) {
		o.By = counts.Function // with names alone, places of one function are together anyway
	}
	e := &stackReport{event: o.Event, memory: o.Memory, calls: o.Calls, noLines: o.NoLines, placeReport: placeReport{Recordings: r, file: r.Names[0],
		o: &PlaceOptions{Split: SplitBy(o.By), NoInline: o.NoInline, Filter: o.Filter, Symbols: o.Symbols, Interval: o.Interval}}}
	if o.Cgroups {
		e.within = e.within.With(counts.Cgroup)
	}
	if o.Intervals {
		e.within = e.within.With(counts.Interval)
	}
	rec, err := r.recording(e.file)
	if err != nil {
		return nil, err
	}
	defer rec.Close()
	if err := e.read(rec.Recording, o.By); err != nil {
		return nil, err
	}
	p, err := e.profile()
	if err != nil {
		return nil, errors.Join(err, e.stacks.Close())
	}
	notes := slices.Concat(e.stacks.Table().Notes, e.stacks.Notes())
	// That a filter leaves something out is what it was asked to do.
	notes = sorting.Delete(notes, func(n counts.Note) bool { return n.Kind == counts.NoteFiltered })
	return &StackProfile{p, notes, e.stacks}, nil
}

// read reads the stacks of samples, or the places of a simulation.
func (e *stackReport) read(rec *source.Recording, by counts.Kind) error {
	o := samples.Options{By: by, Within: e.within, Interval: e.o.Interval, StackMemory: e.memory, StackCalls: e.calls, NoInline: e.o.NoInline, NoLines: e.noLines, Waits: e.waits(), Filter: e.o.Filter.Filter, Symbols: e.o.Symbols}
	if !rec.Simulated() {
		s, err := rec.Stacks(o)
		switch {
		case errors.Is(err, perfdata.ErrFormat):
			return &SamplesError{err}
		case err != nil:
			return e.unread(err)
		}
		e.stacks, e.kind = s, accounting.KindOf(s)
		return nil
	}
	if e.o.Filter.used() && !e.o.Filter.onlyCode() {
		return noFilters(e.file)
	}
	o.Within = counts.By(0).With(counts.Function)
	in := rec.SimulatedPlaces(o)
	if !in.Next() {
		return fault.As(fault.Input, errors.Join(in.Err(), in.Close()))
	}
	e.stacks, e.kind = &placeStacks{in.Table(), in.Close}, accounting.KindOf(in)
	return nil
}

// placeStacks are the places of a table as stacks: the module, and what is in it.
type placeStacks struct {
	table *counts.Table
	close func() error
}

func (s *placeStacks) Table() *counts.Table { return s.table }
func (s *placeStacks) Callchains() bool     { return false }
func (s *placeStacks) Notes() []counts.Note { return nil }
func (s *placeStacks) Close() error         { return s.close() }

// All yields a stack for each place.
func (s *placeStacks) All() iter.Seq[*samples.Stack] {
	return func(yield func(*samples.Stack) bool) {
		modules := map[string]*samples.Frame{}
		for row := 1; row < len(s.table.Scopes); row++ {
			c := s.table.Scopes[row].Code
			if c == nil {
				c = &counts.Code{}
			}
			m := modules[c.Module]
			if m == nil {
				m = &samples.Frame{Kind: samples.ModuleFrame, Module: c.Module, BuildID: c.BuildID}
				modules[c.Module] = m
			}
			f := &samples.Frame{Function: c.Function, Module: c.Module, BuildID: c.BuildID, File: c.File, Line: c.Line, Addr: c.Addr}
			if c.Function == "" && c.Line > 0 {
				f.Function = fmt.Sprintf("%s:%d", filepath.Base(c.File), c.Line)
			}
			if !yield(&samples.Stack{Frames: []*samples.Frame{m, f}, Place: row, Cells: s.table.Row(row)}) {
				return
			}
		}
	}
}

// profile makes the profile: the nodes that are known, and the events.
func (e *stackReport) profile() (*export.Profile, error) {
	t := e.stacks.Table()
	if err := e.resolve(t); err != nil {
		return nil, err
	}
	p := &export.Profile{Title: cmp.Or(t.Label, filepath.Base(e.file)), Duration: t.Duration, Threads: !e.stacks.Callchains(),
		Notes: e.texts(slices.Concat(t.Notes, e.stacks.Notes()))}
	var amounts *export.Amounts
	if e.flat == "" {
		var err error
		if amounts, err = e.amounts(t); err != nil {
			return nil, err
		}
		p.Types = amounts.Types()
		p.Notes = append(p.Notes, amounts.Notes()...)
	} else {
		p.Notes = append(p.Notes, e.flat)
		if nodes := e.Choice.Nodes; nodes != "" {
			return nil, unknownNodes(e.file, nodes, e.flat)
		}
	}
	nodes := len(p.Types)
	columns, err := e.columns(t)
	if err != nil {
		return nil, err
	}
	for _, col := range columns {
		p.Types = append(p.Types, export.EventType(&t.Columns[col]))
	}
	if len(p.Types) == 0 {
		o := e.options(0)
		return nil, o.Nothing(e.method, t, e.kind)
	}
	p.Default = e.first(t, nodes, columns)
	p.Stacks = e.all(amounts, columns)
	if s, ok := e.stacks.(*samples.Stacks); ok && e.within.Has(counts.Interval) {
		p.Pieces, p.Crowded = e.pieces(s, amounts, columns), s.Crowded()
		if amounts != nil {
			p.Units = amounts.Units()
		}
	}
	return p, nil
}

// amounts makes the amounts of the nodes that are asked for, and known.
func (e *stackReport) amounts(t *counts.Table) (*export.Amounts, error) {
	c := &e.Choice
	nodes := e.method.Model.Select(c.Nodes, c.Level)
	if len(nodes) == 0 {
		return nil, e.method.Unmatched("nodes", c.Nodes)
	}
	known := export.Known(e.method.Account, t, nodes)
	if len(known) == 0 && c.Nodes != "" {
		return nil, unknownNodes(e.file, c.Nodes, "not known from what was sampled, or no part of the "+e.method.Model.Unit)
	}
	return export.NewAmounts(e.method.Account, t, known), nil
}

// columns returns the columns of the events that are exported: the one that is asked
// for, none for nodes alone, else all.
func (e *stackReport) columns(t *counts.Table) ([]int, error) {
	var list []int
	for col := range t.Columns {
		switch cell := t.Cell(0, col); {
		case !cell.Ok(), e.event == "" && e.Choice.Nodes != "":
		case e.event == "" || meansEvent(e.event, t.Columns[col].Event):
			list = append(list, col)
		}
	}
	if len(list) == 0 && e.event != "" {
		return nil, &fault.OptionError{Option: "event", Value: e.event, Err: fmt.Errorf("%s has samples of %s", e.file, strings.Join(resolve.EventNames(t), ", "))}
	}
	return list, nil
}

// meansEvent reports whether a user means an event: modifiers may be left out.
func meansEvent(user, event string) bool {
	return strings.EqualFold(user, event) || strings.HasPrefix(strings.ToLower(event), strings.ToLower(user)+":")
}

// first returns the type that is shown first: the node or event that was asked for,
// else the event that places are compared by.
func (e *stackReport) first(t *counts.Table, nodes int, columns []int) int {
	switch {
	case e.event != "":
		return nodes
	case e.Choice.Nodes != "":
		return 0
	}
	return nodes + max(0, slices.Index(columns, accounting.Clock(e.method, t)))
}

// all yields the stacks with their values.
func (e *stackReport) all(amounts *export.Amounts, columns []int) iter.Seq[*export.Stack] {
	return func(yield func(*export.Stack) bool) {
		out := &export.Stack{}
		for s := range e.stacks.All() {
			out.Thread, out.Cgroup, out.Frames, out.Same, out.Number = s.Thread, s.Cgroup, out.Frames[:s.Same], s.Same, s.Number
			out.Values, out.Bottleneck = out.Values[:0], ""
			for _, f := range s.Frames[s.Same:] {
				x, ok := f.Shown.(*export.Frame)
				if !ok {
					x = frameOf(f)
					f.Shown = x
				}
				out.Frames = append(out.Frames, x)
			}
			if amounts != nil {
				out.Values, out.Bottleneck = amounts.Of(s.Place, s.Cells, out.Values), amounts.Bottleneck(s.Place)
			}
			out.Values = e.events(columns, s.Cells, out.Values)
			if !yield(out) {
				return
			}
		}
	}
}

// events appends the values of a stack's events.
func (e *stackReport) events(columns []int, cells []counts.Cell, to []float64) []float64 {
	for _, col := range columns {
		to = append(to, export.EventValue(&e.stacks.Table().Columns[col], &cells[col]))
	}
	return to
}

// pieces yields the stacks of each interval. There, a place has an account of its own.
func (e *stackReport) pieces(s *samples.Stacks, amounts *export.Amounts, columns []int) iter.Seq[*export.Piece] {
	return func(yield func(*export.Piece) bool) {
		whole := s.Table()
		t, out := counts.NewTable(whole.Layout), &export.Piece{}
		rows, met := []int(nil), make([]bool, len(t.Scopes))
		for span := range s.Spans() {
			out.Start, out.Stacks, out.Places, rows = span.Start, out.Stacks[:0], out.Places[:0], rows[:0]
			for i := range span.Parts {
				part := &span.Parts[i]
				to := export.Part{Stack: part.Stack, Place: part.Place, Events: e.events(columns, part.Cells, nil)}
				if amounts != nil {
					to.Wholes = amounts.Wholes(part.Cells, nil)
				}
				out.Stacks = append(out.Stacks, to)
				if row := part.Place; !met[row] {
					met[row], rows = true, append(rows, row)
					copy(t.Row(row), part.Cells)
				} else {
					for col := range part.Cells {
						t.Cell(row, col).Add(&part.Cells[col])
					}
				}
			}
			for _, row := range rows {
				if met[row] = false; amounts != nil {
					list, limit := amounts.Place(t, whole, row)
					out.Places = append(out.Places, export.PlacePart{Place: row, Amounts: list, Bottleneck: limit})
				}
			}
			if !yield(out) {
				return
			}
		}
	}
}

// frameOf is a frame for an export.
func frameOf(f *samples.Frame) *export.Frame {
	x := &export.Frame{Function: f.Function, Module: f.Module, BuildID: f.BuildID, File: f.File, Line: f.Line, Addr: f.Addr,
		Kernel: f.Kernel, Inlined: f.Inlined}
	switch f.Kind {
	case samples.ModuleFrame:
		x.Function = cmp.Or(f.Module, "[unknown]")
	case samples.TruncatedFrame:
		x.Function = "[truncated]"
	case samples.OthersFrame:
		x.Function = "[other stacks]"
	}
	return x
}
