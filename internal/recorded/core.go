package recorded

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/accounting"
	"github.com/cyclestack/cyclestack/internal/annotate"
	"github.com/cyclestack/cyclestack/internal/core"
	"github.com/cyclestack/cyclestack/internal/disasm"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/flow"
	"github.com/cyclestack/cyclestack/internal/render"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/internal/simulation"
	"github.com/cyclestack/cyclestack/internal/source/code"
	"github.com/cyclestack/cyclestack/internal/source/samples"
	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/source"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// CoreOptions are those of the core model's view of a recording.
type CoreOptions struct {
	Function string // only this one; "" is every hot one
	Loop     int    // only this loop of the function; 0 is every one
	Syntax   disasm.Syntax
	Symbols  profile.Config
	Cores    []*simulation.Core // none: that of the recording's processor
	All      bool               // every loop with samples
	nodes    bool               // the nodes of the method in each loop are wanted
	first    *samples.Reader    // that has read the recording already, or nil
	insts    *counts.Table      // its instructions, or nil
}

// A hotLoop is a loop before it is analysed.
type hotLoop struct {
	piece                  *core.Piece
	executed               *annotate.Loop // nil if it is not known how often
	cycles                 flow.Count     // of an iteration, from branch stacks or a simulation
	misses, mispredictions float64        // in an iteration; NaN if they are not known
}

// Core analyses the hottest loops of the first recording. It sets the options' cores, if
// there are none.
func (r *Recordings) Core(o *CoreOptions) (*core.Document, error) {
	defer openOnce(&o.Symbols)()
	p := &coreReport{o: o}
	p.annotator = annotator{placeReport: placeReport{Recordings: r, o: &PlaceOptions{}, file: r.Names[0]}, a: &AnnotateOptions{Symbols: o.Symbols, Syntax: o.Syntax}}
	t, err := p.instructions()
	if err != nil {
		return nil, err
	}
	if err := p.resolve(t); err != nil {
		return nil, err
	}
	t = p.withWhole(t)
	p.col = accounting.Clock(p.method, t)
	p.cores(t)
	hot := p.hot()
	list := hot.Functions(t, p.col)
	if len(list) == 0 {
		return nil, fault.Inputf("%s: no samples are in %s", p.file, cmp.Or(o.Function, "known functions"))
	}
	var loops []*hotLoop
	if p.kind.Simulated {
		loops, err = p.simulatedLoops(t)
	} else {
		loops, err = p.sampledLoops(t, list)
	}
	if err != nil {
		return nil, err
	}
	return p.document(t, loops)
}

// A coreReport makes a document of the core model.
type coreReport struct {
	annotator
	o     *CoreOptions
	lost  []string // functions whose code was not found
	large []string // what has too much code for a function
}

// instructions reads the recording by instruction.
func (p *coreReport) instructions() (*counts.Table, error) {
	if p.o.insts != nil {
		p.in, p.kind = p.o.first, accounting.KindOf(p.o.first)
		return p.o.insts, nil
	}
	rec, err := p.recording(p.file)
	if err != nil {
		return nil, err
	}
	defer rec.Close()
	o := samples.Options{By: counts.Instruction, NoInline: true, Symbols: p.o.Symbols}
	in := rec.Samples(o)
	if rec.Simulated() {
		o.Within = counts.By(0).With(counts.Function)
		in = rec.SimulatedPlaces(o)
	}
	defer in.Close()
	if !in.Next() {
		if err := in.Err(); !errors.Is(err, perfdata.ErrFormat) {
			return nil, fault.As(fault.Input, err)
		}
		return nil, needsSamples(in.Err(), "annotate")
	}
	p.in, p.kind, p.timed = in, accounting.KindOf(in), timedBy(in)
	return in.Table().Clone(), nil
}

// timedBy returns the core that timed a simulation; nil for other recordings, and for a
// core that is not known here.
func timedBy(in source.PlaceReader) *simulation.Core {
	if s, ok := in.(interface{ Core() string }); ok {
		return simulation.CoreNamed(s.Core())
	}
	return nil
}

// cores finds the core of the recording's processor, if none was asked for. Code of other
// architectures is refused when it is read.
func (p *coreReport) cores(t *counts.Table) {
	if len(p.o.Cores) > 0 {
		return
	}
	c := p.modelled(t)
	if c.Name == simulation.TypicalCore {
		p.notes = append(p.notes, counts.Notef("the core of the recording's processor has no model: a typical one is used").With(counts.Fix{Action: counts.NameProcessor, Number: 1}))
	}
	p.o.Cores = []*simulation.Core{c}
}

// modelled returns the model of the core of a recording's processor. A simulation has
// timed its instructions with one.
func (p *placeReport) modelled(t *counts.Table) *simulation.Core {
	if p.timed != nil {
		return p.timed
	}
	if found, err := p.Processor(t, p.file, resolve.Request{}, nil); err == nil && found.CPU != nil {
		if p.Kept != nil {
			return core.HostCore(found.CPU.Name, p.Kept.Features)
		}
		return simulation.ModelledCore(found.CPU.Name)
	}
	return simulation.ModelledCore("")
}

// weightOf returns how often a block was executed, or else its samples by instruction.
func weightOf(found *annotate.Code) func(block int) float64 {
	return func(b int) float64 {
		blk := &found.Blocks[b]
		if v := blk.Executions.Value; found.Executions != "" && !math.IsNaN(v) {
			return v
		}
		return blk.Share / float64(blk.Last-blk.First+1)
	}
}

// inCore returns what the model of the core says of the loops of annotated code that have
// samples.
func (n *annotator) inCore(t *counts.Table, found *annotate.Code) []render.LoopInCore {
	const most = 8
	if n.code == nil || n.code.Arch != disasm.AMD64 || found.Graph == nil || found.Part {
		return nil
	}
	loops := &core.Loops{Listing: n.code, Graph: found.Graph, Weight: weightOf(found)}
	c := []*simulation.Core{n.modelled(t)}
	var list []render.LoopInCore
	for _, piece := range loops.Find() {
		if piece.Loop == 0 || found.Loops[piece.Loop-1].Row == 0 || len(list) == most {
			continue
		}
		if r, err := core.Limits(piece, c); err == nil {
			list = append(list, render.LoopInCore{Loop: piece.Loop - 1, Result: r})
		}
	}
	return list
}

// sampledLoops finds the loops of functions, with their samples.
func (p *coreReport) sampledLoops(t *counts.Table, list []*core.HotFunction) ([]*hotLoop, error) {
	rec, err := p.recording(p.file)
	if err != nil {
		return nil, err
	}
	defer rec.Close()
	r, err := p.codeOf(rec.Recording)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	found := make([]coreFunction, 0, len(list))
	for _, f := range list {
		fn, err := r.Function(&f.Code)
		if err != nil {
			p.lost = append(p.lost, f.Code.Function)
			continue
		}
		if fn.Size > code.MaxListing && p.o.Function == "" {
			p.large = append(p.large, f.Code.Function)
			continue
		}
		l, err := r.List(fn, p.o.Syntax)
		if err != nil {
			p.lost = append(p.lost, f.Code.Function)
			continue
		}
		if l.Arch != disasm.AMD64 && l.Arch != disasm.ARM64 {
			return nil, fault.Inputf("%s: instructions of amd64 and arm64 only are modelled, those of %s are of %s", p.file, f.Code.Module, l.Arch)
		}
		listing := annotate.NewListing(l, 0, 0)
		found = append(found, coreFunction{f, fn, l, listing, flow.NewBranches(listing.Graph)})
	}
	branches := make([]code.FunctionBranches, len(found))
	for i := range found {
		branches[i] = code.FunctionBranches{Function: found[i].fn, Branches: found[i].branches}
	}
	stacks, err := r.Branches(branches, p.takenBranches)
	if err != nil {
		return nil, fault.As(fault.Input, err)
	}
	exact := exact(t, r.Events())
	var loops []*hotLoop
	for i := range found {
		more, err := p.loopsOf(t, &found[i], stacks, exact)
		if err != nil {
			return nil, err
		}
		loops = append(loops, more...)
	}
	return loops, nil
}

// A coreFunction is a function with its code.
type coreFunction struct {
	hot      *core.HotFunction
	fn       *profile.Function
	code     *code.Listing
	listing  *annotate.Listing
	branches *flow.Branches
}

// loopsOf returns the loops of a function.
func (p *coreReport) loopsOf(t *counts.Table, f *coreFunction, stacks code.Stacks, exact []bool) ([]*hotLoop, error) {
	opts := annotate.Options{Clock: p.col, Run: slices.Clone(t.Row(0)), Exact: exact}
	opts.Retired = p.retired(t, exact)
	if f.branches.Samples() > 0 {
		opts.Branches, opts.Relative = f.branches, !stacks.Taken
	}
	if p.o.nodes && p.flat == "" {
		opts.Method, opts.LoopsOnly = p.method.Account, true
	}
	found, err := annotate.New(t, f.listing, opts)
	if err != nil {
		return nil, fault.Inputf("%s: %w", p.file, err)
	}
	loops := &core.Loops{Listing: f.code, Graph: f.listing.Graph, Weight: weightOf(found)}
	cycles := f.branches.Iterations()
	var list []*hotLoop
	for _, piece := range loops.Find() {
		h := &hotLoop{piece: piece, cycles: flow.Unknown, misses: math.NaN(), mispredictions: math.NaN()}
		piece.Weight, piece.Samples = found.Whole.OfRun, found.Whole.Samples
		if n := piece.Loop - 1; n >= 0 {
			h.executed, h.cycles = &found.Loops[n], cycles[n]
			piece.Weight, piece.Samples = found.Loops[n].OfRun, found.Loops[n].Samples
			piece.Nodes = nodeShares(found, &found.Loops[n].Part)
		}
		list = append(list, h)
	}
	return list, nil
}

// nodeShares returns the nodes of a method in a part of code, as shares of the run's whole.
func nodeShares(found *annotate.Code, part *annotate.Part) map[string]core.NodeShare {
	shares := map[string]core.NodeShare{}
	for i, f := range part.Figures {
		shares[found.Account.Model().Nodes[i].Name] = core.NodeShare{Value: f.Value * found.Whole.OfRun, Error: f.Error * found.Whole.OfRun}
	}
	return shares
}

// simulatedLoops finds the loops of functions that a simulator has executed.
func (p *coreReport) simulatedLoops(t *counts.Table) ([]*hotLoop, error) {
	run := core.Simulated{HotOptions: p.hot(), Table: t, Column: p.col, Symbols: p.o.Symbols, Syntax: p.o.Syntax}
	found, lost, err := run.Loops()
	if err != nil {
		return nil, fault.As(fault.Input, fmt.Errorf("%s: %w", p.file, err))
	}
	p.lost = append(p.lost, lost...)
	var loops []*hotLoop
	for _, l := range found {
		h := &hotLoop{piece: l.Piece, cycles: flow.Unknown, misses: l.Misses, mispredictions: l.Mispredictions}
		if !math.IsNaN(l.Cycles) {
			h.cycles = flow.Count{Value: l.Cycles, Variance: math.NaN(), Samples: 1}
		}
		loops = append(loops, h)
	}
	return loops, nil
}

// hot says which functions and loops are analysed.
func (p *coreReport) hot() core.HotOptions {
	return core.HotOptions{Function: p.o.Function, Loop: p.o.Loop, All: p.o.All}
}

// document analyses the hottest loops.
func (p *coreReport) document(t *counts.Table, loops []*hotLoop) (*core.Document, error) {
	hot := p.hot()
	loops, more := core.Hottest(&hot, loops, func(h *hotLoop) *core.Piece { return h.piece })
	d := &core.Document{Title: p.file, Of: cmp.Or(accounting.What(p.method, &t.Columns[p.col]), t.Columns[p.col].Event), More: more}
	for _, h := range loops {
		r, err := core.Analyse(h.piece, p.o.Cores)
		if err != nil {
			return nil, err
		}
		p.measured(t, d, r, h)
		d.Pieces = append(d.Pieces, r)
	}
	d.Notes = p.texts(p.notes)
	if len(p.large) > 0 {
		d.Notes = append(d.Notes, fmt.Sprintf("%s: code of more than 1 MB without symbols is no function, and its loops are not looked for", strings.Join(p.large, ", ")))
	}
	if len(p.lost) > 0 {
		d.Notes = append(d.Notes, p.say(fault.Errorf("the code of %s was not found: %s says where the programs are", strings.Join(p.lost[:min(3, len(p.lost))], ", "), fault.Name("sysroot"))))
	}
	if len(d.Pieces) > 0 && !slices.ContainsFunc(d.Pieces, func(r *core.Result) bool { return r.Measured != nil }) {
		d.Notes = append(d.Notes, "the cycles of an iteration are not measured here: that needs branch stacks, or precise samples of retired instructions and of cycles")
	}
	return d, nil
}

// measured adds the cycles of an iteration, if the recording has them.
func (p *coreReport) measured(t *counts.Table, d *core.Document, r *core.Result, h *hotLoop) {
	misses, mispredictions := h.misses, h.mispredictions
	m := &core.Measured{Cycles: math.NaN(), Error: math.NaN()}
	if l := h.executed; l != nil {
		for _, per := range l.PerIter {
			name := strings.ToLower(per.Event)
			switch {
			case per.Event == t.Columns[p.col].Event && d.Of == "cycles":
				m.Cycles, m.Error, m.How = per.Value, per.Error, "cycles divided by iterations"
			case strings.Contains(name, "mis") && strings.Contains(name, "br"):
				mispredictions = per.Value
			case strings.Contains(name, "miss"):
				misses = per.Value
			}
		}
	}
	if c := h.cycles; c.Samples > 0 {
		m.Cycles, m.Error, m.How = c.Value, c.Error(), "the cycles between branches in branch stacks"
		if p.kind.Simulated {
			m.Simulated, m.How = true, "simulated, with caches and branch prediction"
		}
	}
	if !math.IsNaN(m.Cycles) {
		r.Explain(m, misses, mispredictions)
	}
}
