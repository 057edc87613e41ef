package recorded

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/accounting"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/internal/sorting"
	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/report"
)

// A Side is one of the two sets of runs of a comparison.
type Side struct {
	Name  string
	Files []string
}

// Side returns the side with the recordings that arguments name: several by commas, and
// those in directories that are no recordings themselves. They are added to the names.
func (r *Recordings) Side(args []string) (Side, error) {
	s := Side{Name: SideName(args)}
	for _, arg := range args {
		for _, name := range strings.Split(arg, ",") {
			info, err := os.Stat(name)
			if err != nil || !info.IsDir() || r.isRecording(name) {
				s.Files = append(s.Files, name) // opening it says what is wrong
				continue
			}
			files, err := filesIn(name)
			if err != nil {
				return s, err
			}
			s.Files = append(s.Files, files...)
		}
	}
	r.Names = append(r.Names, s.Files...)
	return s, nil
}

// filesIn returns the files in a directory.
func filesIn(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fault.As(fault.Input, err)
	}
	var files []string
	for _, e := range entries {
		if e.Type().IsRegular() && !strings.HasPrefix(e.Name(), ".") {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fault.Inputf("%s: no recordings in it", dir)
	}
	return files, nil
}

// isRecording reports whether a directory is one that perf record --threads wrote.
func (r *Recordings) isRecording(dir string) bool {
	rec, err := r.recording(dir)
	if err != nil {
		return false
	}
	rec.Close()
	return true
}

// Work is a unit of work, and how much of it each run of the two sides did.
type Work struct {
	Name    string
	Amount  [2]float64 // NaN: the instructions of the run
	Assumed bool       // the user did not say so
}

// PerInstruction is the unit of work if the user names none.
func PerInstruction() Work {
	return Work{"instruction", [2]float64{math.NaN(), math.NaN()}, true}
}

// choose replaces the default unit, the instruction, by the run where the run is
// preferred or instructions were not counted. Instructions are given by side and run.
func (w *Work) choose(instructions [2][]float64, sides [2]Side, run bool) error {
	if !math.IsNaN(w.Amount[0]) {
		return nil
	}
	perRun := Work{"run", [2]float64{1, 1}, true}
	if w.Assumed && run {
		*w = perRun
		return nil
	}
	for i, list := range instructions {
		switch {
		case !slices.ContainsFunc(list, func(n float64) bool { return !(n > 0) }):
		case !w.Assumed:
			return fault.Inputf("%s: its instructions were not counted: say with %s what a run did", sides[i].Name, fault.Name("per"))
		default:
			*w = perRun
			return nil
		}
	}
	return nil
}

// of returns the work of a run of a side.
func (w *Work) of(side int, instructions float64) float64 {
	if math.IsNaN(w.Amount[side]) {
		return instructions
	}
	return w.Amount[side]
}

// DiffOptions are those of a comparison.
type DiffOptions struct {
	By      counts.Kind // of places; Run compares by nodes
	Work    Work
	Paired  bool // runs of the same number were taken one next to the other
	Ordered bool // Paired is the user's choice, and not what the recordings' times say
	Top     int  // how many places; 0 is all that are worth a line
	Symbols profile.Config
	Roots   [2]string // of the sides, for Symbols.Root
}

// A Difference is a comparison that was made.
type Difference interface {
	// Changes finds the changes that a limit is about: of "function", "module", "line",
	// or "" for a node or all.
	Changes(kind, name string) ([]Change, error)
	// Document is the comparison as a document of package report.
	Document() any
}

// A Change is the change of one node or place.
type Change struct {
	Name string
	*account.Change
}

// Diff compares two sides. The names of the recordings are those of both sides.
func (r *Recordings) Diff(sides [2]Side, o DiffOptions) (Difference, error) {
	if !o.Ordered {
		o.Paired = r.inTurn(&sides)
	}
	if o.By == counts.Run {
		return r.diffNodes(sides, o)
	}
	return r.diffPlaces(sides, o)
}

// checkPairs refuses pairs that are none.
func checkPairs(d account.Design, old, new int) error {
	if d.Paired && old != new {
		return &fault.OptionError{Option: "paired", Err: fmt.Errorf("there are %d old runs and %d new ones, which make no pairs", old, new)}
	}
	return nil
}

// pairsFrom is the number of runs of each side that are compared in pairs by default:
// with fewer, pairs say less.
const pairsFrom = 8

// inTurn reports whether old and new recordings alternate, as the times of their samples
// say. It then sorts each side by
// time, so that neighbours have the same number.
func (r *Recordings) inTurn(sides *[2]Side) bool {
	n := len(sides[0].Files)
	if n < pairsFrom || n != len(sides[1].Files) {
		return false
	}
	type recording struct {
		side  int
		file  string
		times [2]uint64
	}
	var list []recording
	for i := range sides {
		for _, file := range sides[i].Files {
			rec, err := r.recording(file)
			if err != nil {
				return false
			}
			times, ok := rec.SampleTimes()
			rec.Close()
			if !ok {
				return false
			}
			list = append(list, recording{i, file, times})
		}
	}
	sorting.Stable(list, func(a, b recording) int { return cmp.Compare(a.times[0], b.times[0]) })
	var ordered [2][]string
	for i, r := range list {
		if i > 0 && r.times[0] < list[i-1].times[1] || i%2 == 1 && r.side == list[i-1].side {
			return false // at the same time, or not alternating
		}
		ordered[r.side] = append(ordered[r.side], r.file)
	}
	sides[0].Files, sides[1].Files = ordered[0], ordered[1]
	return true
}

// A nodeDiff is a comparison by nodes.
type nodeDiff struct {
	header report.DiffHeader
	*account.Difference
}

func (d nodeDiff) Document() any {
	return report.Comparison{Header: d.header, Difference: d.Difference}
}

// diffNodes compares by nodes of the account.
func (r *Recordings) diffNodes(sides [2]Side, o DiffOptions) (Difference, error) {
	var c collector
	var m *resolve.Method
	exact, unit := true, o.Work
	r.publishedColumns()
	for i := range sides {
		c.side = i
		own := *r
		own.Names = sides[i].Files
		opts := own.options(0)
		opts.Empty = true // totals may be all that there is
		stream := accounting.New(&c, opts)
		var err error
		if m, err = own.accounts(stream, resolve.Request{Anywhere: true}, m, func(name string, t *counts.Table) { c.notes.add(name, t.Notes) }); err != nil {
			return nil, err
		}
		exact = exact && stream.Kind().Simulated
	}
	if err := unit.choose(c.instructions, sides, exact); err != nil {
		return nil, err
	}
	readings, what, err := c.readings(unit, sides)
	if err != nil {
		return nil, err
	}
	design := account.Design{Paired: o.Paired, Exact: exact}
	if err := checkPairs(design, len(readings[0]), len(readings[1])); err != nil {
		return nil, err
	}
	h := r.diffHeader(m, accounting.Kind{}, sides, unit, o)
	h.What, h.Commands = what.String(), c.commands
	h.Notes = append(changedBetween(sides, c.commands, nil), c.notes.lines(len(h.Files))...)
	return nodeDiff{h, account.Compare(m.Model, readings[0], readings[1], design)}, nil
}

// diffHeader is what documents of comparisons have in common.
func (r *Recordings) diffHeader(m *resolve.Method, kind accounting.Kind, sides [2]Side, unit Work, o DiffOptions) report.DiffHeader {
	all := *r
	all.Names = slices.Concat(sides[0].Files, sides[1].Files)
	opts := all.options(0)
	return report.DiffHeader{Header: opts.Header(m, kind, nil), Old: sides[0].Name, New: sides[1].Name,
		Per: unit.Name, Assumed: unit.Assumed, Paired: o.Paired, By: o.By}
}

// Changes finds the change of a node, or of all.
func (d nodeDiff) Changes(kind, name string) ([]Change, error) {
	if kind != "" {
		return nil, limitError(fault.Usage, kind+":"+name, "differences are by node")
	}
	if name == d.header.What || name == account.Cycles.String() {
		return []Change{{d.header.What, &d.Total}}, nil
	}
	for i := range d.Model.Nodes {
		n := &d.Model.Nodes[i]
		switch {
		case n.Name != name || n.Section != "":
		case math.IsNaN(d.Nodes[i].Delta):
			return nil, limitError(fault.Input, name, "it is not known of all runs")
		default:
			return []Change{{name, &d.Nodes[i]}}, nil
		}
	}
	return nil, limitError(fault.Usage, name, "%s has no such node", d.Model.Name)
}

// A collector is a writer that keeps the readings of the accounts of two sides.
type collector struct {
	side         int
	notes        noteList
	runs         [2][]runReading
	instructions [2][]float64
	commands     [2]string // of the first runs that have one
}

// A runReading is what one run used of the resources, as far as they were counted.
type runReading [len(resources)]struct {
	account.Reading
	err error
}

// resources are what runs are compared by: the first that all have.
var resources = [...]account.Resource{account.Cycles, account.Slots, account.Time, account.Elapsed}

func (c *collector) Begin(report.Header) error { return nil }
func (c *collector) End() error                { return nil }

func (c *collector) Account(a *account.Account) error {
	var t runReading
	for i, of := range resources {
		t[i].Reading, t[i].err = a.ReadingOf(of, 1)
	}
	c.runs[c.side] = append(c.runs[c.side], t)
	c.instructions[c.side] = append(c.instructions[c.side], a.Instructions())
	c.commands[c.side] = cmp.Or(c.commands[c.side], ownOutput().ReplaceAllString(a.Label, ""))
	return nil
}

// readings are the runs' readings for each unit of work, of the first resource
// that all of them have.
func (c *collector) readings(unit Work, sides [2]Side) (out [2][]account.Reading, of account.Resource, err error) {
	for i, of := range resources {
		if out, err = c.readingsOf(i, unit, sides); err == nil {
			return out, of, nil
		}
	}
	return out, of, fault.As(fault.Input, err)
}

func (c *collector) readingsOf(resource int, unit Work, sides [2]Side) (out [2][]account.Reading, err error) {
	for i := range c.runs {
		for k := range c.runs[i] {
			r := &c.runs[i][k][resource]
			if r.err != nil {
				return out, fmt.Errorf("%s: %v", sides[i].Name, r.err)
			}
			out[i] = append(out[i], r.Per(unit.of(i, c.instructions[i][k])))
		}
	}
	return out, nil
}

// notesMost bounds the notes of a comparison.
const notesMost = 20

// A noteList holds what recordings lack, each note once.
type noteList struct {
	notes []counts.Note
	files map[counts.Note][]string // by note: the recordings that have it
}

// add keeps the notes of a recording.
func (l *noteList) add(file string, notes []counts.Note) {
	if l.files == nil {
		l.files = map[counts.Note][]string{}
	}
	for _, n := range notes {
		files := l.files[n]
		switch {
		case files == nil && len(l.notes) >= notesMost:
			continue
		case files == nil:
			l.notes = append(l.notes, n)
		case files[len(files)-1] == file:
			continue
		}
		l.files[n] = append(files, file)
	}
}

// lines are the notes, each with the recordings that have it if not all do.
func (l *noteList) lines(recordings int) []counts.Note {
	var list []counts.Note
	for _, n := range l.notes {
		if files := l.files[n]; len(files) < recordings {
			n.Text = SideName(files) + ": " + n.Text
		}
		list = append(list, n)
	}
	return list
}

// ParseWork reads NAME=N, NAME=OLD:NEW, instruction or run. "" is the instruction, assumed.
func ParseWork(per string) (w Work, err error) {
	name, text, ok := strings.Cut(per, "=")
	switch {
	case per == "", !ok && (per == "instruction" || per == "instructions"):
		w = PerInstruction()
		w.Assumed = per == ""
		return w, nil
	case !ok && per == "run":
		return Work{Name: "run", Amount: [2]float64{1, 1}}, nil
	case !ok || name == "":
		return w, fault.Optionf("per", per, "it is NAME=N, NAME=OLD:NEW, instruction or run")
	}
	w.Name = name
	old, new, two := strings.Cut(text, ":")
	if !two {
		new = old
	}
	for i, s := range []string{old, new} {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil || !(v > 0) || math.IsInf(v, 0) {
			return w, fault.Optionf("per", per, "%q is not a number of %s", s, name)
		}
		w.Amount[i] = v
	}
	return w, nil
}
