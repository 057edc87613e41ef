package core

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/cyclestack/cyclestack/internal/disasm"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/simulation"
)

// A Document is what the model says of pieces of code.
type Document struct {
	Title  string // what the code is from
	Pieces []*Result
	More   int    // pieces that were left out
	Of     string // what the samples are of: "cycles"; "" without a recording
	Notes  []string
	Again  []string // the arguments that name the code, for next commands
}

// A Result is the analysis of a piece.
type Result struct {
	*Piece
	Cores    []*simulation.Analysis // the first one is the core that was asked for
	Measured *Measured              // nil if nothing was measured
	WhatIfs  []WhatIf
	Advice   []Advice

	block *simulation.Block
	core  *simulation.Core // of Main
}

// Main returns the analysis on the first core.
func (r *Result) Main() *simulation.Analysis { return r.Cores[0] }

// Measured is the cycles of an iteration as a recording has them.
type Measured struct {
	Cycles float64
	Error  float64 // half-width of the 95 % interval; NaN if it is not known
	How    string
	// Simulated says that it is a simulator's figure, with caches and branch prediction.
	Simulated bool
	// Why names the difference from the model, if it is larger than the error.
	Why string
}

// A WhatIf is the cycles of an iteration, if something were different.
type WhatIf struct {
	If     string
	Cycles float64
}

// Analyse analyses a piece on some cores, with what-ifs.
func Analyse(p *Piece, cores []*simulation.Core) (*Result, error) {
	r, err := Limits(p, cores)
	if err == nil && len(cores) > 0 {
		r.whatIf(cores[0])
	}
	return r, err
}

// Limits analyses a piece on some cores, without what-ifs.
func Limits(p *Piece, cores []*simulation.Core) (*Result, error) {
	block, err := p.block()
	if err != nil {
		return nil, err
	}
	r := &Result{Piece: p, block: block}
	for _, c := range cores {
		if arch := cmp.Or(p.Arch, disasm.AMD64); c.Arch != string(arch) {
			return nil, fault.Usagef("%s: its instructions are of %s, and %s is a core of %s: %s names another, such as %s", p.Name(), arch, c.Name, c.Arch, fault.Name("cpu"), example[arch])
		}
		r.Cores = append(r.Cores, simulation.Analyse(c, block, simulation.AnalysisOptions{Explain: true}))
	}
	if len(cores) > 0 {
		r.core = cores[0]
		r.advise()
	}
	return r, nil
}

// example is a processor of each instruction set that is modelled.
var example = map[disasm.Arch]string{disasm.AMD64: "amdzen4", disasm.ARM64: "neoverse-n1"}

// block returns the code for the model.
func (p *Piece) block() (*simulation.Block, error) {
	b, err := p.decoded()
	if err == nil && p.Same {
		b.Same()
	}
	return b, err
}

func (p *Piece) decoded() (*simulation.Block, error) {
	if p.Unrolled {
		var bytes []byte
		for i := range p.Insts {
			bytes = append(bytes, p.Insts[i].Code...)
		}
		return simulation.NewBlock(bytes, false)
	}
	steps := make([]simulation.Step, len(p.Insts))
	for i := range p.Insts {
		in := &p.Insts[i]
		steps[i] = simulation.Step{Inst: in.Inst, Code: in.Code, Taken: p.Taken[i]}
	}
	b, err := simulation.NewPath(cmp.Or(p.Arch, disasm.AMD64), steps)
	if err != nil {
		return nil, fault.Inputf("%s: %w", p.Name(), err)
	}
	return b, nil
}

// Name names a piece.
func (p *Piece) Name() string {
	switch {
	case p.Function == "" && p.Block != "":
		return p.Block
	case p.Function == "":
		return p.Module
	case p.Loop > 0:
		return fmt.Sprintf("%s, loop %d", p.Function, p.Loop)
	}
	return p.Function
}

// whatIf asks the model what the block would take without its largest limits.
func (r *Result) whatIf(c *simulation.Core) {
	a := r.Main()
	add := func(what string, core *simulation.Core, f simulation.Freedom) {
		if core == nil {
			return
		}
		n := simulation.Analyse(core, r.block, simulation.AnalysisOptions{Freedom: f})
		r.WhatIfs = append(r.WhatIfs, WhatIf{what, n.Cycles})
	}
	if i := r.broken(); i >= 0 {
		l := &a.Chain[i]
		add(fmt.Sprintf("without the dependence on %s", l.By), c, simulation.Freedom{Dependence: l.Dependence})
	}
	if i := slices.IndexFunc(a.Limits, func(l simulation.Limit) bool { return len(l.Ports) > 0 }); i >= 0 {
		l := &a.Limits[i]
		name := l.Ports[len(l.Ports)-1]
		if n := slices.Index(a.Ports, name); n >= 0 {
			add(fmt.Sprintf("with one more port like %s", name), c.WithPort(1<<n, name+"'"), simulation.Freedom{})
		}
	}
	if r.block.CrossesJumps() {
		add("with the microcode of 2019, for the jump at the end of 32 bytes", c.WithErratum(), simulation.Freedom{})
	}
	if slices.ContainsFunc(a.Limits, func(l simulation.Limit) bool { return l.Kind == simulation.Forwarding }) {
		add("if stores forwarded to every load", c, simulation.Freedom{Forwarding: true})
	}
}

// broken returns the link of the chain that waits for the iteration before, or -1 without
// a chain.
func (r *Result) broken() int {
	chain := r.Main().Chain
	for i := range chain {
		before := chain[(i+len(chain)-1)%len(chain)].Instruction
		if before >= chain[i].Instruction {
			return i
		}
	}
	return -1
}

// Explain compares a measurement with the model, and names what it may be that differs.
// Misses and mispredictions are those of an iteration, NaN if they are not known.
func (r *Result) Explain(m *Measured, misses, mispredictions float64) {
	r.Measured = m
	const tolerance = 0.1 // of the cycles
	over := m.Cycles - r.Main().Cycles
	slack := tolerance * m.Cycles
	if !math.IsNaN(m.Error) {
		slack = max(slack, m.Error)
	}
	switch {
	case math.Abs(over) <= slack:
	case over < 0:
		m.Why = "less than the model says: the path or the model is not right"
	case mispredictions > 0.01 && misses > 0.01:
		m.Why = fmt.Sprintf("%.2g cache misses and %.2g mispredicted branches in an iteration; the model has neither", misses, mispredictions)
	case misses > 0.01:
		m.Why = fmt.Sprintf("memory: %.2g cache misses in an iteration; the model has none", misses)
	case mispredictions > 0.01:
		m.Why = fmt.Sprintf("misprediction: %.2g mispredicted branches in an iteration; the model has none", mispredictions)
	default:
		m.Why = "not modelled: caches, mispredictions, other paths through the loop"
	}
}
