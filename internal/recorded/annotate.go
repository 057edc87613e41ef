package recorded

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/accounting"
	"github.com/cyclestack/cyclestack/internal/annotate"
	"github.com/cyclestack/cyclestack/internal/disasm"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/flow"
	"github.com/cyclestack/cyclestack/internal/object"
	"github.com/cyclestack/cyclestack/internal/render"
	"github.com/cyclestack/cyclestack/internal/source/code"
	"github.com/cyclestack/cyclestack/internal/source/samples"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/source"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// AnnotateOptions are those of annotated code.
type AnnotateOptions struct {
	Symbol       string // function, address or line; "" is the function with the most cycles
	Instructions bool   // only instructions are of use
	Syntax       disasm.Syntax
	Symbols      profile.Config
	Sources      []string // further directories with sources
	// Intervals has the code of each interval annotated as well; see [PlaceOptions].
	Intervals bool
	Interval  time.Duration
	Longest   uint64 // bytes of code that a function may have; 0 for any number

	first *samples.Reader // that has read the recording already, or nil; it is not closed
}

// An annotator annotates a function of a recording.
type annotator struct {
	placeReport
	a     *AnnotateOptions
	notes []counts.Note
	col   int                // the column that places are compared by
	in    source.PlaceReader // of the samples by function; nil if these were read by instruction
	code  *code.Listing      // of the function; nil if it was not found

	programs []string // of a simulation by instruction
}

// Annotate annotates a function of the first recording. It reads the recording several
// times, so that it cannot be a stream.
func (r *Recordings) Annotate(o AnnotateOptions) (*render.Annotation, error) {
	want, err := parseSymbol(o.Symbol)
	if err != nil {
		return nil, err
	}
	list, err := r.annotate(&o, []*symbol{want})
	if err != nil {
		return nil, err
	}
	return list[0].Code, list[0].Err
}

// AnnotateAll is Annotate for functions that were found in the recording, without inlined ones.
// The recording is not read for each of them.
func (r *Recordings) AnnotateAll(o AnnotateOptions, functions []*counts.Code) ([]*Annotated, error) {
	wants := make([]*symbol, len(functions))
	for i, c := range functions {
		wants[i] = &symbol{text: c.Module + ":" + c.Function, module: c.Module, name: c.Function, is: c}
	}
	return r.annotate(&o, wants)
}

// An Annotated is a function that was annotated, or why it was not.
type Annotated struct {
	Code *render.Annotation
	Err  error

	at       *counts.Code
	from     place
	function *profile.Function // nil if it was not found
	listing  *annotate.Listing
	insts    *counts.Table
	opts     annotate.Options
	notes    []counts.Note
	code     *code.Listing
}

// A place is a range of addresses in a module.
type place struct {
	module string
	samples.Range
}

// annotate annotates functions.
func (r *Recordings) annotate(o *AnnotateOptions, wants []*symbol) ([]*Annotated, error) {
	name := r.Names[0]
	if info, err := os.Stat(name); name == "-" || err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil, fault.Usagef("%s: annotate reads the recording several times: it cannot be a stream", name)
	}
	var one *symbol
	if len(wants) == 1 {
		one = wants[0]
	}
	defer openOnce(&o.Symbols)()
	n := &annotator{a: o, placeReport: placeReport{Recordings: r, o: &PlaceOptions{}, file: name}}
	t, err := n.first(one)
	if err != nil {
		return nil, err
	}
	if n.in != nil && o.first == nil {
		defer n.in.Close()
	}
	byLine := n.kind.Simulated && n.programs == nil
	if byLine && (o.Instructions || slices.ContainsFunc(wants, func(w *symbol) bool { return w.address })) {
		return nil, fault.Usagef("%s has lines and no instructions", name)
	}
	if err := n.resolve(t); err != nil {
		return nil, err
	}
	t = n.withWhole(t)
	if n.flat == "" {
		if err := n.method.CheckNodes(); err != nil {
			return nil, err
		}
	}
	n.col = accounting.Clock(n.method, t)
	list := make([]*Annotated, len(wants))
	for i, want := range wants {
		x := &Annotated{notes: slices.Clone(t.Notes)}
		list[i] = x
		if x.at, err = n.find(want, x, t); err != nil {
			x.Err = fault.As(fault.Input, fmt.Errorf("%s: %w", name, err))
			continue
		}
		if want.text == "" {
			x.notes = append(x.notes, counts.Notef("no SYMBOL was given: %s has the most %s", functionName(x.at), accounting.ClockName(n.method, t, n.col)))
		}
		if n.notes = x.notes; byLine {
			x.Code, x.Err = n.lines(t, x.at)
		}
	}
	if byLine {
		return list, nil
	}
	if err := n.functions(t, list, wants); err != nil {
		return nil, err
	}
	if o.Intervals {
		n.intervals(list)
	}
	return list, nil
}

// openOnce lets programs stay open until the returned function is called, for readers that ask
// about them one after another.
func openOnce(c *profile.Config) (done func()) {
	if c.Opened != nil {
		return func() {}
	}
	c.Opened = &object.Opened{}
	return func() { c.Opened.Close(); c.Opened = nil }
}

// find returns a place in what a symbol means. Only those of an address or a line are read by
// instruction. An inlined function is in the one around most of its samples.
func (n *annotator) find(want *symbol, x *Annotated, t *counts.Table) (*counts.Code, error) {
	if want.byPlace() {
		at, err := n.instructions(want.filter())
		if errors.As(err, new(*samples.NoMatchError)) {
			return nil, fmt.Errorf("no samples at %s", want.text)
		}
		if err != nil {
			return nil, err
		}
		at = n.withWhole(at)
		copy(at.Row(0), t.Row(0))
		t = at
	}
	at, err := want.find(t, n.col)
	in, ok := n.in.(*samples.Reader)
	if !ok || !errors.Is(err, ErrNoFunction) {
		return at, err
	}
	only := samples.Filter{Functions: []string{want.name}}
	if want.module != "" {
		only.Modules = []string{want.module}
	}
	inlined, again := in.Instructions(only)
	if again != nil || inlined == nil {
		return nil, err
	}
	at = hottest(inlined, n.col)
	x.notes = append(x.notes, counts.Notef("%s is inlined: this is the function around the most of its samples", want.text))
	return at, nil
}

// first reads the recording by function. It stops where a name that is asked for has turned out
// to mean several functions.
func (n *annotator) first(want *symbol) (*counts.Table, error) {
	if in := n.a.first; in != nil {
		if t, err := in.Places(samples.Options{By: counts.Function, Derive: n.derive(), Waits: n.waits(), NoInline: true}); t != nil && err == nil {
			n.in, n.kind = in, accounting.KindOf(in)
			return t, nil
		}
		n.a.first = nil
	}
	o, met := samples.Options{By: counts.Function, Again: true}, (*meanings)(nil)
	if want != nil && want.text != "" && want.is == nil && !want.byPlace() {
		met = newMeanings(want)
		o.Enough = met.several
	}
	in, err := n.read(o)
	switch {
	case errors.Is(err, samples.ErrEnough):
		return nil, fault.Inputf("%s: %w", n.file, met.error())
	case err != nil:
		return nil, err
	}
	n.in = in
	return in.Table().Clone(), nil
}

// instructions reads what a filter leaves by instruction. It needs no other pass over the
// recording if that was read by function.
func (n *annotator) instructions(only samples.Filter) (*counts.Table, error) {
	if in, ok := n.in.(*samples.Reader); ok {
		if t, err := in.Instructions(only); err != nil {
			return nil, err
		} else if t != nil {
			return t.Clone(), nil
		}
	}
	return n.table(samples.Options{By: counts.Instruction, Filter: only})
}

// table reads the recording.
func (n *annotator) table(o samples.Options) (*counts.Table, error) {
	in, err := n.read(o)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return in.Table().Clone(), nil
}

// read returns a reader with its table. The places of some simulations are lines at most.
func (n *annotator) read(o samples.Options) (source.PlaceReader, error) {
	rec, err := n.recording(n.file)
	if err != nil {
		return nil, err
	}
	defer rec.Close()
	o.Symbols, o.Derive, o.Waits, o.NoInline = n.a.Symbols, n.derive(), n.waits(), true // code is listed as it is
	in, simulated := source.PlaceReader(nil), rec.Simulated()
	if simulated {
		o.Within = counts.By(0).With(counts.Function)
		in = rec.SimulatedPlaces(o)
	} else {
		in = rec.Samples(o)
	}
	more := in.Next()
	if !more && simulated && o.By == counts.Instruction {
		in.Close()
		o.By = counts.Line
		in = rec.SimulatedPlaces(o)
		more = in.Next()
	}
	if !more {
		in.Close()
		return nil, needsSamples(in.Err(), "annotate")
	}
	n.kind, n.timed = accounting.KindOf(in), timedBy(in)
	if s, ok := in.(interface{ Programs() []string }); ok {
		n.programs = s.Programs()
	}
	return in, nil
}

// lines annotates the lines of a function from a simulator's file.
func (n *annotator) lines(t *counts.Table, place *counts.Code) (*render.Annotation, error) {
	byLine, err := n.table(samples.Options{By: counts.Line})
	if err != nil {
		return nil, err
	}
	opts := annotate.Options{Clock: n.col, Retired: -1, Run: slices.Clone(t.Row(0))}
	listing := &annotate.Listing{Function: place.Function, Module: place.Module, ByLine: true}
	return n.annotation(t, n.withWhole(byLine), listing, opts, "")
}

// annotation annotates a listing of a program, which is a file or "".
func (n *annotator) annotation(t, parts *counts.Table, listing *annotate.Listing, opts annotate.Options, program string) (*render.Annotation, error) {
	if n.flat == "" {
		opts.Method = n.method.Account
	}
	code, err := annotate.New(parts, listing, opts)
	if err != nil {
		return nil, fault.Inputf("%s: %w", n.file, err)
	}
	sources := newSourceFiles(n.a.Symbols.Root, n.a.Sources, program)
	o := n.options(0)
	o.Files = []string{n.file}
	return &render.Annotation{Header: o.Header(n.method, n.kind, t), Code: code, Core: n.inCore(t, code), What: accounting.What(n.method, &t.Columns[n.col]),
		Label: t.Label, Flat: n.flat, Notes: n.notes, Text: sources.line, TextNotes: sources.notes}, nil
}

// codeOf returns the code of a recording. It reads the recording for that only if stacks of
// branches, or another reader, make it necessary.
func (n *annotator) codeOf(rec *source.Recording) (*code.Reader, error) {
	if n.programs != nil {
		return code.OfPrograms(n.programs, n.a.Symbols), nil
	}
	if in, ok := n.in.(*samples.Reader); ok && !code.Stacked(in.Events()) {
		return code.Of(in, n.a.Symbols), nil
	}
	r, err := rec.Code(n.a.Symbols)
	return r, fault.As(fault.Input, err)
}

// functions annotates the functions that were found.
func (n *annotator) functions(t *counts.Table, list []*Annotated, wants []*symbol) error {
	rec, err := n.recording(n.file)
	if err != nil {
		return err
	}
	defer rec.Close()
	r, err := n.codeOf(rec.Recording)
	if err != nil {
		return err
	}
	defer r.Close()
	var branches []code.FunctionBranches
	for i, x := range list {
		if x.Err != nil {
			continue
		}
		if x.Err = n.function(r, t, wants[i], x); x.Err == nil && x.function != nil && x.listing.Graph != nil {
			x.opts.Branches = flow.NewBranches(x.listing.Graph)
			branches = append(branches, code.FunctionBranches{Function: x.function, Branches: x.opts.Branches})
		}
	}
	s, err := r.Branches(branches, n.takenBranches)
	if err != nil {
		return fault.As(fault.Input, err)
	}
	for _, x := range list {
		if x.Err != nil {
			continue
		}
		program := ""
		if x.function != nil {
			program = r.Status(x.function.File).Path
		}
		x.opts.Relative = x.opts.Branches != nil && !s.Taken
		n.code, n.notes = x.code, x.notes
		x.Code, x.Err = n.annotation(t, x.insts, x.listing, x.opts, program)
		x.insts = nil
	}
	return nil
}

// function lists a function, and reads its samples.
func (n *annotator) function(r *code.Reader, t *counts.Table, want *symbol, x *Annotated) (err error) {
	if n.programs != nil {
		only := samples.Filter{Modules: []string{x.at.Module}, Functions: []string{x.at.Function}}
		insts, err := n.table(samples.Options{By: counts.Instruction, Filter: only})
		if err != nil {
			return err
		}
		x.at = hottest(insts, 0)
	}
	if f, err := r.Function(x.at); err == nil && n.a.Longest > 0 && f.Size > n.a.Longest {
		return fault.Inputf("%s: %s has %d kB of code", n.file, functionName(x.at), f.Size>>10)
	}
	n.code, n.notes = nil, x.notes
	x.listing, x.function = n.list(r, x.at, want)
	x.from = place{x.at.Module, samples.Range{From: x.listing.Start, To: x.listing.End - 1}}
	if x.insts, err = n.instructions(x.from.filter()); err != nil {
		return err
	}
	x.insts = n.withWhole(x.insts)
	for _, note := range x.insts.Notes { // such as that samples stand behind their instructions
		if !slices.Contains(n.notes, note) && note.Kind != counts.NoteFiltered {
			n.notes = append(n.notes, note)
		}
	}
	x.opts = annotate.Options{Clock: n.col, Run: slices.Clone(t.Row(0)), Exact: exact(x.insts, r.Events())}
	x.opts.Retired = n.retired(x.insts, x.opts.Exact)
	if n.programs != nil { // the simulator has seen each execution
		x.opts.Retired = slices.IndexFunc(x.insts.Columns, func(c counts.Column) bool { return c.Event == "Ir" })
		x.opts.Exact, x.opts.Counted = slices.Repeat([]bool{true}, len(x.insts.Columns)), true
	}
	x.code, x.notes = n.code, n.notes
	return nil
}

// hottest returns the instruction of a table with the most of a column.
func hottest(t *counts.Table, col int) (at *counts.Code) {
	for row, most := 1, math.Inf(-1); row < len(t.Scopes); row++ {
		if v := t.Cell(row, col).Value; v > most {
			at, most = t.Scopes[row].Code, v
		}
	}
	return at
}

// list lists a function, or the range of it that was asked for. Where its code is not
// found the addresses remain.
func (n *annotator) list(r *code.Reader, place *counts.Code, want *symbol) (*annotate.Listing, *profile.Function) {
	bare := &annotate.Listing{Function: place.Function, Module: place.Module, BuildID: place.BuildID, End: ^uint64(0)}
	if want.to > 0 {
		bare.Start, bare.End, bare.Part = want.from, want.to, true
	}
	f, err := r.Function(place)
	if err == nil {
		var l *code.Listing
		if l, err = r.List(f, n.a.Syntax); err == nil {
			n.code = l
			out := annotate.NewListing(l, want.from, want.to)
			if n.programs != nil {
				out.Function = place.Function // with its parameters
			}
			if s := r.Status(f.File); !s.Verified && s.Path != "" && place.BuildID == "" {
				out.Notes = append(out.Notes, fmt.Sprintf("the recording has no build id of %s: the code is that of %s as it is now", place.Module, s.Path))
			}
			return out, f
		}
	}
	bare.Notes = []string{fmt.Sprintf("the code of %s was not found, so there are only addresses: %v", functionName(place), err)}
	return bare, nil
}

// takenBranches reports whether an event counts taken branches, which branch stacks
// hold.
func (n *annotator) takenBranches(event string) bool {
	return model.RoleTakenBranches.Has(event, n.method.Events)
}

// exact reports of each event whether its samples name the instruction that caused
// them, as perf's :pp asks for. With :p it is one near it.
func exact(t *counts.Table, events []*perfdata.Event) []bool {
	list := make([]bool, len(t.Columns))
	for i, c := range t.Columns {
		list[i] = slices.ContainsFunc(events, func(e *perfdata.Event) bool { return e.Name == c.Event && e.Precise > 1 })
	}
	return list
}

// retired returns the column that counts retired instructions, -1 if there is none. Of
// several, one that is sampled precisely wins.
func (n *annotator) retired(t *counts.Table, exact []bool) int {
	col := -1
	for i, c := range t.Columns {
		if model.RoleRetired.Has(c.Event, n.method.Events) && t.Cell(0, i).Samples > 0 && (col < 0 || exact[i] && !exact[col]) {
			col = i
		}
	}
	return col
}
