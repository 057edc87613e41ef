package cli

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/report"
	"github.com/cyclestack/cyclestack/source"
)

// severalFlags say which recordings are of the same thing.
type severalFlags struct {
	together, separate bool
}

// add adds the flags.
func (f *severalFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.together, "together", false, "of several files: they are runs of the same thing, whatever they say")
	cmd.Flags().BoolVar(&f.separate, "separate", false, "of several files: each run by itself, side by side")
}

// A oneRun is one run of a recording.
type oneRun struct {
	file    string
	kind    string
	table   *counts.Table
	several bool // of the file
}

// A thing is what several runs are of.
type thing struct {
	is   string // command and events; what else is compared for being the same
	runs []oneRun
}

// runsMost bounds how many runs are held.
const runsMost = 1 << 12

// several reports several recordings: runs of the same thing are aggregated,
// different things stand side by side.
func (a *app) several(c *common, f severalFlags, files []string) error {
	if f.together && f.separate {
		return usageError("--together and --separate: only one of them")
	}
	s, err := c.session()
	if err != nil {
		return err
	}
	runs, err := runsOf(s, files)
	if err != nil {
		return err
	}
	things, err := thingsOf(runs, f)
	if err != nil {
		return err
	}
	if err := s.checkNodes(); err != nil {
		return err
	}
	accounts, err := accountsOf(s, things)
	if err != nil {
		return err
	}
	return a.write(c, func(out io.Writer) error {
		o := c.options(a.terminal(c, a.out))
		o.Beside = len(accounts) > 1
		w, err := report.New(c.format, out, o)
		if err != nil {
			return usageError("%v", err)
		}
		return writeAccounts(w, s.header(runs[0].kind, files), accounts)
	}, files...)
}

// writeAccounts gives accounts to a writer.
func writeAccounts(w report.Writer, h report.Header, accounts []*account.Account) error {
	if err := w.Begin(h); err != nil {
		return err
	}
	for _, a := range accounts {
		if err := w.Account(a); err != nil {
			return err
		}
	}
	return w.End()
}

// runsOf reads the runs of recordings: of each block of counts one, of intervals
// their sum.
func runsOf(s *session, files []string) ([]oneRun, error) {
	var runs []oneRun
	for _, file := range files {
		total, kind, before := counts.NewTotal(0), "", len(runs)
		flush := func() error {
			t := total.Table()
			if t == nil {
				return nil
			}
			if len(runs) >= runsMost {
				return inputError(fmt.Errorf("%s: more than %d runs", file, runsMost))
			}
			runs = append(runs, oneRun{file: file, kind: kind, table: t.Clone()})
			total = counts.NewTotal(0)
			return nil
		}
		err := tablesOf(file, 0, func(src source.Reader, t *counts.Table, file string) error {
			kind = src.Kind()
			if err := s.settle(t, file, ""); err != nil {
				return err
			}
			if total.Begins(t) {
				if err := flush(); err != nil {
					return err
				}
			}
			return total.Add(t)
		})
		if err == nil {
			err = flush()
		}
		if err != nil {
			return nil, inputError(err)
		}
		for i := range runs[before:] {
			runs[before+i].several = len(runs)-before > 1
		}
	}
	return runs, nil
}

// thingsOf finds which runs are of the same thing: those of the same command, or
// if it is not known of files whose names differ in their numbers only, that
// counted the same events.
func thingsOf(runs []oneRun, f severalFlags) ([]thing, error) {
	var things []thing
	for i, r := range runs {
		is := nameOfThing(&r) + "\x00" + strings.Join(sortedEvents(r.table), "\x00")
		at := slices.IndexFunc(things, func(t thing) bool { return t.is == is })
		switch {
		case f.separate:
			at = -1
		case f.together && i > 0:
			at = 0
			if !slices.Equal(sortedEvents(r.table), sortedEvents(runs[0].table)) {
				return nil, usageError("--together: %s did not count the same events as %s", r.file, runs[0].file)
			}
		}
		if at < 0 {
			at = len(things)
			things = append(things, thing{is: is})
		}
		things[at].runs = append(things[at].runs, r)
	}
	return things, nil
}

// ownOutput is what a recorder's command line has of the file that it wrote.
var ownOutput = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\s(-o\s*|--output[= ])\S+`) })

// digits are what the names of several recordings of the same thing differ in.
var digits = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[0-9]+`) })

// nameOfThing is what a run is of: the command, else the file's name without its
// numbers.
func nameOfThing(r *oneRun) string {
	if r.table.Label != "" {
		return ownOutput().ReplaceAllString(r.table.Label, "")
	}
	return digits().ReplaceAllString(filepath.Base(r.file), "#")
}

func sortedEvents(t *counts.Table) []string {
	names := eventNames(t)
	slices.Sort(names)
	return names
}

// errNothing is the error of recordings with other events than a method needs.
var errNothing = errors.New("nothing")

// accountsOf makes the account of each thing.
func accountsOf(s *session, things []thing) ([]*account.Account, error) {
	var list []*account.Account
	known := false
	for i := range things {
		var tables []*counts.Table
		for _, r := range things[i].runs {
			tables = append(tables, r.table)
		}
		a, err := s.method.Aggregate(tables)
		if err != nil {
			return nil, inputError(fmt.Errorf("%s: %v", things[i].runs[0].file, err))
		}
		known = known || a.Known()
		a.Label = things[i].label()
		list = append(list, a)
	}
	if !known {
		first := things[0].runs[0]
		return nil, inputError(fmt.Errorf("%w of %s can be computed from these recordings: it needs %s, and %s has %s; --by function says where samples are",
			errNothing, s.model.Name, firstOf(s.method.Inputs()), first.file, firstOf(eventNames(first.table))))
	}
	return list, nil
}

// label says which files a thing is from, and its command if that is known.
func (t *thing) label() string {
	var files []string
	for _, r := range t.runs {
		if !slices.Contains(files, r.file) {
			files = append(files, r.file)
		}
	}
	name := sideName(files)
	if r := &t.runs[0]; len(t.runs) == 1 && r.several && r.table.Line > 0 {
		name = fmt.Sprintf("%s:%d", name, r.table.Line)
	}
	if command := t.runs[0].table.Label; command != "" {
		name += ": " + command
	}
	return name
}

// further adds the further recordings of a report by places to the first one's
// table. They must be of the same thing: what differs is for diff.
func (p *placer) further(first *counts.Table) (*counts.Table, error) {
	if len(p.files) == 1 {
		return first, nil
	}
	sum := newPlaceSum(first)
	is := oneRun{file: p.files[0], table: first}
	for _, file := range p.files[1:] {
		if err := p.sum(file, sum, &is); err != nil {
			return nil, err
		}
	}
	sum.table.Notes = append(sum.table.Notes, fmt.Sprintf("the sum of %d recordings", len(p.files)))
	return sum.table, nil
}

// sum adds a recording.
func (p *placer) sum(file string, to *placeSum, is *oneRun) error {
	r, closeAll, err := p.open(file)
	if err != nil {
		return inputError(err)
	}
	defer closeAll()
	if !r.Next() {
		return p.unread(r.Err())
	}
	t := r.Table()
	one := oneRun{file: file, table: t}
	switch {
	case !p.s.sameCPU(t.CPU, is.table.CPU):
		return inputError(fmt.Errorf("%s: from %s, but %s is from %s: report one processor at a time", file, t.CPU, is.file, is.table.CPU))
	case !slices.Equal(sortedEvents(t), sortedEvents(is.table)):
		return inputError(fmt.Errorf("%s: it has %s, but %s has %s: only runs of the same thing are added up", file, firstOf(eventNames(t)), is.file, firstOf(eventNames(is.table))))
	case !p.f.together && nameOfThing(&one) != nameOfThing(is):
		return usageError("%s is of %q, but %s of %q: cyclestack diff compares them, and --together adds them up", file, nameOfThing(&one), is.file, nameOfThing(is))
	}
	to.add(t)
	return nil
}

// A placeSum is the sum of tables of places. Places are the same if they are called
// the same.
type placeSum struct {
	table *counts.Table
	rows  map[counts.Scope]int
}

func newPlaceSum(t *counts.Table) *placeSum {
	s := &placeSum{table: t.Clone(), rows: map[counts.Scope]int{}}
	for i := range t.Scopes {
		s.rows[placeKey(t.Scopes[i], i)] = i
	}
	return s
}

// placeKey is a scope without what is one recording's only: the addresses of its
// code, and the numbers of its processes.
func placeKey(s counts.Scope, row int) counts.Scope {
	if row == 0 {
		return counts.Scope{} // the whole
	}
	s.Code = nil
	return s
}

// add adds a table. Of an event that its recording spells otherwise there is no
// column; that they have the same events has been checked.
func (s *placeSum) add(t *counts.Table) {
	columns := make([]int, len(t.Columns))
	for i, c := range t.Columns {
		columns[i] = slices.IndexFunc(s.table.Columns, func(o counts.Column) bool { return o.Event == c.Event })
	}
	var missing []counts.Scope
	for i := range t.Scopes {
		if _, ok := s.rows[placeKey(t.Scopes[i], i)]; !ok {
			missing = append(missing, t.Scopes[i])
		}
	}
	s.grow(missing)
	for i := range t.Scopes {
		row := s.rows[placeKey(t.Scopes[i], i)]
		for j, cell := range t.Row(i) {
			s.table.Cell(row, columns[j]).Add(&cell)
		}
	}
	s.table.Duration += t.Duration
}

// grow makes rows for further places.
func (s *placeSum) grow(scopes []counts.Scope) {
	if len(scopes) == 0 {
		return
	}
	old := s.table
	table := counts.NewTable(&counts.Layout{Columns: old.Columns, Scopes: slices.Concat(old.Scopes, scopes)})
	for i := range old.Scopes {
		copy(table.Row(i), old.Row(i))
	}
	for i := range scopes {
		s.rows[placeKey(scopes[i], len(old.Scopes)+i)] = len(old.Scopes) + i
	}
	table.Label, table.Start, table.Duration, table.CPU, table.Notes = old.Label, old.Start, old.Duration, old.CPU, old.Notes
	s.table = table
}
