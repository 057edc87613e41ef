package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cyclestack/cyclestack/annotate"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/profile/disasm"
	"github.com/cyclestack/cyclestack/profile/flow"
	"github.com/cyclestack/cyclestack/profile/object"
	"github.com/cyclestack/cyclestack/report"
	"github.com/cyclestack/cyclestack/source/code"
	"github.com/cyclestack/cyclestack/source/perfdata"
	"github.com/cyclestack/cyclestack/source/samples"
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
	flags.StringVar(&f.symbols.Root, "sysroot", "", "`DIRECTORY` under which the recorded programs, their debug files and sources are")
	flags.StringVar(&f.symbols.Root, "symfs", "", "the same, as perf calls it")
	flags.StringArrayVar(&f.source, "source-path", nil, "another `DIRECTORY` to look for sources in, by their paths, parts of them or names (may be repeated)")
	flags.StringVar(&f.symbols.Vmlinux, "vmlinux", "", "kernel with symbols, a `FILE`")
	flags.StringVar(&f.symbols.Kallsyms, "kallsyms", "", "copy of /proc/kallsyms of the machine that was recorded, a `FILE`")
	c.addOutput(cmd, report.AnnotateFormats...)
	return cmd
}

func (a *app) runAnnotate(c *common, f *annotateFlags, args []string) error {
	if err := c.check(report.AnnotateFormats...); err != nil {
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
	n := &annotator{f: f, file: args[0], syntax: syntax,
		placer: &placer{reporter: newReporter(s, nil, 0, args[0]), f: &placeFlags{}}}
	n.placer.file = n.file
	symbol := ""
	if len(args) > 1 {
		symbol = args[1]
	}
	return a.write(c, func(out io.Writer) error {
		o := report.AnnotateOptions{Options: c.options(a.terminal(c, a.out)), Source: f.lines, Assembly: f.assembly, Full: f.full}
		return n.run(c.format, out, symbol, o)
	}, args[0])
}

// An annotator annotates a function of a recording.
type annotator struct {
	*placer
	f      *annotateFlags
	file   string
	syntax disasm.Syntax
	flat   string
	notes  []string
	clock  int
}

// run annotates the function that a symbol names, "" for the hottest one.
func (n *annotator) run(format string, out io.Writer, symbol string, o report.AnnotateOptions) error {
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
	if isSimulated(n.kind) && (want.address || o.Assembly) {
		return usageError("%s has lines and no instructions", n.file)
	}
	if n.flat, err = n.settle(t); err != nil {
		return err
	}
	t = n.withWhole(t)
	if p := n.s.c.nodes; p != "" && n.flat == "" && !report.Matches(n.s.model, p) {
		return usageError("--nodes %s: no node of %s matches (cyclestack models --cpu %s prints the tree)", p, n.s.model.Name, n.s.cpu.Name)
	}
	n.clock = n.placer.clock(t)
	n.notes = slices.Clone(t.Notes)
	place, err := want.find(t, n.clock)
	if err != nil {
		return inputError(fmt.Errorf("%s: %w", n.file, err))
	}
	if symbol == "" {
		n.notes = append(n.notes, fmt.Sprintf("no SYMBOL was given: %s has the most %s", functionName(place), n.placer.clockName(t, n.clock)))
	}
	if isSimulated(n.kind) {
		return n.lines(t, place, format, out, o)
	}
	r, err := code.Open(n.file, n.f.symbols)
	if err != nil {
		return inputError(err)
	}
	defer r.Close()
	return n.annotate(r, t, place, want, format, out, o)
}

// clockName is what places are compared by, in words.
func (p *placer) clockName(t *counts.Table, col int) string {
	if what := p.what(&t.Columns[col]); what != "" {
		return what
	}
	return t.Columns[col].Event
}

// withWhole adds what all nodes are parts of to the counts of a simulator, which
// counts no cycles.
func (n *annotator) withWhole(t *counts.Table) *counts.Table {
	if isSimulated(n.kind) && n.flat == "" {
		if whole := n.s.method.WithWhole(t, wholeEvent); whole != nil {
			return whole
		}
	}
	return t // whose first event then stands for it
}

// lines prints the lines of a function from a simulator's file.
func (n *annotator) lines(t *counts.Table, place *counts.Code, format string, out io.Writer, o report.AnnotateOptions) error {
	byLine, err := n.table(samples.Options{By: counts.Line})
	if err != nil {
		return err
	}
	opts := annotate.Options{Clock: n.clock, Retired: -1, Run: slices.Clone(t.Row(0))}
	if n.flat == "" {
		opts.Method = n.s.method
	}
	listing := &annotate.Listing{Function: place.Function, Module: place.Module, ByLine: true}
	annotated, err := annotate.New(n.withWhole(byLine), listing, opts)
	if err != nil {
		return inputError(fmt.Errorf("%s: %w", n.file, err))
	}
	return n.print(t, annotated, newSourceFiles(n.f, ""), format, out, o)
}

// table reads the recording, or the file of a simulator, whose places are lines at
// most.
func (n *annotator) table(o samples.Options) (*counts.Table, error) {
	o.Symbols = n.f.symbols
	r, closeAll, err := simulated(n.file, min(o.By, counts.Line))
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
func (n *annotator) annotate(r *code.Reader, t *counts.Table, place *counts.Code, want *wanted, format string, out io.Writer, o report.AnnotateOptions) error {
	listing, f := n.list(r, place, want)
	run := slices.Clone(t.Row(0))
	insts, err := n.table(samples.Options{By: counts.Instruction, Filter: samples.Filter{
		Modules: []string{place.Module}, Addresses: []samples.Range{{From: listing.Start, To: listing.End - 1}}}})
	if err != nil {
		return err
	}
	for _, note := range insts.Notes { // such as that samples stand behind their instructions
		if !slices.Contains(n.notes, note) && !strings.HasPrefix(note, "after filtering") {
			n.notes = append(n.notes, note)
		}
	}
	opts := annotate.Options{Clock: n.clock, Run: run}
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
	return n.print(t, annotated, newSourceFiles(n.f, program), format, out, o)
}

// print prints what was annotated.
func (n *annotator) print(t *counts.Table, annotated *annotate.Code, sources *sourceFiles, format string, out io.Writer, o report.AnnotateOptions) error {
	o.Text, o.TextNotes = sources.line, sources.notes
	h := report.AnnotateHeader{Header: n.s.header(n.kind, []string{n.file}), What: n.placer.what(&t.Columns[n.clock]), Label: t.Label, Flat: n.flat, Notes: n.notes}
	return report.Annotate(format, out, h, annotated, o)
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
		var l *profile.Listing
		if l, err = r.List(f, n.syntax); err == nil {
			out := annotate.FromProfile(l, want.from, want.to)
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
	name := strings.ToUpper(event)
	if e, ok := n.s.events.Lookup(event); ok {
		name = strings.ToUpper(e.Name)
	}
	return strings.Contains(name, "NEAR_TAKEN") || strings.Contains(name, "BRN_TKN") || strings.Contains(name, "BRANCHES_TAKEN")
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
		if n.isInstructions(c.Event) && t.Cell(0, i).Samples > 0 && (col < 0 || exact[i] && !exact[col]) {
			col = i
		}
	}
	return col
}

// isInstructions says whether an event counts retired instructions.
func (n *annotator) isInstructions(event string) bool {
	if ref, err := model.ParseEvent(event); err == nil {
		switch strings.ToUpper(ref.Name) {
		case "INSTRUCTIONS", "INST_RETIRED.ANY", "INST_RETIRED.ANY_P", "INST_RETIRED.PREC_DIST", "INST_RETIRED", "EX_RET_INSTR", "PM_INST_CMPL", "PM_RUN_INST_CMPL":
			return true
		}
	}
	want, known := n.s.events.Lookup("instructions")
	e, ok := n.s.events.Lookup(event)
	return known && ok && e == want
}

// functionName is a function and its module.
func functionName(c *counts.Code) string {
	name := c.Function
	if name == "" {
		name = "[unknown]"
	}
	return name + " (" + c.Module + ")"
}

// A wanted is what a SYMBOL asks for.
type wanted struct {
	text     string
	module   string
	name     string
	from, to uint64 // addresses; to is 0 without a range
	address  bool
	file     string
	line     int
}

// parseSymbol reads a SYMBOL.
func parseSymbol(text string) (*wanted, error) {
	w := &wanted{text: text, name: text}
	if text == "" {
		return w, nil
	}
	if i := strings.LastIndex(text, ":"); i > 0 && i < len(text)-1 && text[i-1] != ':' && !strings.HasSuffix(text, ")") {
		head, tail := text[:i], text[i+1:]
		if n, err := strconv.Atoi(tail); err == nil && n > 0 {
			w.file, w.line = head, n
			return w, nil
		}
	}
	// The colon behind a module; those of C++ come in twos.
	if head, tail, ok := strings.Cut(text, ":"); ok && head != "" && tail != "" && !strings.HasPrefix(tail, ":") {
		w.module, w.name = head, tail
	}
	if !strings.HasPrefix(w.name, "0x") {
		return w, nil
	}
	w.address = true
	from, to, isRange := strings.Cut(w.name, "-")
	var err error
	if w.from, err = strconv.ParseUint(from, 0, 64); err != nil {
		return nil, usageError("%s: not an address", text)
	}
	if isRange {
		if w.to, err = strconv.ParseUint(to, 0, 64); err != nil || w.to <= w.from {
			return nil, usageError("%s: not a range of addresses", text)
		}
	}
	return w, nil
}

// byPlace says whether it is found by an address or a line.
func (w *wanted) byPlace() bool { return w.address || w.line > 0 }

// A candidate is a function with samples.
type candidate struct {
	code  *counts.Code
	value float64
}

// find returns the function that is wanted: a place in it.
func (w *wanted) find(t *counts.Table, clock int) (*counts.Code, error) {
	list := w.candidates(t, clock)
	slices.SortStableFunc(list, func(a, b candidate) int {
		switch {
		case a.value > b.value:
			return -1
		case a.value < b.value:
			return 1
		}
		return strings.Compare(functionName(a.code), functionName(b.code))
	})
	switch {
	case w.text == "":
		for _, c := range list {
			if c.code.Function != "" {
				return c.code, nil
			}
		}
		if len(list) > 0 {
			return list[0].code, nil
		}
		return nil, errors.New("no samples are in any code")
	case w.byPlace():
		if len(list) == 0 {
			return nil, fmt.Errorf("no samples at %s", w.text)
		}
		if w.address && len(list) > 1 && w.module == "" {
			return nil, w.several(list, t, clock)
		}
		return list[0].code, nil
	}
	for _, match := range w.ways() {
		found := slices.DeleteFunc(slices.Clone(list), func(c candidate) bool { return !match(c.code.Function) })
		switch {
		case len(found) == 1:
			return found[0].code, nil
		case len(found) > 1:
			return nil, w.several(found, t, clock)
		}
	}
	return nil, w.nothing(list, t, clock)
}

// ways are those in which a name can mean a function, from the strictest on.
func (w *wanted) ways() []func(string) bool {
	plain := object.Demangle(w.name, false)
	if i := strings.Index(plain, "("); i > 0 && strings.HasSuffix(plain, ")") {
		plain = plain[:i]
	}
	return []func(string) bool{
		func(s string) bool { return s == w.name || s == "" && w.name == "[unknown]" },
		func(s string) bool { return s == plain },
		func(s string) bool { return strings.Contains(s, w.name) },
		func(s string) bool { return strings.Contains(strings.ToLower(s), strings.ToLower(w.name)) },
	}
}

// candidates are the functions with samples: of the module that is named, and with
// the address or the line.
func (w *wanted) candidates(t *counts.Table, clock int) []candidate {
	type key struct {
		module, id, function string
		addr                 uint64
	}
	at := map[key]int{}
	var list []candidate
	for row := 1; row < len(t.Scopes); row++ {
		c := t.Scopes[row].Code
		if c == nil || c.Module == "" || w.module != "" && c.Module != w.module && path.Base(w.module) != c.Module {
			continue
		}
		k := key{c.Module, c.BuildID, c.Function, c.Addr}
		if w.byPlace() {
			if !w.has(c) {
				continue
			}
			k.addr = 0
		}
		i, ok := at[k]
		if !ok {
			i = len(list)
			at[k] = i
			list = append(list, candidate{code: c})
		}
		list[i].value += t.Cell(row, clock).Value
	}
	return list
}

// has says whether an instruction is at the address or line that is wanted.
func (w *wanted) has(c *counts.Code) bool {
	switch {
	case w.line > 0:
		return c.Line == w.line && (c.File == w.file || strings.HasSuffix(c.File, "/"+strings.TrimPrefix(w.file, "./")))
	case w.to > 0:
		return c.Addr >= w.from && c.Addr < w.to
	}
	return c.Addr == w.from
}

// A message names so many functions, and so much of the name of each.
const (
	candidatesShown = 8
	candidateWidth  = 70
)

func (w *wanted) several(list []candidate, t *counts.Table, clock int) error {
	return fmt.Errorf("%s is the name, or a part of the names, of %d functions: %s", w.text, len(list), candidateNames(list, t, clock))
}

func (w *wanted) nothing(list []candidate, t *counts.Table, clock int) error {
	if len(list) == 0 {
		return fmt.Errorf("no samples in %s", w.module)
	}
	return fmt.Errorf("no samples in a function called %s (one that was inlined belongs to those that call it); the most are in %s", w.text, candidateNames(list, t, clock))
}

// candidateNames lists functions as one can name them.
func candidateNames(list []candidate, t *counts.Table, clock int) string {
	total := t.Cell(0, clock).Value
	var names []string
	for i, c := range list {
		if i == candidatesShown {
			names = append(names, fmt.Sprintf("%d more", len(list)-i))
			break
		}
		name := c.code.Module + ":" + c.code.Function
		same := func(o candidate) bool {
			return o.code.Module == c.code.Module && o.code.Function == c.code.Function && o.code != c.code
		}
		if slices.ContainsFunc(list, same) || c.code.Function == "" {
			name = fmt.Sprintf("%s:%#x", c.code.Module, c.code.Addr)
		}
		if r := []rune(name); len(r) > candidateWidth {
			name = string(r[:candidateWidth]) + "…"
		}
		names = append(names, fmt.Sprintf("%s (%.1f %%)", name, 100*c.value/total))
	}
	return strings.Join(names, ", ")
}

// A sourceFiles reads the lines of sources.
type sourceFiles struct {
	sources *profile.Sources
	root    string
	dirs    []string
	built   time.Time // when the program was; zero if that is not known
	paths   map[string]string
	newer   []string // sources that have changed since
}

// newSourceFiles returns the sources of a program, which is a file or "".
func newSourceFiles(f *annotateFlags, program string) *sourceFiles {
	s := &sourceFiles{sources: profile.NewSources(""), root: f.symbols.Root, dirs: f.source, paths: map[string]string{}}
	if info, err := os.Stat(program); err == nil {
		s.built = info.ModTime()
	}
	return s
}

// unpacking is by how much sources can be newer than a program that they came with.
const unpacking = time.Minute

// line returns a line of a source file.
func (s *sourceFiles) line(file string, line int) (string, error) {
	name, ok := s.paths[file]
	if !ok {
		name = s.find(file)
		s.paths[file] = name
		if info, err := os.Stat(name); err == nil && !s.built.IsZero() && info.ModTime().After(s.built.Add(unpacking)) {
			s.newer = append(s.newer, name)
		}
	}
	return s.sources.Line(name, line)
}

// notes says which sources are not those of the program.
func (s *sourceFiles) notes() []string {
	var out []string
	for _, name := range s.newer {
		out = append(out, name+" is newer than the program: its lines may not be those that were compiled")
	}
	return out
}

// find returns the path of a source: as the compiler wrote it under the root, or
// under one of the directories, with as much of its path as is there.
func (s *sourceFiles) find(file string) string {
	written := file
	if filepath.IsAbs(file) {
		written = absolute(filepath.Join(s.root, filepath.Clean(file)))
		if isFile(written) {
			return written
		}
	}
	parts := strings.Split(strings.TrimPrefix(filepath.Clean("/"+file), "/"), "/")
	for _, dir := range s.dirs {
		for i := range parts {
			name := filepath.Join(append([]string{dir}, parts[i:]...)...)
			if isFile(name) {
				return absolute(name)
			}
		}
	}
	return written
}

// absolute is the path from the root, or the name if that cannot be found out.
func absolute(name string) string {
	if abs, err := filepath.Abs(name); err == nil {
		return abs
	}
	return name
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}
