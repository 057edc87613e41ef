package recorded

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/accounting"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/kept"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/internal/sorting"
	"github.com/cyclestack/cyclestack/report"
)

// Grouping says which runs of several recordings are of the same program.
type Grouping struct {
	Together bool // all; runs with other events are parts of one run
	Separate bool // none
}

// A run is one run of a recording, or several joined ones that counted different
// events.
type run struct {
	file   string
	kind   accounting.Kind
	table  *counts.Table
	shared bool     // the file has other runs as well
	part   planPart // of a plan with a run for each group
	parts  []string // the files that were joined
	apart  string   // how far joined files differ in the events that several of them counted
}

// A planPart is one run of a plan, as the plan's script notes it in each file.
type planPart struct {
	run, of int
	plan    string // identifies one execution of the script; "" for a file that is no part
}

// A group is several runs of the same program.
type group struct {
	key  string // command and events
	runs []run
}

// runsMost bounds how many runs are held.
const runsMost = 1 << 12

// Runs writes accounts of several recordings. Runs of the same program are aggregated;
// different programs have an account each. The writer is made once their number is
// known. The error wraps [ErrNothing] if no node is known.
func (r *Recordings) Runs(g Grouping, writer func(accounts int) (report.Writer, error)) error {
	runs, m, err := r.runs()
	if err != nil {
		return err
	}
	if runs, err = joinParts(runs, g); err != nil {
		return err
	}
	if err := m.CheckNodes(); err != nil {
		return err
	}
	accounts, err := accountsOf(m, groupsOf(runs, g))
	if err != nil {
		return err
	}
	w, err := writer(len(accounts))
	if err != nil {
		return err
	}
	o := r.options(0)
	if err := w.Begin(o.Header(m, runs[0].kind, runs[0].table)); err != nil {
		return err
	}
	for _, a := range accounts {
		if err := w.Account(a); err != nil {
			return err
		}
	}
	return w.End()
}

// runs reads the runs of all recordings: each block of counts is one, and intervals
// are summed.
func (r *Recordings) runs() (runs []run, m *resolve.Method, err error) {
	for _, name := range r.Names {
		total, kind, before := counts.NewTotal(0), accounting.Kind{}, len(runs)
		flush := func() error {
			t := total.Table()
			if t == nil {
				return nil
			}
			if len(runs) >= runsMost {
				return fault.Inputf("%s: more than %d runs", name, runsMost)
			}
			runs = append(runs, run{file: name, kind: kind, table: t.Clone()})
			total = counts.NewTotal(0)
			return nil
		}
		err := r.eachTable(name, 0, func(t *counts.Table, k accounting.Kind) (err error) {
			kind = k
			if m, err = r.Table(t, name, resolve.Request{Anywhere: true}, m); err != nil {
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
			return nil, nil, fault.As(fault.Input, err)
		}
		for i := range runs[before:] {
			runs[before+i].shared = len(runs)-before > 1
		}
		if len(runs)-before == 1 {
			runs[before].part = r.partOf(name)
		}
	}
	return runs, m, nil
}

// partLine is the line of a file that says which part of a plan it is.
var partLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^# run ([0-9]{1,4}) of ([0-9]{1,4}) of cyclestack plan (\S+)\r?$`)
})

// partOf returns which part of a plan a recording is. The line precedes the counts.
func (r *Recordings) partOf(name string) planPart {
	const enough = 4 << 10
	rec, err := r.recording(name)
	if err != nil {
		return planPart{}
	}
	defer rec.Close()
	m := partLine().FindSubmatch(rec.Head(enough))
	if m == nil {
		return planPart{}
	}
	run, _ := strconv.Atoi(string(m[1]))
	of, _ := strconv.Atoi(string(m[2]))
	return planPart{run, of, string(m[3])}
}

// joinParts joins runs that are parts of one, each with other events: those of one
// execution of a plan's script, or with Together all.
func joinParts(runs []run, g Grouping) ([]run, error) {
	switch {
	case g.Separate:
		return runs, nil
	case g.Together:
		return joinDiffering(runs)
	}
	var joined []run
	for i := range runs {
		of := runs[i].part
		if of.plan == "" {
			joined = append(joined, runs[i])
			continue
		}
		if slices.ContainsFunc(runs[:i], func(r run) bool { return r.part.plan == of.plan }) {
			continue
		}
		var parts []run
		for k := i; k < len(runs); k++ {
			if runs[k].part.plan == of.plan {
				parts = append(parts, runs[k])
			}
		}
		sorting.Stable(parts, func(a, b run) int { return a.part.run - b.part.run })
		for k := range parts[1:] {
			if one, other := &parts[k], &parts[k+1]; one.part.run == other.part.run {
				return nil, fault.Inputf("%s: the same run of the same plan as %s", other.file, one.file)
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

// joinDiffering joins runs that did not all count the same events: the first of each
// list of events, then the second, and so on.
func joinDiffering(runs []run) ([]run, error) {
	var lists [][]run // by events
	for _, r := range runs {
		events := sortedEvents(r.table)
		i := slices.IndexFunc(lists, func(l []run) bool { return slices.Equal(sortedEvents(l[0].table), events) })
		if i < 0 {
			i = len(lists)
			lists = append(lists, nil)
		}
		lists[i] = append(lists[i], r)
	}
	for _, l := range lists {
		if len(l) != len(lists[0]) {
			return nil, &fault.OptionError{Option: "together", Err: fmt.Errorf("%d runs counted the events of %s, and %d those of %s: there must be as many of each", len(l), l[0].file, len(lists[0]), lists[0][0].file)}
		}
	}
	if len(lists) == 1 {
		return runs, nil
	}
	var joined []run
	for i := range lists[0] {
		var parts []run
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
func joinRuns(parts []run) (run, error) {
	one := parts[0]
	var tables []*counts.Table
	for _, p := range parts {
		tables = append(tables, p.table)
		one.parts = append(one.parts, p.file)
	}
	var err error
	if one.table, err = counts.JoinRuns(tables); err != nil {
		return one, fault.Inputf("%s and %s: %w", parts[0].file, parts[len(parts)-1].file, err)
	}
	one.shared, one.apart = false, counts.Apart(tables)
	return one, nil
}

// groupsOf finds the runs of the same program: they have the same events, and the same
// command. If that is not known their files' names differ in numbers only.
func groupsOf(runs []run, g Grouping) []group {
	var groups []group
	for i, r := range runs {
		key := r.program() + "\x00" + strings.Join(sortedEvents(r.table), "\x00")
		at := slices.IndexFunc(groups, func(o group) bool { return o.key == key })
		switch {
		case g.Separate:
			at = -1
		case g.Together && i > 0:
			at = 0
		}
		if at < 0 {
			at = len(groups)
			groups = append(groups, group{key: key})
		}
		groups[at].runs = append(groups[at].runs, r)
	}
	return groups
}

// ownOutput matches the option of a recorder's command line that names its output.
var ownOutput = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\s(-o\s*|--output[= ])\S+`) })

// digits are the difference between the names of recordings of the same program.
var digits = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[0-9]+`) })

// program identifies what a run is of: its command, else its file's name without
// numbers.
func (r *run) program() string {
	if r.table.Label != "" {
		return ownOutput().ReplaceAllString(r.table.Label, "")
	}
	return digits().ReplaceAllString(filepath.Base(r.file), "#")
}

func sortedEvents(t *counts.Table) []string {
	names := resolve.EventNames(t)
	slices.Sort(names)
	return names
}

// ErrNothing is the error of recordings with other events than a method needs.
var ErrNothing = errors.New("nothing")

// accountsOf makes the account of each group.
func accountsOf(m *resolve.Method, groups []group) ([]*account.Account, error) {
	var list []*account.Account
	known := false
	for i := range groups {
		runs := groups[i].runs
		var tables []*counts.Table
		for _, r := range runs {
			tables = append(tables, r.table)
		}
		a, err := m.Account.Aggregate(tables)
		if err != nil {
			return nil, fault.Inputf("%s: %v", runs[0].file, err)
		}
		for _, other := range m.Also {
			if by, err := other.Account.Aggregate(tables); err == nil {
				a.Extend(by)
			}
		}
		counted := func(c account.Rate) bool { return c.Samples == 0 && m.Resolver.Choice.Model == "" }
		known = known || a.Known() || len(a.Also) > 0 || slices.ContainsFunc(a.Rest(), counted)
		if apart := runs[0].apart; apart != "" && len(tables) == 1 { // of several the errors say it
			a.Notes = append(slices.Clip(a.Notes), counts.Notef("%s", apart))
		}
		a.Label = groups[i].label()
		list = append(list, a)
	}
	if !known {
		first := groups[0].runs[0]
		return nil, fault.Inputf("%w of %s can be computed from these recordings: it needs %s, and %s has %s; %s function says where samples are",
			ErrNothing, m.Model.Name, accounting.FirstOf(m.Account.Inputs()), first.file, accounting.FirstOf(resolve.EventNames(first.table)), fault.Name("by"))
	}
	return list, nil
}

// files are those that a run is from.
func (r *run) files() []string {
	if r.parts != nil {
		return r.parts
	}
	return []string{r.file}
}

// label names the files of a group, and its command if that is known.
func (g *group) label() string {
	var files []string
	for i := range g.runs {
		for _, file := range g.runs[i].files() {
			if !slices.Contains(files, file) {
				files = append(files, file)
			}
		}
	}
	name := SideName(files)
	if r := &g.runs[0]; len(g.runs) == 1 && r.shared && r.table.Line > 0 {
		name = fmt.Sprintf("%s:%d", name, r.table.Line)
	}
	if command := g.runs[0].table.Label; command != "" {
		name += ": " + command
	}
	return name
}

// SideName names several files: by the first and the last of many.
func SideName(names []string) string {
	if len(names) > 2 {
		return kept.NameOf(names[0]) + "…" + kept.NameOf(names[len(names)-1])
	}
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = kept.NameOf(name)
	}
	return strings.Join(list, ",")
}
