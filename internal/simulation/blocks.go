package simulation

import (
	"github.com/cyclestack/cyclestack/internal/disasm"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/limits"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/pipeline"
)

// A Block is code that is executed again and again.
type Block = pipeline.Block

// A Step is an instruction on a path through code.
type Step = pipeline.Step

// An Analysis says how long an execution of a block takes, and what limits it.
type Analysis = limits.Analysis

// The parts of an [Analysis].
type (
	Limit       = limits.Limit
	LimitKind   = limits.Kind
	ChainLink   = limits.Link
	Instruction = limits.Instruction
	Trust       = pipeline.Trust
	Traits      = pipeline.Traits
	// A Freedom is what a core need not wait for.
	Freedom = pipeline.Freedom
)

// The kinds of limits.
const (
	FrontEnd      = limits.FrontEnd
	TakenBranches = limits.Branches
	DispatchWidth = limits.Dispatch
	Retirement    = limits.Retirement
	PortGroup     = limits.Ports
	Divider       = limits.Divider
	Chain         = limits.Chain
	Forwarding    = limits.Forwarding
	Queue         = limits.Queue
	Conflicts     = limits.Conflicts
	Together      = limits.Together
)

// AnalysisOptions say how much to analyse.
type AnalysisOptions = limits.Options

// NewBlock decodes x86-64 code: a loop, or copies of the code one behind the other.
func NewBlock(code []byte, loop bool) (*Block, error) { return pipeline.NewBlock(code, loop) }

// NewPath returns a loop of an instruction set. Each of its iterations executes the same
// instructions.
func NewPath(arch disasm.Arch, steps []Step) (*Block, error) { return pipeline.NewPath(arch, steps) }

// Analyse executes a block on a core's model until its time per execution is steady, and finds
// what limits it.
func Analyse(c *Core, b *Block, o AnalysisOptions) *Analysis { return limits.Analyse(c, b, o) }

// TypicalCore is the name of the core of processors without a model of their own.
const TypicalCore = pipeline.GenericCore

// ModelledCore returns the model of the core of a processor, as [CoreOf] does, on every
// machine.
func ModelledCore(cpu string) *Core { return pipeline.CoreOf(cpu) }

// CoreNamed returns the model of a core by its own name; nil if there is none.
func CoreNamed(name string) *Core { return pipeline.CoreNamed(name) }

// A Picture is the way of micro-ops through the pipeline.
type Picture = limits.Picture

// A PictureRow is a micro-op of a [Picture].
type PictureRow = limits.Row

// The kinds of micro-ops.
const (
	Computes      = pipeline.Computes
	LoadsData     = pipeline.LoadsData
	StoresAddress = pipeline.StoresAddress
	StoresData    = pipeline.StoresData
)

// Trace returns what happens in some iterations of a block, from an empty pipeline on.
func Trace(c *Core, b *Block, iterations int) *Picture { return limits.Trace(c, b, iterations) }

// An Analyser analyses blocks on a core, one after the other.
type Analyser = limits.Analyser

// NewAnalyser returns an analyser for a core.
func NewAnalyser(c *Core) *Analyser { return limits.New(c) }
