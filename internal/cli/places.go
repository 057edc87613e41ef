package cli

import (
	"cmp"
	"errors"
	"fmt"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/source/samples"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/report"
	"github.com/cyclestack/cyclestack/source"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// placeFlags are the flags of report that are about what was sampled.
type placeFlags struct {
	top      int
	symbols  profile.Config
	interval millis
	severalFlags
	expand string
	filter filterFlags
}

// add adds the flags.
func (f *placeFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.IntVar(&f.top, "top", 0, "how many places in the code (default: those above 0.5 %; all in json and csv)")
	flags.StringVar(&f.expand, "expand", "", "also columns for the parts of the `NODES` (patterns as of --nodes), or of the whole's bottleneck: bottleneck")
	flags.VarP(&f.interval, "interval", "I", "how long the intervals of --by interval are, in `MS` (default: some twenty of the recording)")
	addSymbols(cmd, &f.symbols)
	f.filter.add(cmd)
}

// used reports whether any of the flags is given.
func (f *placeFlags) used() bool {
	s := &f.symbols
	return f.top != 0 || s.Root != "" || s.Vmlinux != "" || s.Kallsyms != "" || f.interval != 0 || f.expand != "" || f.filter.used()
}

func placeNames() []string {
	var names []string
	for _, k := range samples.Kinds {
		names = append(names, k.String())
	}
	return names
}

// allNames are what --by takes.
func allNames() []string { return append(byNames(), placeNames()...) }

// A division says what is told apart.
type division struct {
	kinds  []counts.Kind // in the order in which they were named
	code   counts.Kind   // the finest kind of place in the code; Run for none
	within counts.By     // the others
}

// divide reads --by.
func divide(text string) (d division, err error) {
	for _, name := range strings.Split(text, ",") {
		name = strings.TrimSpace(name)
		i := slices.Index(allNames(), name)
		if i < 0 {
			return d, usageError("--by %s: there are %s", name, strings.Join(allNames(), ", "))
		}
		k := append(slices.Clone(byKinds), samples.Kinds...)[i]
		if k != counts.Run && !slices.Contains(d.kinds, k) {
			d.kinds = append(d.kinds, k)
		}
	}
	for _, k := range d.kinds {
		d.within = d.within.With(k)
		if slices.Contains(samples.Kinds, k) {
			d.code = max(d.code, k)
		}
	}
	if d.code != counts.Run {
		d.within &^= counts.By(0).With(d.code)
	}
	return d, nil
}

func (d division) String() string {
	if len(d.kinds) == 0 {
		return counts.Run.String()
	}
	var names []string
	for _, k := range d.kinds {
		names = append(names, k.String())
	}
	return strings.Join(names, ",")
}

// sampled reports whether a report is about samples: what it asks for needs them, or
// the recording has nothing else.
func (f *placeFlags) sampled(d division, files []string) bool {
	if d.code != counts.Run || f.used() {
		return true
	}
	return len(files) == 1 && source.Sampled(files[0])
}

// places makes the accounts of what a recording was divided into.
func (a *app) places(c *common, f *placeFlags, by division, files []string) error {
	if f.top < 0 {
		return usageError("--top %d: at least one place", f.top)
	}
	keep, err := f.filter.filter()
	if err != nil {
		return err
	}
	s, err := c.session()
	if err != nil {
		return err
	}
	return a.write(c, func(out io.Writer) error {
		p := &placer{reporter: newReporter(s, nil, 0, files...), f: f, by: by, keep: keep, whole: c.format != report.Formats[report.Accounts]()[0]}
		p.reading = slices.Concat(f.programs(), f.choice())
		p.writer = func(places bool) (report.Writer, error) {
			o := c.options(a.terminal(c, a.out))
			o.Expand, o.Top = f.expand, f.top > 0
			if places {
				o.Layout = report.LayoutParts
			}
			return report.New(c.format, out, o)
		}
		return p.run(files[0])
	}, files...)
}

// A placer turns the samples of a recording into accounts of what they are divided
// into.
type placer struct {
	*reporter
	f      *placeFlags
	by     division
	keep   samples.Filter
	writer func(places bool) (report.Writer, error)
	whole  bool   // no place is left out
	flat   string // why there is nothing but shares: no method fits; "" if one does
}

// run writes the accounts of a recording.
func (p *placer) run(file string) error {
	p.file = file
	r, closeAll, err := p.open(file)
	if err != nil {
		return inputError(err)
	}
	defer closeAll()
	if !r.Next() {
		return p.unread(r.Err())
	}
	t, err := p.further(r.Table())
	if err != nil {
		return err
	}
	p.kind = r.Kind()
	if p.f.filter.used() {
		t.Label = strings.TrimSpace(t.Label + " (" + p.f.filter.String() + ")")
	}
	if err := p.settle(t); err != nil {
		return err
	}
	if nodes := p.s.c.nodes; nodes != "" && p.flat != "" {
		return inputError(fmt.Errorf("%s: --nodes %s: %s", file, nodes, p.flat))
	}
	if len(p.by.kinds) == 0 && p.flat == "" {
		return p.one(t)
	}
	return p.accounts(p.withWhole(t))
}

// withWhole adds what all nodes are parts of to the counts of a simulator, which
// counts no cycles, so that places are compared by it; without a method that has such
// a whole they are compared by the first event.
func (p *placer) withWhole(t *counts.Table) *counts.Table {
	if isSimulated(p.kind) && p.flat == "" {
		if whole := p.s.method.WithWhole(t, wholeEvent); whole != nil {
			return whole
		}
	}
	return t
}

// overview is what a plain report is divided into if there is nothing but shares.
var overview = division{[]counts.Kind{counts.Process, counts.Module}, counts.Module, counts.By(0).With(counts.Process)}

// open opens a recording so that it is divided.
func (p *placer) open(file string) (source.Reader, func() error, error) {
	by := p.by
	if len(by.kinds) == 0 {
		by = overview
	}
	opts := samples.Options{By: by.code, Within: by.within, Interval: time.Duration(p.f.interval), Filter: p.keep, Symbols: p.f.symbols}
	if r, closeAll, err := p.simulated(file); r != nil || err != nil {
		return r, closeAll, err
	}
	if in, err := source.Stream(file); in != nil || err != nil {
		if err != nil {
			return nil, nil, err
		}
		r := samples.NewReader(in, file, opts)
		return r, r.Close, nil
	}
	r, closeAll, err := samples.Open(file, opts)
	return r, closeAll, err
}

// one writes the account of the whole.
func (p *placer) one(t *counts.Table) (err error) {
	if p.w, err = p.writer(false); err != nil {
		return usageError("%v", err)
	}
	whole := counts.NewTable(&counts.Layout{Columns: t.Columns, Scopes: t.Scopes[:1]})
	whole.Label, whole.CPU, whole.Start, whole.Duration, whole.Notes = t.Label, t.CPU, t.Start, t.Duration, t.Notes
	copy(whole.Row(0), t.Row(0))
	if isSimulated(p.kind) && p.f.filter.used() {
		p.judge = ofPart
	}
	if err := p.add(whole, p.kind); err != nil {
		return err
	}
	return p.finish()
}

// unread says why there is nothing to report.
func (p *placer) unread(err error) error {
	var none *samples.NoMatchError
	if errors.As(err, &none) {
		return p.f.filter.explain(none)
	}
	switch {
	case errors.Is(err, perfdata.ErrFormat) && p.by.code == counts.Run:
		return usageError("%v; --top, --interval, --expand, --sysroot, --vmlinux, --kallsyms and the filters are about samples: --by %s", err, strings.Join(placeNames(), ", "))
	case errors.Is(err, perfdata.ErrFormat):
		return inputError(fmt.Errorf("%w; --by %s needs samples, as perf record takes them", err, p.by))
	}
	return inputError(err)
}

// settle chooses the method, by the account of the whole. Where none fits what
// was recorded the places still have their shares, and flat says why.
func (p *placer) settle(t *counts.Table) error {
	s := p.s
	asked := s.c.model != "" || s.c.cpu != ""
	err := s.settleCPU(t, p.file)
	clock := err == nil && !asked && s.kernelOnly(t)
	if err == nil && !clock {
		err = s.settle(t, p.file, "")
	}
	switch {
	case err != nil && asked:
		return err
	case err != nil:
		p.flat = err.Error()
	case !clock && s.model.Name != osModel && p.rests(s.method.Bind(t.Layout).Evaluate(t, account.Place{}, nil)):
		return nil
	case s.c.model != "":
		p.events, p.counted = eventNames(t), true
		return p.nothing()
	default:
		p.flat = fmt.Sprintf("no method for %s can be computed from %s", s.cpu.Name, firstOf(eventNames(t)))
	}
	return s.settleTime()
}

// kernelOnly reports whether a recording has nothing but events that the kernel counts
// itself. No method of a processor's own uses any of them, so that none has to be loaded
// to find that out; the generic one does.
func (s *session) kernelOnly(t *counts.Table) bool {
	generic := func(m model.ModelInfo) bool { return m.Name == resolve.GenericCPU }
	return len(s.c.files) == 0 && !slices.ContainsFunc(s.cat.Models(s.cpu.Name), generic) &&
		!slices.ContainsFunc(eventNames(t), func(name string) bool { return !model.KernelCounts(name) })
}

// rests reports whether an account rests on the events that were sampled, and says more
// than their counts: cycles alone are a node of most methods. A simulator counts much as
// one event.
func (p *placer) rests(a *account.Account) bool {
	return (isSimulated(p.kind) || relates(a)) && a.Known() && slices.ContainsFunc(a.Counts(), func(c account.Count) bool { return c.Used && c.State == counts.Counted })
}

// settleTime takes the method that needs least, for a report without nodes: that of the
// operating system's counters, which says nothing about places in the code.
func (s *session) settleTime() (err error) {
	if s.cpu, err = s.cat.CPU(resolve.GenericCPU); err != nil {
		return err
	}
	return s.settleModel(osModel)
}

// accounts writes the account of the whole and those of its parts, the largest first,
// or those of one interval after the other.
func (p *placer) accounts(t *counts.Table) (err error) {
	if p.w, err = p.writer(true); err != nil {
		return usageError("%v", err)
	}
	col := p.clock(t)
	whole := t.Cell(0, col)
	about := &report.Profile{By: p.by.kinds, Event: t.Columns[col].Event, What: p.what(&t.Columns[col]), Flat: p.flat,
		Samples: whole.Samples, Places: len(t.Scopes) - 1}
	if len(p.by.kinds) == 0 {
		about.By = overview.kinds
	}
	rows := largest(t, col)
	kept, left := p.keepLargest(t, col, rows)
	for _, row := range left {
		about.Left++
		about.LeftShare += t.Cell(row, col).Value / whole.Value
	}
	about.Next = p.next(t, kept)
	p.profile = about
	if x := p.f.expand; x != "" && p.flat == "" && !report.Expandable(p.s.model, x) {
		return p.s.unmatched("--expand", x)
	}
	if err := p.begin(t); err != nil {
		return err
	}
	if err := p.release(); err != nil {
		return err
	}
	binding := p.s.method.Bind(t.Layout)
	var a *account.Account
	for _, row := range append([]int{0}, kept...) {
		a = binding.Evaluate(t, account.Place{Self: row}, a)
		if row > 0 {
			a.Notes = nil // they are the whole's
		} else if p.s.note != "" {
			a.Notes = append(slices.Clone(a.Notes), counts.Notef("%s", p.s.note))
		}
		if err := p.w.Account(a); err != nil {
			return err
		}
	}
	return p.w.End()
}

// keepLargest divides the rows into those that are written and those that are left
// out: written are as many as --top says, else those with shares worth a line, or if
// there is nothing but shares those with much of any event, else all.
func (p *placer) keepLargest(t *counts.Table, col int, rows []int) (kept, left []int) {
	const worth = 0.005
	total := t.Cell(0, col).Value
	for i, row := range rows {
		switch {
		case p.f.top > 0 && i < p.f.top,
			p.f.top == 0 && (p.whole || p.timeline() || t.Cell(row, col).Value >= worth*total || p.flat != "" && much(t, row)):
			kept = append(kept, row)
		default:
			left = append(left, row)
		}
	}
	if p.by.within.Has(counts.Interval) {
		slices.SortStableFunc(kept, func(i, j int) int { return cmp.Compare(t.Scopes[i].Start, t.Scopes[j].Start) })
	}
	return kept, left
}

// much reports whether a row has much of any event.
func much(t *counts.Table, row int) bool {
	const share = 0.05
	for col := range t.Columns {
		if part, whole := t.Cell(row, col), t.Cell(0, col); part.Samples > 0 && part.Value >= share*whole.Value {
			return true
		}
	}
	return false
}

// timeline reports whether nothing but intervals are told apart.
func (p *placer) timeline() bool { return len(p.by.kinds) == 1 && p.by.kinds[0] == counts.Interval }

// largest returns the rows of the places in order of a column's counts.
func largest(t *counts.Table, col int) []int {
	rows := make([]int, len(t.Scopes)-1)
	for i := range rows {
		rows[i] = i + 1
	}
	slices.SortFunc(rows, func(i, j int) int {
		return cmp.Or(cmp.Compare(t.Cell(j, col).Value, t.Cell(i, col).Value),
			cmp.Compare(t.Scopes[i].Label, t.Scopes[j].Label), cmp.Compare(i, j))
	})
	return rows
}

// clock returns the column by which places are compared: that of the processor's
// cycles, else of time, else the first event that was sampled.
func (p *placer) clock(t *counts.Table) int {
	best, rank := 0, -1
	for col, c := range t.Columns {
		if cell := t.Cell(0, col); !cell.Ok() || !(cell.Value > 0) {
			continue
		}
		r := 0
		switch p.what(&c) {
		case "cycles":
			r = 2
		case "time":
			r = 1
		}
		if r > rank {
			best, rank = col, r
		}
	}
	return best
}

// what says what an event counts, if it is one by which places are compared.
func (p *placer) what(c *counts.Column) string {
	cycles, known := p.s.events.Lookup("cycles")
	e, ok := p.s.events.Lookup(c.Event)
	ref, err := model.ParseEvent(c.Event)
	switch {
	case known && ok && e == cycles, err == nil && (ref.Name == "cycles" || ref.Name == "cpu-cycles"):
		return "cycles"
	case c.Unit == "ns", c.Unit == "msec":
		return "time"
	}
	return ""
}

// clockName is what places are compared by, in words.
func (p *placer) clockName(t *counts.Table, col int) string {
	return cmp.Or(p.what(&t.Columns[col]), t.Columns[col].Event)
}
