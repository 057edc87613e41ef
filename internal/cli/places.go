package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/report"
	"github.com/cyclestack/cyclestack/source/samples"
)

// placeFlags are the flags of report that are about places in the code.
type placeFlags struct {
	top      int
	root     string
	vmlinux  string
	kallsyms string
}

// add adds the flags.
func (f *placeFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.IntVar(&f.top, "top", 0, "how many places in the code (default: those above 0.5 %; all in json and csv)")
	flags.StringVar(&f.root, "sysroot", "", "`DIRECTORY` under which the recorded programs, their debug files and sources are")
	flags.StringVar(&f.root, "symfs", "", "the same, as perf calls it")
	flags.StringVar(&f.vmlinux, "vmlinux", "", "kernel with symbols, a `FILE`")
	flags.StringVar(&f.kallsyms, "kallsyms", "", "copy of /proc/kallsyms of the machine that was recorded, a `FILE`")
}

func placeNames() []string {
	var names []string
	for _, k := range samples.Kinds {
		names = append(names, k.String())
	}
	return names
}

// places makes the accounts of the places of a recording.
func (a *app) places(c *common, f *placeFlags, by counts.Kind, files []string) error {
	switch {
	case len(files) > 1:
		return usageError("--by %s: one recording at a time", by)
	case f.top < 0:
		return usageError("--top %d: at least one place", f.top)
	}
	s, err := c.session()
	if err != nil {
		return err
	}
	return a.write(c, func(out io.Writer) error {
		o := c.options(a.terminal(c, a.out))
		o.Places = true
		w, err := report.New(c.format, out, o)
		if err != nil {
			return usageError("%v", err)
		}
		p := &placer{newReporter(s, w, 0, files...), f, by, c.format != report.Formats[0]}
		return p.run(files[0])
	}, files...)
}

// placeKind returns the kind of place in the code that --by names, and whether it
// does.
func placeKind(by string) (counts.Kind, bool, error) {
	names := strings.Split(by, ",")
	for _, name := range names {
		name = strings.TrimSpace(name)
		i := slices.Index(placeNames(), name)
		switch {
		case i >= 0 && len(names) > 1:
			return 0, false, usageError("--by %s: places in the code are not told apart by anything else: --by %s alone", by, name)
		case i >= 0:
			return samples.Kinds[i], true, nil
		case !slices.Contains(byNames(), name):
			return 0, false, usageError("--by %s: there are %s", name, strings.Join(append(byNames(), placeNames()...), ", "))
		}
	}
	return 0, false, nil
}

// A placer turns the samples of a recording into accounts of places in the code.
type placer struct {
	*reporter
	f     *placeFlags
	by    counts.Kind
	whole bool // no place is left out
}

// run writes the accounts of a recording's places.
func (p *placer) run(file string) error {
	p.file = file
	r, closeAll, err := samples.Open(file, samples.Options{By: p.by,
		Symbols: profile.Config{Root: p.f.root, Vmlinux: p.f.vmlinux, Kallsyms: p.f.kallsyms}})
	if err != nil {
		return inputError(err)
	}
	defer closeAll()
	if !r.Next() {
		return inputError(fmt.Errorf("%w; --by %s needs samples, as perf record takes them", r.Err(), p.by))
	}
	t := r.Table()
	p.kind = r.Kind()
	flat, err := p.settle(t)
	if err != nil {
		return err
	}
	return p.accounts(t, flat)
}

// settle chooses the method, by the account of the whole. Where none fits what
// was recorded the places still have their shares: it then says why.
func (p *placer) settle(t *counts.Table) (flat string, err error) {
	s := p.s
	asked := s.c.model != "" || s.c.cpu != ""
	err = s.settle(t, p.file, "")
	switch {
	case err != nil && asked:
		return "", err
	case err != nil:
		flat = err.Error()
	default:
		if s.model.Name != timeModel && rests(s.method.Bind(t.Layout).Evaluate(t, account.Place{}, nil)) {
			return "", nil
		}
		if s.c.model != "" {
			p.events, p.counted = eventNames(t), true
			return "", p.nothing()
		}
		flat = fmt.Sprintf("no method for %s can be computed from %s", s.cpu.Name, firstOf(eventNames(t)))
	}
	return flat, s.settleTime()
}

// rests reports whether an account rests on any of the events that were sampled.
func rests(a *account.Account) bool {
	return a.Known() && slices.ContainsFunc(a.Counts(), func(c account.Count) bool { return c.Used && c.State == counts.Counted })
}

// timeModel is the method of the operating system's own counters, which says
// nothing about places in the code.
const timeModel = "os-time"

// settleTime takes the method that needs least, for a report without nodes.
func (s *session) settleTime() (err error) {
	if s.cpu, err = s.cat.CPU("generic"); err != nil {
		return err
	}
	return s.settleModel(timeModel)
}

// accounts writes the account of the whole and those of the places, the largest
// first.
func (p *placer) accounts(t *counts.Table, flat string) error {
	col := p.clock(t)
	whole := t.Cell(0, col)
	about := &report.Profile{By: p.by, Event: t.Columns[col].Event, What: p.what(&t.Columns[col]), Flat: flat,
		Samples: whole.Samples, Places: len(t.Scopes) - 1}
	rows := largest(t, col)
	keep := p.keep(t, col, rows)
	for _, row := range rows[keep:] {
		about.Left++
		about.LeftShare += t.Cell(row, col).Value / whole.Value
	}
	p.profile = about
	if err := errors.Join(p.begin(t), p.release()); err != nil {
		return err
	}
	binding := p.s.method.Bind(t.Layout)
	var a *account.Account
	for _, row := range append([]int{0}, rows[:keep]...) {
		a = binding.Evaluate(t, account.Place{Self: row}, a)
		if row > 0 {
			a.Notes = nil // they are the whole's
		} else if p.s.note != "" {
			a.Notes = append(slices.Clone(a.Notes), p.s.note)
		}
		if err := p.w.Account(a); err != nil {
			return err
		}
	}
	return p.w.End()
}

// keep returns how many rows are written: as many as --top says, else those with
// shares worth a line, else all.
func (p *placer) keep(t *counts.Table, col int, rows []int) int {
	const worth = 0.005
	switch {
	case p.f.top > 0:
		return min(p.f.top, len(rows))
	case p.whole:
		return len(rows)
	}
	total := t.Cell(0, col).Value
	n := 0
	for n < len(rows) && t.Cell(rows[n], col).Value >= worth*total {
		n++
	}
	return n
}

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
		cell := t.Cell(0, col)
		if !cell.Ok() || cell.Samples == 0 {
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
