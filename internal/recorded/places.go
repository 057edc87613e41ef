package recorded

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/accounting"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/hotspots"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/internal/simulation"
	"github.com/cyclestack/cyclestack/internal/source/samples"
	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/report"
	"github.com/cyclestack/cyclestack/source"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// A Split says into which parts a report is divided.
type Split struct {
	Kinds  []counts.Kind // in the user's order
	Code   counts.Kind   // the finest kind of place in the code; Run for none
	Within counts.By     // the others
}

// SplitBy returns the split by kinds. Run is none.
func SplitBy(kinds ...counts.Kind) Split {
	var s Split
	for _, k := range kinds {
		if k != counts.Run && !slices.Contains(s.Kinds, k) {
			s.Kinds = append(s.Kinds, k)
		}
	}
	for _, k := range s.Kinds {
		s.Within = s.Within.With(k)
		if slices.Contains(samples.Kinds, k) {
			s.Code = max(s.Code, k)
		}
	}
	if s.Code != counts.Run {
		s.Within &^= counts.By(0).With(s.Code)
	}
	return s
}

func (s Split) String() string {
	if len(s.Kinds) == 0 {
		return counts.Run.String()
	}
	var names []string
	for _, k := range s.Kinds {
		names = append(names, k.String())
	}
	return strings.Join(names, ",")
}

// overview is the split of a report of shares only, if the user names none.
var overview = SplitBy(counts.Process, counts.Module)

// PlaceOptions are those of accounts of places.
type PlaceOptions struct {
	Split    Split
	Top      int           // how many places; 0 is all that are worth a line
	All      bool          // every place, however small
	Interval time.Duration // of counts.Interval; 0 is some twenty of the recording
	Brief    bool          // without a split, where the time of samples of the clock went
	Expand   string        // nodes whose parts have columns as well
	Filter   Filter
	Symbols  profile.Config
	NoInline bool // inlined calls are part of the function around them
	Grouping Grouping
	Calls    samples.Calls // how callchains are summed by function; the zero value for places
	// keep gets the reader of the only recording, for further tables. It closes the reader. Nil for none.
	keep func(*samples.Reader)
	// Next suggests the next command; nil for none.
	Next func(Closer) report.Step
}

// A Closer look at a recording is what a next command may take.
type Closer struct {
	By     counts.Kind // split the report by this, if Symbol is ""
	Symbol string      // annotate this function
}

// A placeReport is the making of accounts of places.
type placeReport struct {
	*Recordings
	o      *PlaceOptions
	file   string // being read
	kind   accounting.Kind
	method *resolve.Method
	flat   string                  // why there are shares only: no method fits; "" if one does
	self   *counts.Table           // of Calls: the functions' own samples
	brief  bool                    // the recording is read by module first, and all else is made of that
	first  *samples.Reader         // that has read it so; nil if it was read otherwise
	insts  *counts.Table           // its instructions, once these are asked for
	picked *accounting.PlaceReport // has chosen the rows of the table; nil if that has all
	timed  *simulation.Core        // of a simulation: the core that timed it; nil if the file does not say
}

// Places writes the accounts of the parts of a recording, or of several of the same
// program. The writer is made once it is known whether there are places.
func (r *Recordings) Places(o *PlaceOptions, writer func(places bool) (report.Writer, error)) error {
	p := &placeReport{Recordings: r, o: o, file: r.Names[0]}
	p.brief = o.Brief && len(o.Split.Kinds) == 0 && len(p.Names) == 1 && !o.Filter.used()
	defer p.closeFirst()
	t, err := p.table(p.file)
	if err != nil {
		return err
	}
	if t, err = p.sum(t); err != nil {
		return err
	}
	if o.Filter.used() {
		t.Label = strings.TrimSpace(t.Label + " (" + strings.Join(o.Filter.Words(), " ") + ")")
	}
	if p.picked == nil {
		if err := p.resolve(t); err != nil {
			return err
		}
	}
	if nodes := r.Choice.Nodes; nodes != "" && p.flat != "" {
		return unknownNodes(p.file, nodes, p.flat)
	}
	if len(o.Split.Kinds) == 0 && p.flat == "" {
		return p.whole(t, writer)
	}
	if o.Brief && len(o.Split.Kinds) == 0 {
		if done, err := p.time(t, writer); done || err != nil {
			return err
		}
	}
	if p.first != nil { // there is no brief account: the parts are needed
		p.closeFirst()
		p.brief = false
		if t, err = p.table(p.file); err != nil {
			return err
		}
	}
	return p.places(p.withWhole(t), writer)
}

// closeFirst gives up the reader of the whole.
func (p *placeReport) closeFirst() {
	if p.first != nil {
		p.first.Close()
		p.first, p.insts = nil, nil
	}
}

// byInstruction returns the table by instruction of hot functions that the reader of the whole makes once;
// nil without that reader.
func (p *placeReport) byInstruction() *counts.Table {
	if p.insts == nil {
		p.insts = instructionsOf(p.first)
	}
	return p.insts
}

// instructionsOf returns the table by instruction of hot functions of a reader; nil if it has none.
func instructionsOf(first *samples.Reader) *counts.Table {
	if first == nil {
		return nil
	}
	t, err := first.Places(samples.Options{By: counts.Instruction, NoInline: true, Fold: hotspots.Fold})
	if err != nil {
		return nil
	}
	return t
}

// unknownNodes is the error of nodes that no method can compute.
func unknownNodes(file, nodes, why string) error {
	why = strings.TrimPrefix(why, "shares only: ")
	return &fault.Error{Kind: fault.Input, Err: fmt.Errorf("%s: %w", file, &fault.OptionError{Option: "nodes", Value: nodes, Err: errors.New(why)})}
}

// withWhole adds a simulator's estimate of all cycles to its counts, so that places are
// compared by them. Without a method, places are compared by the first event.
func (p *placeReport) withWhole(t *counts.Table) *counts.Table {
	if p.kind.Simulated && p.flat == "" {
		if whole := p.method.Account.WithWhole(t, accounting.WholeEvent); whole != nil {
			return whole
		}
	}
	return t
}

// table reads a recording, split by place.
func (p *placeReport) table(name string) (*counts.Table, error) {
	rec, err := p.recording(name)
	if err != nil {
		return nil, err
	}
	defer rec.Close()
	if p.o.Calls.View != 0 {
		return p.calls(rec.Recording)
	}
	in, err := p.read(rec.Recording)
	if err != nil {
		return nil, err
	}
	if _, again := in.(*samples.Reader); p.brief && !again { // text of samples
		in.Close()
		p.brief = false
		if in, err = p.read(rec.Recording); err != nil {
			return nil, err
		}
	}
	if !in.Next() {
		defer in.Close()
		return nil, p.unread(in.Err())
	}
	p.kind = accounting.KindOf(in)
	if first, ok := in.(*samples.Reader); ok && p.brief {
		p.first = first
		return in.Table().Clone(), nil
	}
	if own, ok := in.(*samples.Reader); ok && p.o.keep != nil {
		p.o.keep(own)
		return in.Table(), nil
	}
	defer in.Close()
	return in.Table(), nil
}

// read returns a reader of a recording's places.
func (p *placeReport) read(rec *source.Recording) (source.PlaceReader, error) {
	split := p.o.Split
	if rec.Simulated() {
		if split.Within != 0 || split.Code == counts.SourceFile || p.o.Filter.used() && !p.o.Filter.onlyCode() || p.o.Interval > 0 {
			return nil, noFilters(rec.Name())
		}
		return rec.SimulatedPlaces(samples.Options{By: split.Code, Filter: p.o.Filter.Filter, Symbols: p.o.Symbols}), nil
	}
	if p.brief = p.brief && !rec.Stream() && rec.HasSamples(); p.brief {
		split = SplitBy(counts.Module)
	} else if len(split.Kinds) == 0 {
		split = overview
	}
	o := samples.Options{By: split.Code, Within: split.Within, Again: p.brief || p.o.keep != nil, Interval: p.o.Interval, NoInline: p.o.NoInline, Derive: p.derive(), Waits: p.waits(), Filter: p.o.Filter.Filter, Symbols: p.o.Symbols}
	var in source.PlaceReader
	if len(p.Names) == 1 && len(p.o.Split.Kinds) > 0 {
		o.Pick = func(whole *counts.Table, places int, cells func(int) []counts.Cell) []bool {
			p.kind = accounting.KindOf(in)
			return p.pick(whole, places, cells)
		}
	}
	in = rec.Samples(o)
	return in, nil
}

// derive says which counts the method needs that are made of samples.
func (p *placeReport) derive() samples.Derivation {
	switch p.Choice.Model {
	case resolve.InstructionsModel:
		return samples.DeriveOps
	case resolve.BranchesModel:
		return samples.DeriveBranches
	case "":
		return samples.DeriveAlone
	}
	return samples.DeriveNone
}

// waits reports whether the method may need the time of threads.
func (p *placeReport) waits() bool {
	return p.Choice.Model == "" || p.Choice.Model == resolve.WallModel
}

// noFilters is the error of a simulator's file that is to be split or filtered by what it
// lacks.
func noFilters(name string) error {
	return fault.Usagef("%s: a simulation's counts are by place in the code, without other kinds and other filters", name)
}

// unread says why there is nothing to report.
func (p *placeReport) unread(err error) error {
	switch {
	case errors.Is(err, perfdata.ErrFormat) && p.o.Split.Code == counts.Run:
		return &SamplesError{err}
	case errors.Is(err, perfdata.ErrFormat):
		return fault.Inputf("%w; %s %s needs samples, as perf record takes them", err, fault.Name("by"), p.o.Split)
	}
	return fault.As(fault.Input, err)
}

// resolve chooses the method by the account of the whole. Where none fits, the places
// still have their shares, and flat says why.
func (p *placeReport) resolve(t *counts.Table) error {
	asked := p.Choice.Model != "" || p.Choice.CPU != ""
	cpu, err := p.Processor(t, p.file, resolve.Request{}, nil)
	if err != nil && p.Choice.CPU == "" && resolve.Derived(t) != "" { // it holds on any
		cpu.CPU, err = p.Catalogue.CPU(resolve.GenericCPU)
	}
	clock := err == nil && !asked && p.KernelOnly(cpu, t)
	if err == nil && !clock {
		p.method, err = p.Choose(cpu, t, resolve.Request{})
	}
	switch {
	case err != nil && asked:
		return err
	case err != nil:
		p.flat = "shares only: " + p.say(err)
	case !clock && p.method.Model.Name != resolve.OSModel && p.rests(p.method.Evaluate(t, account.Place{})):
		return nil
	case p.Choice.Model != "":
		o := p.options(0)
		return o.Nothing(p.method, t, p.kind)
	case clock:
		p.flat = "time profile only: no hardware events in this recording"
	default:
		p.flat = fmt.Sprintf("shares only: no method for %s uses %s", cpu.CPU.Name, accounting.FirstOf(resolve.EventNames(t)))
	}
	note := cpu.Note
	if p.method != nil {
		note = p.method.Note
	}
	// The method for the operating system's counters needs least.
	p.method, err = p.Generic(resolve.OSModel)
	if err == nil {
		p.method.Note = note
	}
	return err
}

// rests reports whether an account rests on the events that were sampled, and says more
// than their counts: cycles alone are a node of most methods. A simulator counts many
// things as one event.
func (p *placeReport) rests(a *account.Account) bool {
	return (p.kind.Simulated || resolve.Relates(a)) && a.Known() &&
		slices.ContainsFunc(a.Counts(), func(c account.Count) bool { return c.Used && c.State == counts.Counted })
}

// whole writes the account of the whole.
func (p *placeReport) whole(t *counts.Table, writer func(bool) (report.Writer, error)) error {
	w, err := writer(false)
	if err != nil {
		return err
	}
	o, d := p.options(0), p.looped()
	o.Refine = func(a *account.Account) {
		if p.kind.Simulated && p.o.Filter.used() {
			ofPart(a)
		}
		p.hotspots(a, d)
	}
	s := accounting.New(w, o)
	if err := s.Add(p.method, p.divided(p.row(t), d), p.kind, p.file); err != nil {
		return err
	}
	return s.Finish()
}

// row is the first row of a table.
func (p *placeReport) row(t *counts.Table) *counts.Table {
	whole := counts.NewTable(&counts.Layout{Columns: t.Columns, Scopes: t.Scopes[:1]})
	whole.Label, whole.CPU, whole.Start, whole.Duration, whole.Notes, whole.NoError = t.Label, t.CPU, t.Start, t.Duration, t.Notes, t.NoError
	copy(whole.Row(0), t.Row(0))
	return whole
}

// ofPart removes the checks that hold for a whole simulated program only, such as that
// caches begin empty.
func ofPart(a *account.Account) {
	var own []account.Check
	for i := range a.Checks {
		if !a.Checks[i].Common {
			own = append(own, a.Checks[i])
		}
	}
	a.Checks = own
}

// report returns the report of the places.
func (p *placeReport) report() *accounting.PlaceReport {
	if p.picked != nil {
		return p.picked
	}
	o := &accounting.PlaceReport{Options: p.options(0), Kinds: p.o.Split.Kinds, Top: p.o.Top, All: p.o.All, Flat: p.flat, Next: p.next}
	if len(o.Kinds) == 0 {
		o.Kinds = overview.Kinds
	}
	return o
}

// pick chooses the rows of a recording's table: see [samples.Options.Pick].
func (p *placeReport) pick(whole *counts.Table, places int, cells func(int) []counts.Cell) []bool {
	if err := p.resolve(whole); err != nil {
		return nil // it is said later
	}
	p.picked = p.report()
	return p.picked.Pick(p.method, whole, places, cells)
}

// places writes the account of the whole and those of its parts.
func (p *placeReport) places(t *counts.Table, writer func(bool) (report.Writer, error)) error {
	w, err := writer(true)
	if err != nil {
		return err
	}
	o := p.report()
	if p.self != nil {
		o.Calls, o.Next = p.shown(), nil
	}
	if x := p.o.Expand; x != "" && p.flat == "" && !report.Expandable(p.method.Model, x) {
		return p.method.Unmatched("expand", x)
	}
	return o.Write(w, p.method, t, p.kind)
}

// next suggests the command that looks closer at a recording's places: from modules to
// functions, and from the function with the most cycles to its code.
func (p *placeReport) next(t *counts.Table, rows []int) report.Step {
	if p.o.Next == nil || slices.Contains(p.Names, "-") {
		return report.Step{} // there is none that could be read again
	}
	switch kinds := p.o.Split.Kinds; {
	case len(kinds) == 0 || slices.Equal(kinds, []counts.Kind{counts.Module}):
		return p.o.Next(Closer{By: counts.Function})
	case !slices.Equal(kinds, []counts.Kind{counts.Function}) || len(rows) == 0:
		return report.Step{}
	}
	code := t.Scopes[rows[0]].Code
	switch {
	case p.kind.Name == "opreport", p.kind.Name == "perf-script":
		return report.Step{} // their rows have no lines
	case p.kind.Simulated, code != nil && code.Addr == 0 && code.Function != "": // inlined, with no code of its own
		return p.o.Next(Closer{By: counts.Line})
	case code == nil || code.Function == "" || strings.HasPrefix(code.Module, "[") || strings.HasSuffix(code.Module, ".map"):
		return report.Step{} // its code is not in a file
	}
	return p.o.Next(Closer{Symbol: code.Function})
}

// sum adds the further recordings to the first one's table. They must be of the same
// program: differences are for a comparison.
func (p *placeReport) sum(first *counts.Table) (*counts.Table, error) {
	if len(p.Names) == 1 {
		return first, nil
	}
	kind := p.kind
	sum := newPlaceSum(first)
	one := run{file: p.file, table: first}
	for _, name := range p.Names[1:] {
		t, err := p.table(name)
		if err != nil {
			return nil, err
		}
		other := run{file: name, table: t}
		switch {
		case !p.sameCPU(t.CPU, first.CPU):
			return nil, fault.Inputf("%s: from %s, but %s is from %s: report one processor at a time", name, t.CPU, one.file, first.CPU)
		case !slices.Equal(sortedEvents(t), sortedEvents(first)):
			return nil, fault.Inputf("%s: it has %s, but %s has %s: only runs of the same program are added up", name, accounting.FirstOf(resolve.EventNames(t)), one.file, accounting.FirstOf(resolve.EventNames(first)))
		case !p.o.Grouping.Together && other.program() != one.program():
			return nil, &MixtureError{name, other.program(), one.file, one.program()}
		}
		sum.add(t)
	}
	p.kind = kind
	sum.table.Notes = append(sum.table.Notes, counts.Notef("the sum of %d recordings", len(p.Names)))
	return sum.table, nil
}

// sameCPU reports whether two recordings name one processor, in whatever way.
func (r *Recordings) sameCPU(one, other string) bool {
	a, errA := r.Catalogue.CPU(one)
	b, errB := r.Catalogue.CPU(other)
	if errA != nil || errB != nil {
		return one == other
	}
	return a.Name == b.Name
}

// A placeSum is the sum of tables of places. Places are the same if they have the same
// name.
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

// placeKey is a scope without what differs between recordings: the addresses of code.
func placeKey(s counts.Scope, row int) counts.Scope {
	if row == 0 {
		return counts.Scope{} // the whole
	}
	s.Code = nil
	return s
}

// add adds a table with the same events.
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
