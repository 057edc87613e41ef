package cli

import (
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/annotate"
	"github.com/cyclestack/cyclestack/internal/disasm"
	"github.com/cyclestack/cyclestack/internal/flow"
	"github.com/cyclestack/cyclestack/internal/render"
	"github.com/cyclestack/cyclestack/internal/source/code"
	"github.com/cyclestack/cyclestack/internal/source/samples"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/report"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// annotateFlags are the flags of annotate.
type annotateFlags struct {
	symbols  profile.Config
	source   []string // --source-path
	lines    bool
	assembly bool
	full     bool
	syntax   string
}

func (a *app) annotate() *cobra.Command {
	c, f := &common{}, &annotateFlags{}
	cmd := &cobra.Command{
		Use:     "annotate FILE [SYMBOL]",
		GroupID: "account",
		Short:   "Print a function's source and assembly with the account of each line and instruction",
		Long: `annotate prints the code of one function of a perf.data file, with what was
sampled at each line and instruction beside it: cycles, stalled cycles, and the
events that could cause them, at what they usually cost. Figures are percentages
of the function's cycles, so that those of all instructions add up to its own.

An event with no stalled cycles near it is marked as hidden: the processor did
other work meanwhile, and fewer such events would gain nothing.

SYMBOL is a function by its name, demangled or not, or a part of its name that no
other has; MODULE:SYMBOL, where several modules have it; an address or a range of
addresses as objdump shows them, 0x1136, 0x1136-0x1160 or MODULE:0x1136; or a line
of the source, FILE:LINE. Without SYMBOL it is the function with the most cycles.

Of a file of callgrind or cachegrind the lines of a function are annotated, by what
the simulator counted.

Loops are listed with their share. Where retired instructions were sampled
precisely, or branch stacks, they have their iterations and average trip counts,
what each event comes to in one iteration, and blocks how often they were
executed.`,
		Example: `  cyclestack annotate --sysroot examples/annotate examples/annotate.data
  cyclestack annotate --sysroot examples/annotate examples/annotate.data solve --source-only
  cyclestack annotate --sysroot examples/annotate --asm-only examples/annotate.data solve:0x4000f6-0x400102
  cyclestack annotate --sysroot examples/annotate --nodes Stalls,L2_Miss --format csv examples/annotate.data solve.c:20`,
		Args: arguments(1, 2),
		RunE: func(_ *cobra.Command, args []string) error { return a.runAnnotate(c, f, args) },
	}
	c.addModel(cmd)
	c.addParams(cmd)
	flags := cmd.Flags()
	flags.IntVar(&c.level, "level", 0, "columns for the nodes up to this level (default: stalls, and the events that could cause them)")
	flags.StringVar(&c.nodes, "nodes", "", "columns for the nodes whose name or path matches `PATTERN` (*, ?; several by commas)")
	flags.BoolVar(&f.lines, "source-only", false, "the source's lines without the instructions")
	flags.BoolVar(&f.assembly, "asm-only", false, "the instructions without the source's lines")
	flags.BoolVar(&f.full, "full", false, "also the code without samples, however much of it there is")
	flags.StringVar(&f.syntax, "syntax", "att", "of x86 instructions: `att|intel`")
	addSymbols(cmd, &f.symbols)
	flags.StringArrayVar(&f.source, "source-path", nil, "another `DIRECTORY` to look for sources in, by their paths, parts of them or names (may be repeated)")
	c.addOutput(cmd, report.Formats[render.Annotation]()...)
	return cmd
}

func (a *app) runAnnotate(c *common, f *annotateFlags, args []string) error {
	if err := c.check(report.Formats[render.Annotation]()...); err != nil {
		return err
	}
	syntax := disasm.ATT
	switch f.syntax {
	case "att":
	case "intel":
		syntax = disasm.Intel
	default:
		return usageError("--syntax %s: it is att or intel", f.syntax)
	}
	if f.lines && f.assembly {
		return usageError("--source-only and --asm-only: one of them")
	}
	if info, err := os.Stat(args[0]); args[0] == "-" || err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return usageError("%s: annotate reads the recording several times: it cannot be a stream", args[0])
	}
	s, err := c.session()
	if err != nil {
		return err
	}
	n := &annotator{f: f, syntax: syntax, placer: &placer{reporter: newReporter(s, nil, 0, args[0]), f: &placeFlags{}}}
	n.file = args[0]
	symbol := ""
	if len(args) > 1 {
		symbol = args[1]
	}
	return a.write(c, func(out io.Writer) error {
		n.out = out
		n.options = c.options(a.terminal(c, a.out))
		return n.run(symbol)
	}, args[0])
}

// An annotator annotates a function of a recording.
type annotator struct {
	*placer
	f       *annotateFlags
	syntax  disasm.Syntax
	out     io.Writer
	options report.Options
	notes   []counts.Note
	col     int // by which parts of the code are compared
}

// run annotates the function that a symbol names, "" for the hottest one.
func (n *annotator) run(symbol string) error {
	want, err := parseSymbol(symbol)
	if err != nil {
		return err
	}
	by := counts.Function
	if want.byPlace() {
		by = counts.Instruction // to find what has an address or a line
	}
	t, err := n.table(samples.Options{By: by})
	if err != nil {
		return err
	}
	if isSimulated(n.kind) && (want.address || n.f.assembly) {
		return usageError("%s has lines and no instructions", n.file)
	}
	if err := n.settle(t); err != nil {
		return err
	}
	t = n.withWhole(t)
	if n.flat == "" {
		if err := n.s.checkNodes(); err != nil {
			return err
		}
	}
	n.col = n.clock(t)
	n.notes = slices.Clone(t.Notes)
	place, err := want.find(t, n.col)
	if err != nil {
		return inputError(fmt.Errorf("%s: %w", n.file, err))
	}
	if symbol == "" {
		n.notes = append(n.notes, counts.Notef("no SYMBOL was given: %s has the most %s", functionName(place), n.clockName(t, n.col)))
	}
	if isSimulated(n.kind) {
		return n.lines(t, place)
	}
	r, err := code.Open(n.file, n.f.symbols)
	if err != nil {
		return inputError(err)
	}
	defer r.Close()
	return n.annotate(r, t, place, want)
}

// lines prints the lines of a function from a simulator's file.
func (n *annotator) lines(t *counts.Table, place *counts.Code) error {
	byLine, err := n.table(samples.Options{By: counts.Line})
	if err != nil {
		return err
	}
	opts := annotate.Options{Clock: n.col, Retired: -1, Run: slices.Clone(t.Row(0))}
	if n.flat == "" {
		opts.Method = n.s.method
	}
	listing := &annotate.Listing{Function: place.Function, Module: place.Module, ByLine: true}
	annotated, err := annotate.New(n.withWhole(byLine), listing, opts)
	if err != nil {
		return inputError(fmt.Errorf("%s: %w", n.file, err))
	}
	return n.print(t, annotated, newSourceFiles(n.f, ""))
}

// table reads the recording, or the file of a simulator, whose places are lines at
// most.
func (n *annotator) table(o samples.Options) (*counts.Table, error) {
	o.Symbols = n.f.symbols
	r, closeAll, err := simulated(n.f.symbols.Root, n.file, min(o.By, counts.Line), counts.By(0).With(counts.Function), nil)
	if r == nil && err == nil {
		r, closeAll, err = samples.Open(n.file, o)
	}
	if err != nil {
		return nil, inputError(err)
	}
	defer closeAll()
	if !r.Next() {
		return nil, inputError(fmt.Errorf("%w; annotate needs samples, as perf record takes them", r.Err()))
	}
	n.kind = r.Kind()
	return r.Table().Clone(), nil
}

// annotate prints the function that a place is in.
func (n *annotator) annotate(r *code.Reader, t *counts.Table, place *counts.Code, want *wanted) error {
	listing, f := n.list(r, place, want)
	run := slices.Clone(t.Row(0))
	insts, err := n.table(samples.Options{By: counts.Instruction, Filter: samples.Filter{
		Modules: []string{place.Module}, Addresses: []samples.Range{{From: listing.Start, To: listing.End - 1}}}})
	if err != nil {
		return err
	}
	for _, note := range insts.Notes { // such as that samples stand behind their instructions
		if !slices.Contains(n.notes, note) && note.Kind != counts.NoteFiltered {
			n.notes = append(n.notes, note)
		}
	}
	opts := annotate.Options{Clock: n.col, Run: run}
	if n.flat == "" {
		opts.Method = n.s.method
	}
	opts.Exact = exact(insts, r.Events())
	opts.Retired = n.retired(insts, opts.Exact)
	if f != nil && listing.Graph != nil {
		if err := n.branches(r, f, listing, &opts); err != nil {
			return err
		}
	}
	annotated, err := annotate.New(insts, listing, opts)
	if err != nil {
		return inputError(fmt.Errorf("%s: %w", n.file, err))
	}
	program := ""
	if f != nil {
		program = r.Status(f.File).Path
	}
	return n.print(t, annotated, newSourceFiles(n.f, program))
}

// print prints what was annotated.
func (n *annotator) print(t *counts.Table, annotated *annotate.Code, sources *sourceFiles) error {
	return report.Write(n.out, n.s.c.format, render.Annotation{
		Header: n.s.header(n.kind, []string{n.file}), Code: annotated, What: n.what(&t.Columns[n.col]), Label: t.Label, Flat: n.flat, Notes: n.notes,
		Source: n.f.lines, Assembly: n.f.assembly, Full: n.f.full, Text: sources.line, TextNotes: sources.notes,
	}, n.options)
}

// list lists a function, or what of it is wanted. Where its code is not to be had
// the addresses remain.
func (n *annotator) list(r *code.Reader, place *counts.Code, want *wanted) (*annotate.Listing, *profile.Function) {
	bare := &annotate.Listing{Function: place.Function, Module: place.Module, BuildID: place.BuildID, End: ^uint64(0)}
	if want.to > 0 {
		bare.Start, bare.End, bare.Part = want.from, want.to, true
	}
	f, err := r.Function(place)
	if err == nil {
		var l *code.Listing
		if l, err = r.List(f, n.syntax); err == nil {
			out := annotate.NewListing(l, want.from, want.to)
			if s := r.Status(f.File); !s.Verified && s.Path != "" && place.BuildID == "" {
				out.Notes = append(out.Notes, fmt.Sprintf("the recording has no build id of %s: the code is that of %s as it is now", place.Module, s.Path))
			}
			return out, f
		}
	}
	bare.Notes = []string{fmt.Sprintf("the code of %s is not to be had, so there are only addresses: %v", functionName(place), err)}
	return bare, nil
}

// branches adds the branch stacks of a recording.
func (n *annotator) branches(r *code.Reader, f *profile.Function, l *annotate.Listing, o *annotate.Options) error {
	b := flow.NewBranches(l.Graph)
	s, err := r.Branches(f, b, n.takenBranches)
	if err != nil {
		return inputError(err)
	}
	o.Branches, o.Relative = b, !s.Taken
	return nil
}

// takenBranches says whether an event counts the branches that are taken, which are
// those that branch stacks hold.
func (n *annotator) takenBranches(event string) bool {
	return model.RoleTakenBranches.Has(event, n.s.events)
}

// exact says of each event whether its samples name the instruction that caused
// them, as perf's :pp asks for. With :p it is one near it.
func exact(t *counts.Table, events []*perfdata.Event) []bool {
	list := make([]bool, len(t.Columns))
	for i, c := range t.Columns {
		list[i] = slices.ContainsFunc(events, func(e *perfdata.Event) bool { return e.Name == c.Event && e.Precise > 1 })
	}
	return list
}

// retired returns the column that counts retired instructions, -1 if there is none;
// of several one that is sampled precisely.
func (n *annotator) retired(t *counts.Table, exact []bool) int {
	col := -1
	for i, c := range t.Columns {
		if model.RoleRetired.Has(c.Event, n.s.events) && t.Cell(0, i).Samples > 0 && (col < 0 || exact[i] && !exact[col]) {
			col = i
		}
	}
	return col
}
