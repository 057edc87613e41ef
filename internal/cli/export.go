package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/export"
	"github.com/cyclestack/cyclestack/internal/source/samples"
	"github.com/cyclestack/cyclestack/report"
	"github.com/cyclestack/cyclestack/source"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// exportFormats are the formats of report that are for programs that show profiles.
var exportFormats = []string{"pprof", "speedscope", "collapsed", "flamegraph"}

// exportFlags are the flags of report that are for exportFormats.
type exportFlags struct{ event string }

// add adds the flags.
func (x *exportFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&x.event, "event", "e", "", "for "+strings.Join(exportFormats, ", ")+": the `EVENT` that is exported")
}

// reportFormats are all formats of report.
func reportFormats() []string { return slices.Concat(report.Formats[report.Accounts](), exportFormats) }

// wanted reports whether a format is asked for that is for programs, or what is for
// such only.
func (x *exportFlags) wanted(c *common) bool {
	return slices.Contains(exportFormats, c.format) || x.event != ""
}

// An exporter writes the stacks of a recording with the amounts of a method's nodes.
type exporter struct {
	*placer
	stacks stacks
	event  string
}

// stacks are what is exported, with the table of their innermost places.
type stacks interface {
	Table() *counts.Table
	All() iter.Seq[*samples.Stack]
	Callchains() bool
	Notes() []counts.Note
	Kind() string
	Close() error
}

// export writes the stacks of a recording in a format of exportFormats.
func (a *app) export(c *common, f *placeFlags, x *exportFlags, by division, files []string) error {
	switch {
	case !slices.Contains(exportFormats, c.format):
		return usageError("--event is for --format %s", strings.Join(exportFormats, ", "))
	case len(files) > 1:
		return usageError("--format %s: one recording at a time", c.format)
	case by.within != 0 || len(by.kinds) > 1:
		return usageError("--by %s: stacks are of one of %s", by, strings.Join(placeNames(), ", "))
	case f.top > 0 || f.expand != "" || f.interval > 0:
		return usageError("--top, --expand and --interval are not for %s", c.format)
	case c.format == "pprof" && c.output == "" && isTerminal(a.out):
		return usageError("--format pprof is no text: -o FILE")
	}
	keep, err := f.filter.filter()
	if err != nil {
		return err
	}
	s, err := c.session()
	if err != nil {
		return err
	}
	e := &exporter{placer: &placer{reporter: newReporter(s, nil, 0, files...), f: f, by: by, keep: keep}, event: x.event}
	e.file = files[0]
	if err := e.read(exportBy(by)); err != nil {
		return err
	}
	defer e.stacks.Close()
	e.kind = e.stacks.Kind()
	return a.write(c, func(out io.Writer) error {
		notes, err := e.write(out)
		for _, n := range notes {
			fmt.Fprintf(a.err, "note: %s\n", oneLine(errors.New(n)))
		}
		return err
	}, files...)
}

// read reads the stacks of samples, or the places of a simulation.
func (e *exporter) read(by counts.Kind) error {
	r, closeAll, err := simulated(e.f.symbols.Root, e.file, by, counts.By(0).With(counts.Function), e.keep.Code())
	switch {
	case err != nil:
		return inputError(err)
	case r != nil && e.f.filter.more():
		return errors.Join(noFilters(e.file), closeAll())
	case r != nil && !r.Next():
		return inputError(errors.Join(r.Err(), closeAll()))
	case r != nil:
		e.stacks = &placeStacks{r.Table(), r.Kind(), closeAll}
		return nil
	}
	stream, err := source.Stream(e.file)
	if err != nil {
		return inputError(err)
	}
	e.stacks, err = samples.OpenStacks(e.file, stream, samples.Options{By: by, Filter: e.keep, Symbols: e.f.symbols})
	switch {
	case errors.Is(err, perfdata.ErrFormat):
		return inputError(fmt.Errorf("%w; --format %s needs samples, as perf record takes them", err, e.s.c.format))
	case err != nil:
		return e.unread(err)
	}
	return nil
}

// placeStacks are the places of a table as stacks: the module, and what is in it.
type placeStacks struct {
	table *counts.Table
	kind  string
	close func() error
}

func (s *placeStacks) Table() *counts.Table { return s.table }
func (s *placeStacks) Callchains() bool     { return false }
func (s *placeStacks) Notes() []counts.Note { return nil }
func (s *placeStacks) Kind() string         { return s.kind }
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

// exportBy is what frames are told apart by: functions, unless --by names another kind.
func exportBy(by division) counts.Kind {
	if by.code == counts.Run {
		return counts.Function
	}
	return by.code
}

// isTerminal reports whether a stream is a terminal.
func isTerminal(w io.Writer) bool {
	f := file(w)
	return f != nil && term.IsTerminal(int(f.Fd()))
}

// write writes the profile, and returns what there is to say that it does not.
func (e *exporter) write(out io.Writer) ([]string, error) {
	p, err := e.profile()
	if err != nil {
		return nil, err
	}
	var left export.Omission
	switch e.s.c.format {
	case "pprof":
		return nil, export.Pprof(out, p)
	case "speedscope":
		left, err = export.Speedscope(out, p, "cyclestack")
	case "flamegraph":
		left, err = export.FlameGraph(out, p)
		return nil, err
	default:
		if err := e.single(p); err != nil {
			return nil, err
		}
		left, err = export.Collapsed(out, p, p.Default)
	}
	notes := slices.Concat(e.stacks.Table().Notes, e.stacks.Notes())
	// That a filter leaves something out is what it was asked to do.
	notes = slices.DeleteFunc(notes, func(n counts.Note) bool { return n.Kind == counts.NoteFiltered })
	return append(noteTexts(notes), left.Notes()...), err
}

// single refuses what is more than one node or event, for a format of one.
func (e *exporter) single(p *export.Profile) error {
	if e.s.c.nodes == "" || e.event != "" {
		return nil
	}
	var names []string
	for _, t := range p.Types {
		if t.Path != "" {
			names = append(names, t.Name)
		}
	}
	if len(names) > 1 {
		return usageError("--nodes %s: %s is of one node, and these are %d: %s", e.s.c.nodes, e.s.c.format, len(names), firstOf(names))
	}
	return nil
}

// profile makes the profile: the nodes that are known, and the events.
func (e *exporter) profile() (*export.Profile, error) {
	t := e.stacks.Table()
	if err := e.settle(t); err != nil {
		return nil, err
	}
	p := &export.Profile{Title: cmp.Or(t.Label, filepath.Base(e.file)), Duration: t.Duration, Threads: !e.stacks.Callchains(),
		Notes: noteTexts(slices.Concat(t.Notes, e.stacks.Notes()))}
	var amounts *export.Amounts
	if e.flat == "" {
		var err error
		if amounts, err = e.amounts(t); err != nil {
			return nil, err
		}
		p.Types = amounts.Types()
		p.Notes = append(p.Notes, amounts.Notes()...)
	} else {
		p.Notes = append(p.Notes, "no nodes: "+e.flat)
		if e.s.c.nodes != "" {
			return nil, inputError(fmt.Errorf("%s: --nodes %s: %s", e.file, e.s.c.nodes, e.flat))
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
		return nil, e.nothing()
	}
	p.Default = e.first(t, nodes, columns)
	p.Stacks = e.all(p, amounts, columns)
	return p, nil
}

// amounts makes the amounts of the nodes that are asked for, and known.
func (e *exporter) amounts(t *counts.Table) (*export.Amounts, error) {
	c := e.s.c
	nodes := report.Select(e.s.model, c.nodes, c.level)
	if len(nodes) == 0 {
		return nil, e.s.unmatched("--nodes", c.nodes)
	}
	known := export.Known(e.s.method, t, nodes)
	if len(known) == 0 && c.nodes != "" {
		return nil, inputError(fmt.Errorf("%s: --nodes %s: not known from what was sampled, or no part of the %s", e.file, c.nodes, e.s.model.Unit))
	}
	return export.NewAmounts(e.s.method, t, known), nil
}

// columns returns the columns of the events that are asked for: all, or with --event
// those, and with --nodes alone none.
func (e *exporter) columns(t *counts.Table) ([]int, error) {
	var list []int
	for col := range t.Columns {
		switch cell := t.Cell(0, col); {
		case !cell.Ok(), e.event == "" && e.s.c.nodes != "":
		case e.event == "" || meansEvent(e.event, t.Columns[col].Event):
			list = append(list, col)
		}
	}
	if len(list) == 0 && e.event != "" {
		return nil, usageError("--event %s: %s has samples of %s", e.event, e.file, strings.Join(eventNames(t), ", "))
	}
	return list, nil
}

// meansEvent reports whether a user means an event: modifiers may be left out.
func meansEvent(user, event string) bool {
	return strings.EqualFold(user, event) || strings.HasPrefix(strings.ToLower(event), strings.ToLower(user)+":")
}

// first returns the type that is shown first: the node or event that was asked for,
// else the event by which places are compared.
func (e *exporter) first(t *counts.Table, nodes int, columns []int) int {
	switch {
	case e.event != "":
		return nodes
	case e.s.c.nodes != "":
		return 0
	}
	return nodes + max(0, slices.Index(columns, e.clock(t)))
}

// all yields the stacks with their values.
func (e *exporter) all(p *export.Profile, amounts *export.Amounts, columns []int) iter.Seq[*export.Stack] {
	frames := map[*samples.Frame]*export.Frame{}
	return func(yield func(*export.Stack) bool) {
		out := &export.Stack{}
		for s := range e.stacks.All() {
			out.Thread, out.Frames, out.Values, out.Bottleneck = s.Thread, out.Frames[:0], out.Values[:0], ""
			for _, f := range s.Frames {
				x := frames[f]
				if x == nil {
					x = frameOf(f)
					frames[f] = x
				}
				out.Frames = append(out.Frames, x)
			}
			if amounts != nil {
				out.Values, out.Bottleneck = amounts.Of(s.Place, s.Cells, out.Values), amounts.Bottleneck(s.Place)
			}
			for _, col := range columns {
				out.Values = append(out.Values, export.EventValue(&e.stacks.Table().Columns[col], &s.Cells[col]))
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
