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
	name := r.Names[0]
	if info, err := os.Stat(name); name == "-" || err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil, fault.Usagef("%s: annotate reads the recording several times: it cannot be a stream", name)
	}
	want, err := parseSymbol(o.Symbol)
	if err != nil {
		return nil, err
	}
	defer openOnce(&o.Symbols)()
	n := &annotator{a: &o, placeReport: placeReport{Recordings: r, o: &PlaceOptions{}, file: name}}
	by := counts.Function
	if want.byPlace() {
		by = counts.Instruction // to find what has an address or a line
	}
	t, err := n.first(samples.Options{By: by}, want)
	if err != nil {
		return nil, err
	}
	if n.in != nil {
		defer n.in.Close()
	}
	simulated := n.kind.Simulated
	if simulated && n.programs == nil && (want.address || o.Instructions) {
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
	n.notes = slices.Clone(t.Notes)
	place, err := want.find(t, n.col)
	if err != nil {
		return nil, fault.As(fault.Input, fmt.Errorf("%s: %w", name, err))
	}
	if o.Symbol == "" {
		n.notes = append(n.notes, counts.Notef("no SYMBOL was given: %s has the most %s", functionName(place), accounting.ClockName(n.method, t, n.col)))
	}
	if simulated && n.programs == nil {
		return n.lines(t, place)
	}
	return n.function(t, place, want)
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

// first reads the recording by function or instruction. It stops at functions of one name, if
// that name is asked for.
func (n *annotator) first(o samples.Options, want *symbol) (*counts.Table, error) {
	if o.By != counts.Function {
		return n.table(o)
	}
	var same []*profile.Function
	if want.text != "" {
		o.Enough = func(f *profile.Function) bool {
			if want.names(f) && !slices.ContainsFunc(same, func(o *profile.Function) bool { return sameCode(o, f) }) {
				same = append(same, f)
			}
			return len(same) > 1
		}
	}
	o.Again = true
	in, err := n.read(o)
	switch {
	case errors.Is(err, samples.ErrEnough):
		return nil, fault.Inputf("%s: %w", n.file, want.several(same))
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
		if t, err := in.Instructions(only); t != nil || err != nil {
			return t, err
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
		return nil, &SamplesError{Err: in.Err(), For: ForAnnotate}
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

// function annotates the function that a place is in.
func (n *annotator) function(t *counts.Table, place *counts.Code, want *symbol) (*render.Annotation, error) {
	rec, err := n.recording(n.file)
	if err != nil {
		return nil, err
	}
	defer rec.Close()
	r, err := n.codeOf(rec.Recording)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if n.programs != nil {
		if place, err = n.hottest(place); err != nil {
			return nil, err
		}
	}
	listing, f := n.list(r, place, want)
	run := slices.Clone(t.Row(0))
	filter := samples.Filter{Modules: []string{place.Module}, Addresses: []samples.Range{{From: listing.Start, To: listing.End - 1}}}
	insts, err := n.instructions(filter)
	if err != nil {
		return nil, err
	}
	insts = n.withWhole(insts)
	for _, note := range insts.Notes { // such as that samples stand behind their instructions
		if !slices.Contains(n.notes, note) && note.Kind != counts.NoteFiltered {
			n.notes = append(n.notes, note)
		}
	}
	opts := annotate.Options{Clock: n.col, Run: run, Exact: exact(insts, r.Events())}
	opts.Retired = n.retired(insts, opts.Exact)
	if n.programs != nil { // the simulator has seen each execution
		opts.Retired = slices.IndexFunc(insts.Columns, func(c counts.Column) bool { return c.Event == "Ir" })
		opts.Exact, opts.Counted = slices.Repeat([]bool{true}, len(insts.Columns)), true
	}
	if f != nil && listing.Graph != nil {
		b := flow.NewBranches(listing.Graph)
		s, err := r.Branches(f, b, n.takenBranches)
		if err != nil {
			return nil, fault.As(fault.Input, err)
		}
		opts.Branches, opts.Relative = b, !s.Taken
	}
	program := ""
	if f != nil {
		program = r.Status(f.File).Path
	}
	out, err := n.annotation(t, insts, listing, opts, program)
	if err == nil && n.a.Intervals {
		out.Intervals, err = n.intervals(listing, opts, filter)
	}
	return out, err
}

// hottest returns the instruction of a simulated function with the most cycles.
func (n *annotator) hottest(place *counts.Code) (*counts.Code, error) {
	t, err := n.table(samples.Options{By: counts.Instruction, Filter: samples.Filter{Modules: []string{place.Module}, Functions: []string{place.Function}}})
	if err != nil {
		return nil, err
	}
	for row, most := 1, math.Inf(-1); row < len(t.Scopes); row++ {
		if v := t.Cell(row, 0).Value; v > most {
			place, most = t.Scopes[row].Code, v
		}
	}
	return place, nil
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
