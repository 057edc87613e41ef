package samples

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/object"
	"github.com/cyclestack/cyclestack/internal/sorting"
	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// unknown stands for what has no name.
const unknown = "[unknown]"

// found returns an error if no sample counts, or none has what samples are split by.
func (r *Reader) found() error {
	r.keepGathered()
	r.places.lookUp()
	r.places.gather = false
	r.places.unite()
	r.places.forget()
	kept := int64(0)
	for i := range r.places.sums {
		kept += r.places.sums[i].Samples()
	}
	if kept == 0 && r.keep != nil {
		return r.keep.failure(r.name)
	}
	for _, need := range []struct {
		kind counts.Kind
		has  func(context) bool
		hint string
	}{
		{counts.Process, func(x context) bool { return x.pid != none }, "an id of their process"},
		{counts.Thread, func(x context) bool { return x.tid != none }, "an id of their thread"},
		{counts.Comm, func(x context) bool { return x.comm != "" && x.comm != unknown }, "an id of their thread"},
		{counts.Cgroup, func(x context) bool { return x.cgroup != noCgroup }, "their cgroup: perf record --all-cgroups"},
		{counts.CPU, func(x context) bool { return x.cpu != none }, "their CPU: perf record --sample-cpu, or -a"},
		{counts.Interval, func(x context) bool { return x.interval != noTime }, "their time: perf record --timestamp"},
	} {
		wanted := r.places.told.Has(need.kind) || need.kind == counts.CPU && r.contexts.cpu
		if wanted && !slices.ContainsFunc(r.places.contexts, need.has) {
			return fmt.Errorf("%s: its samples do not have %s", r.name, need.hint)
		}
	}
	return nil
}

// fill makes the table.
func (r *Reader) fill() {
	nameless := r.nameless()
	rows := r.rows()
	n := len(r.columns)
	r.total = make([]perfdata.Sum, n)
	for i := range rows.sums {
		r.total[i%max(n, 1)].Merge(&rows.sums[i])
	}
	l := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("")}}
	r.skids = make([]bool, n)
	for col, e := range r.columns {
		c := e.Column()
		c.Skids = r.order.exact[col] < r.total[col].Samples()+r.places.dropped[col].Samples()
		l.Columns, r.skids[col] = append(l.Columns, c), c.Skids
	}
	t := &r.table
	t.Reset(l)
	t.Label, t.CPU = r.in.Features().Command(), r.in.Features().CPUIDString()
	t.Start, t.Duration = 0, math.NaN()
	if r.last > r.first {
		t.Duration = float64(r.last-r.first) / 1e9
		if r.keep != nil && r.keep.time != nil {
			t.Start = float64(r.first-r.zero()) / 1e9
		}
	}
	whole := t.Row(0)
	r.cells(whole, r.total)
	if r.keep == nil {
		for col := range whole {
			whole[col].Variance = 0
		}
	}
	r.waits.exact(whole, r.columns)
	t.Notes = append(r.notes(), nameless...)
	kept := r.kept(rows)
	with := &counts.Layout{Columns: l.Columns, Scopes: r.scopes(rows, kept)}
	whole = slices.Clone(whole)
	t.Reset(with)
	copy(t.Row(0), whole)
	for i, row := range kept {
		cells := t.Row(i + 1)
		r.cells(cells, rows.sums[row*n:][:n])
		r.waits.exact(cells, r.columns)
	}
}

// cells fills in cells, by column, from their sums. Those of events that were not measured are
// absent.
func (r *Reader) cells(to []counts.Cell, sums []perfdata.Sum) {
	for col, e := range r.columns {
		if to[col] = (counts.Cell{}); !r.meter.Known(e) || r.unmeasured(e) {
			continue
		}
		if to[col] = sums[col].Cell(e); to[col].Samples > 0 {
			continue
		}
		if whole := r.total[col].Cell(e); whole.Samples > 0 {
			to[col].Variance = whole.Variance / float64(whole.Samples)
		}
	}
}

// kept returns the numbers of the rows that the table is to have.
func (r *Reader) kept(rows tableRows) []int {
	var keep []bool
	if r.opts.Pick != nil {
		n, cells := len(r.columns), make([]counts.Cell, len(r.columns))
		keep = r.opts.Pick(&r.table, rows.n, func(row int) []counts.Cell {
			r.cells(cells, rows.sums[row*n:][:n])
			r.waits.exact(cells, r.columns)
			return cells
		})
	}
	var list []int
	for i := range rows.n {
		if keep == nil || keep[i] {
			list = append(list, i)
		}
	}
	return list
}

// unmeasured reports whether an event is a derived one that the processor cannot measure:
// it is 0 in all samples.
func (r *Reader) unmeasured(e *perfdata.Event) bool {
	if e.Index < derivedBase || e.Name != timedEvent && e.Name != sinceRetiredEvent {
		return false
	}
	for col, of := range r.columns {
		if of.Index >= derivedBase && of.Name == sinceRetiredEvent {
			return r.total[col].Samples() == 0
		}
	}
	return true
}

// tableRows are the rows of the table behind the run's.
type tableRows struct {
	n    int
	list []row          // nil if samples are split by code alone: the rows are those of codes
	sums []perfdata.Sum // by row and column
}

// rows returns the rows of the table.
func (r *Reader) rows() tableRows {
	p := &r.places
	switch {
	case p.told == 0:
		return tableRows{sums: p.sums}
	case p.recent == nil:
		return tableRows{n: len(p.codes), sums: p.sums}
	case p.told&mergedKinds != 0:
		r.merge()
	}
	return tableRows{len(p.rows), p.rows, p.sums}
}

// mergedKinds are the kinds whose contexts may share a scope.
const mergedKinds = counts.By(1<<counts.Cgroup | 1<<counts.Comm | 1<<counts.Core | 1<<counts.Die | 1<<counts.Socket | 1<<counts.Node)

// merge puts together the rows of contexts with the same scope: CPUs of one core, socket or node,
// if samples are split by these.
func (r *Reader) merge() {
	p := &r.places
	first, same := map[counts.Scope]int32{}, make([]int32, len(p.contexts)) // the first context of the scope
	for i := range p.contexts {
		s := r.scope(&p.contexts[i], -1, nil)
		if _, ok := first[s]; !ok {
			first[s] = int32(i)
		}
		same[i] = first[s]
	}
	lump, lumped := first[r.scope(&context{lump: true}, -1, nil)]
	rows, sums := p.rows[:0], p.sums[:0] // a row is read before it can be written
	index := map[row]int{}
	for i, is := range p.rows {
		key := is
		switch {
		case is.context >= 0:
			key.context = same[is.context]
		case lumped:
			key.context = lump
		}
		if p.told&codeKinds == 0 {
			key.code = 0
		}
		own := p.sums[i*p.columns : (i+1)*p.columns]
		at, ok := index[key]
		if !ok {
			index[key] = len(rows)
			rows, sums = append(rows, is), append(sums, own...)
			continue
		}
		for col := range own {
			sums[at*p.columns+col].Merge(&own[col])
		}
	}
	p.rows, p.sums = rows, sums
}

// scopes returns the scopes of the run and of some rows. The places are not needed any more.
func (r *Reader) scopes(rows tableRows, kept []int) []counts.Scope {
	p := &r.places
	at := func(i int) row {
		if rows.list == nil {
			return row{-1, int32(i)}
		}
		return rows.list[i]
	}
	codes := []*counts.Code(nil)
	if p.told&codeKinds != 0 {
		needed := make([]bool, len(p.codes))
		for _, i := range kept {
			if code := at(i).code; code >= 0 {
				needed[code] = true
			}
		}
		codes = r.codeList(needed)
	}
	list := append(make([]counts.Scope, 0, 1+len(kept)), counts.RunScope(""))
	for _, i := range kept {
		c, x, is := (*counts.Code)(nil), (*context)(nil), at(i)
		switch {
		case rows.list == nil:
		case is.context < 0:
			x = &context{lump: true}
		default:
			x = &p.contexts[is.context]
		}
		if is.code >= 0 && codes != nil {
			c = codes[is.code]
		}
		list = append(list, r.scope(x, is.code, c))
	}
	p.codes, p.rows, p.sums = nil, nil, nil // there may be many
	return list
}

// codeList returns what is known of the places that are needed. Then the last file with symbols is
// given up, unless it is needed again.
func (r *Reader) codeList(needed []bool) []*counts.Code {
	codes := r.places.codeList(needed)
	if !r.opts.Again {
		r.symbols.Function(profile.Place{})
	}
	return codes
}

// others is the name of all places that there was no room for.
const others = "others"

// scope describes a place in the code within a context, which is nil if there is none.
func (r *Reader) scope(x *context, code int32, c *counts.Code) counts.Scope {
	by := r.places.told
	s := counts.RunScope("")
	s.Code = c
	var parts []string
	part := func(kind counts.Kind, label string) {
		s.Kind = kind
		parts = append(parts, label)
	}
	switch {
	case x == nil:
	case x.lump:
		part(coarsest(by), others)
	default:
		r.describe(x, &s, part)
	}
	switch {
	case c == nil:
	case code == r.places.others:
		part(r.opts.By, others)
	default:
		part(r.opts.By, c.Label(r.opts.By))
	}
	s.Label = strings.Join(parts, " ")
	return s
}

// coarsest returns a kind of a set.
func coarsest(by counts.By) counts.Kind {
	for k := counts.Run; k <= counts.Instruction; k++ {
		if k != counts.Run && by.Has(k) {
			return k
		}
	}
	return counts.Run
}

// describe puts a context into a scope, part by part.
func (r *Reader) describe(x *context, s *counts.Scope, part func(counts.Kind, string)) {
	by := r.places.told
	if by.Has(counts.Interval) {
		part(counts.Interval, r.interval(x.interval, s))
	}
	if by.Has(counts.Cgroup) {
		s.Cgroup = r.names.cgroup(x.cgroup)
		part(counts.Cgroup, s.Cgroup)
	}
	if by.Has(counts.Comm) {
		s.Comm = x.comm
		part(counts.Comm, s.Comm)
	}
	if by.Has(counts.Process) {
		s.PID, s.Process = int(x.pid), r.names.of(x.pid)
		part(counts.Process, s.Process)
	}
	if by.Has(counts.Thread) {
		s.TID, s.Thread = int(x.tid), r.names.of(x.tid)
		part(counts.Thread, s.Thread)
	}
	if x.pid == none || x.tid == none {
		s.PID, s.TID = counts.Unknown, counts.Unknown
	}
	if r.contexts.cpu {
		r.locate(x, s, part)
	}
}

// locate puts the processor into a scope, or the part of it that samples are split by.
func (r *Reader) locate(x *context, s *counts.Scope, part func(counts.Kind, string)) {
	by := r.places.told
	at := counts.RunScope("")
	if x.cpu != none {
		at.CPU = int(x.cpu)
		r.in.Features().Locate(&at)
	}
	for _, t := range []struct {
		kind counts.Kind
		to   *int
		v    int
		name string
	}{
		{counts.Node, &s.Node, at.Node, fmt.Sprintf("N%d", at.Node)},
		{counts.Socket, &s.Socket, at.Socket, fmt.Sprintf("S%d", at.Socket)},
		{counts.Die, &s.Die, at.Die, fmt.Sprintf("S%d-D%d", at.Socket, at.Die)},
		{counts.Core, &s.Core, at.Core, fmt.Sprintf("S%d-D%d-C%d", at.Socket, at.Die, at.Core)},
		{counts.CPU, &s.CPU, at.CPU, fmt.Sprintf("CPU%d", at.CPU)},
	} {
		if !by.Has(t.kind) {
			continue
		}
		if *t.to = t.v; t.v == counts.Unknown {
			part(t.kind, unknown)
			continue
		}
		if t.kind == counts.Die || t.kind == counts.Core {
			s.Socket = at.Socket
		}
		if t.kind == counts.Core {
			s.Die = at.Die
		}
		if t.kind == counts.CPU {
			s.CPUs = 1
		}
		part(t.kind, t.name)
	}
}

// zero returns the time that the table's times count from.
func (r *Reader) zero() uint64 { return min(r.contexts.origin, r.first) }

// interval puts an interval into a scope, and returns its name. The first and the last
// are cut to where samples are.
func (r *Reader) interval(n int64, s *counts.Scope) string {
	if n == noTime {
		return "no time"
	}
	step, shift := float64(r.contexts.step), float64(r.contexts.origin)
	from := max(shift+float64(n)*step, float64(r.first))
	to := min(shift+float64(n+1)*step, float64(r.last))
	if to <= from { // of a single sample
		to = from + 1
	}
	s.Start, s.Duration = (from-float64(r.zero()))/1e9, (to-from)/1e9
	return strconv.FormatFloat(s.Start, 'g', 6, 64) + " s"
}

// notes says what the table is short of.
func (r *Reader) notes() []counts.Note {
	out := append(r.meter.Notes(), r.in.Losses()...)
	out = append(out, r.trace.notes()...)
	if r.derive != nil {
		out = append(out, r.hw.notes()...)
	}
	if r.endless {
		out = append(out, counts.Notef("how long threads ran and waited is not known: most switches have no return (record --off-cpu, --switch-events, or -a)"))
	}
	out = append(out, r.waits.notes()...)
	if r.derive == nil && newBranchDeriver(r.hw) != nil {
		out = append(out, counts.Notef("the samples have branch stacks").With(counts.Fix{Action: counts.ReportBy, Name: "taken-branches"}))
	}
	if n := r.order.left; n > 0 {
		out = append(out, counts.Notef("%d samples were not counted: their events came too late, or there are too many of them", n))
	}
	if n := r.order.spaces.Late; n > 0 {
		out = append(out, counts.Notef("%d mappings and names came too late in the file: samples around them may be at wrong places", n))
	}
	if r.places.others >= 0 || r.places.overflow >= 0 {
		out = append(out, counts.Notef("there are too many places: the others are together"))
	}
	if r.keep != nil {
		out = append(out, counts.Note{Kind: counts.NoteFiltered, Text: r.left()})
	}
	if r.opts.By == counts.Line || r.opts.By == counts.Instruction {
		out = append(out, r.skid()...)
	}
	return out
}

// left says what a filter leaves, of each event if there are few.
func (r *Reader) left() string {
	const few = 4
	var kept, all int64
	var parts []string
	for col, e := range r.columns {
		if e.Index >= derivedBase {
			continue
		}
		whole := r.total[col]
		whole.Merge(&r.passed[col])
		whole.Merge(&r.places.dropped[col])
		n, of := r.total[col].Samples(), whole.Samples()
		if kept, all = kept+n, all+of; of > 0 {
			share := r.total[col].Cell(e).Value / whole.Cell(e).Value
			parts = append(parts, fmt.Sprintf("%.1f %% of %s (%d of %d samples)", 100*share, e.Name, n, of))
		}
	}
	if len(parts) > few {
		return fmt.Sprintf("after filtering: %d of %d samples", kept, all)
	}
	return "after filtering: " + strings.Join(parts, ", ")
}

// skid says which events' samples do not name the instruction that caused them.
func (r *Reader) skid() []counts.Note {
	var events []string
	for col, e := range r.columns {
		if r.skids[col] {
			events = append(events, e.Name)
		}
	}
	if len(events) == 0 {
		return nil
	}
	return []counts.Note{counts.Notef("%s: not sampled precisely: a sample may be some instructions behind its own", strings.Join(events, ", "))}
}

// namelessLeast is the least share of the samples that makes a module without names
// worth a note.
const namelessLeast = 0.01

// notesOfFile is how many notes about a module's file there are at most: a damaged one has more.
const notesOfFile = 3

// nameless notes what the files of the modules with the most samples lack. It says which modules
// have addresses only, and why.
func (r *Reader) nameless() []counts.Note {
	if r.places.told&(codeKinds&^(1<<counts.Module)) == 0 {
		return nil
	}
	type module struct {
		file    *profile.File
		samples int64
	}
	all := int64(0)
	var list []module
	at := map[*profile.File]int{}
	for i, n := range r.places.samples() {
		all += n
		file := r.places.codes[i].place.File
		if file == nil {
			continue
		}
		j, ok := at[file]
		if !ok {
			j = len(list)
			at[file] = j
			list = append(list, module{file: file})
		}
		list[j].samples += n
	}
	sorting.Stable(list, func(a, b module) int { return int(b.samples - a.samples) })
	var out []counts.Note
	for _, m := range list {
		if float64(m.samples) < namelessLeast*float64(all) {
			break
		}
		status := r.symbols.Status(m.file)
		for _, n := range status.Notes[:min(len(status.Notes), notesOfFile)] {
			out = append(out, counts.Notef("%s", counts.Name(strings.ReplaceAll(n, "\n", "; "))))
		}
		if err := status.Err; err != nil {
			text := fmt.Sprintf("no names for %s: %s", m.file.Base(), strings.ReplaceAll(err.Error(), "\n", "; "))
			if m.file.BuildID != "" {
				text += " (build id " + m.file.BuildID + ")"
			}
			note := counts.Notef("%s", counts.Name(text))
			if errors.Is(err, object.ErrBuildID) {
				note.Kind = counts.NoteOtherBuild
			}
			out = append(out, note)
		}
	}
	return out
}
