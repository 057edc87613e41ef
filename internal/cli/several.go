package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
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
	cmd.Flags().BoolVar(&f.together, "together", false, "of several files: they are runs of the same thing, whatever they say; those with other events are parts of it")
	cmd.Flags().BoolVar(&f.separate, "separate", false, "of several files: each run by itself, side by side")
}

// A oneRun is one run of a recording, or several that are joined as each counted other
// events.
type oneRun struct {
	file    string
	kind    string
	table   *counts.Table
	several bool     // of the file
	part    planPart // of a plan whose groups have a run each
	parts   []string // the files that were joined
	apart   string   // how far they differ in what several of them counted
}

// A planPart is one of the runs of a plan, as the script of cyclestack plan says it in each
// file.
type planPart struct {
	run, of int
	plan    string // which time the script ran; "" for a file that is no part
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
	if runs, err = joinParts(runs, f); err != nil {
		return err
	}
	things := thingsOf(runs, f)
	if err := s.checkNodes(); err != nil {
		return err
	}
	accounts, err := accountsOf(s, things)
	if err != nil {
		return err
	}
	return a.write(c, func(out io.Writer) error {
		o := c.options(a.terminal(c, a.out))
		if len(accounts) > 1 {
			o.Layout = report.LayoutColumns
		}
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
		if len(runs)-before == 1 {
			runs[before].part = partOf(file)
		}
	}
	return runs, nil
}

// partLine is the line of a file that says what part of a plan it is.
var partLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^# run ([0-9]{1,4}) of ([0-9]{1,4}) of cyclestack plan (\S+)\r?$`)
})

// partOf returns what part of a plan a file is: it says so before its counts.
func partOf(file string) planPart {
	const enough = 4 << 10
	if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
		return planPart{}
	}
	f, err := os.Open(file)
	if err != nil {
		return planPart{}
	}
	defer f.Close()
	head, _ := io.ReadAll(io.LimitReader(f, enough))
	m := partLine().FindSubmatch(head)
	if m == nil {
		return planPart{}
	}
	run, _ := strconv.Atoi(string(m[1]))
	of, _ := strconv.Atoi(string(m[2]))
	return planPart{run, of, string(m[3])}
}

// joinParts joins the runs that are parts of one thing, each with other events: those
// of one plan, that is of one call of its script, or with --together all.
func joinParts(runs []oneRun, f severalFlags) ([]oneRun, error) {
	switch {
	case f.separate:
		return runs, nil
	case f.together:
		return joinDiffering(runs)
	}
	var joined []oneRun
	for i := range runs {
		of := runs[i].part
		if of.plan == "" {
			joined = append(joined, runs[i])
			continue
		}
		if slices.ContainsFunc(runs[:i], func(r oneRun) bool { return r.part.plan == of.plan }) {
			continue
		}
		parts := slices.DeleteFunc(slices.Clone(runs[i:]), func(r oneRun) bool { return r.part.plan != of.plan })
		slices.SortStableFunc(parts, func(a, b oneRun) int { return a.part.run - b.part.run })
		for k := range parts[1:] {
			if one, other := &parts[k], &parts[k+1]; one.part.run == other.part.run {
				return nil, inputError(fmt.Errorf("%s: the same run of the same plan as %s", other.file, one.file))
			}
		}
		one, err := joinRuns(parts)
		if err != nil {
			return nil, err
		}
		if missing := of.of - len(parts); missing > 0 {
			one.table.Notes = append(one.table.Notes, counts.Notef("of the plan's %d runs %d are not among the files", of.of, missing))
		}
		joined = append(joined, one)
	}
	return joined, nil
}

// joinDiffering joins runs of the same thing that did not all count the same events:
// the first of each list of events, then the second, and so on.
func joinDiffering(runs []oneRun) ([]oneRun, error) {
	var lists [][]oneRun // by events
	for _, r := range runs {
		events := sortedEvents(r.table)
		i := slices.IndexFunc(lists, func(l []oneRun) bool { return slices.Equal(sortedEvents(l[0].table), events) })
		if i < 0 {
			i = len(lists)
			lists = append(lists, nil)
		}
		lists[i] = append(lists[i], r)
	}
	for _, l := range lists {
		if len(l) != len(lists[0]) {
			return nil, usageError("--together: %d runs counted the events of %s, and %d those of %s: it takes as many of each", len(l), l[0].file, len(lists[0]), lists[0][0].file)
		}
	}
	if len(lists) == 1 {
		return runs, nil
	}
	var joined []oneRun
	for i := range lists[0] {
		var parts []oneRun
		for _, l := range lists {
			parts = append(parts, l[i])
		}
		one, err := joinRuns(parts)
		if err != nil {
			return nil, err
		}
		joined = append(joined, one)
	}
	return joined, nil
}

// joinRuns makes one run of several that counted different events.
func joinRuns(parts []oneRun) (oneRun, error) {
	one := parts[0]
	var tables []*counts.Table
	for _, p := range parts {
		tables = append(tables, p.table)
		one.parts = append(one.parts, p.file)
	}
	var err error
	if one.table, err = counts.JoinRuns(tables); err != nil {
		return one, inputError(fmt.Errorf("%s and %s: %w", parts[0].file, parts[len(parts)-1].file, err))
	}
	one.several, one.apart = false, counts.Apart(tables)
	return one, nil
}

// thingsOf finds which runs are of the same thing: those of the same command, or
// if it is not known of files whose names differ in their numbers only, that
// counted the same events.
func thingsOf(runs []oneRun, f severalFlags) []thing {
	var things []thing
	for i, r := range runs {
		is := nameOfThing(&r) + "\x00" + strings.Join(sortedEvents(r.table), "\x00")
		at := slices.IndexFunc(things, func(t thing) bool { return t.is == is })
		switch {
		case f.separate:
			at = -1
		case f.together && i > 0:
			at = 0
		}
		if at < 0 {
			at = len(things)
			things = append(things, thing{is: is})
		}
		things[at].runs = append(things[at].runs, r)
	}
	return things
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
		if apart := things[i].runs[0].apart; apart != "" && len(tables) == 1 { // of several the errors say it
			a.Notes = append(slices.Clip(a.Notes), counts.Notef("%s", apart))
		}
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

// files are those that a run is from.
func (r *oneRun) files() []string {
	if r.parts != nil {
		return r.parts
	}
	return []string{r.file}
}

// label says which files a thing is from, and its command if that is known.
func (t *thing) label() string {
	var files []string
	for _, r := range t.runs {
		for _, file := range r.files() {
			if !slices.Contains(files, file) {
				files = append(files, file)
			}
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
	sum.table.Notes = append(sum.table.Notes, counts.Notef("the sum of %d recordings", len(p.files)))
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
