package core

import (
	"cmp"
	"errors"
	"math"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/disasm"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/object"
	"github.com/cyclestack/cyclestack/internal/simulation"
	"github.com/cyclestack/cyclestack/internal/sorting"
	"github.com/cyclestack/cyclestack/internal/source/code"
	"github.com/cyclestack/cyclestack/profile"
)

// Which functions and loops are hot.
const (
	hotFunctions = 12
	hotLoops     = 12
	hotLeast     = 0.005 // of the samples
)

// A HotFunction is a function with its places in a table by instruction.
type HotFunction struct {
	Code  counts.Code // of its hottest instruction
	Value float64
	Rows  []int
}

// HotOptions say which functions and loops are analysed.
type HotOptions struct {
	Function string // of this name, or with this part in it; "" are the hot ones
	Loop     int    // the number of a loop; 0 are all
	All      bool   // every loop with samples
}

// Functions returns the functions with the most samples of a column.
func (o *HotOptions) Functions(t *counts.Table, column int) []*HotFunction {
	of := map[counts.Code]*HotFunction{}
	var list []*HotFunction
	for row := 1; row < len(t.Scopes); row++ {
		c := t.Scopes[row].Code
		if c == nil || c.Function == "" || strings.HasPrefix(c.Module, "[") {
			continue
		}
		v := t.Cell(row, column).Value
		if !(v >= 0) || o.Function != "" && c.Function != o.Function && !strings.Contains(c.Function, o.Function) {
			continue
		}
		key := counts.Code{Module: c.Module, BuildID: c.BuildID, Function: c.Function}
		f := of[key]
		if f == nil {
			f = &HotFunction{}
			of[key] = f
			list = append(list, f)
		}
		f.Value += v
		f.Rows = append(f.Rows, row)
		if f.Code.Module == "" || v > t.Cell(f.Rows[0], column).Value {
			f.Code = *c
		}
	}
	sorting.Stable(list, func(a, b *HotFunction) int { return cmp.Compare(b.Value, a.Value) })
	if !o.All {
		list = list[:min(len(list), hotFunctions)]
	}
	list = slices.DeleteFunc(list, func(f *HotFunction) bool { return f.Value == 0 })
	least := hotLeast * t.Cell(0, column).Value
	return slices.DeleteFunc(list, func(f *HotFunction) bool { return f.Value < least && o.Function == "" })
}

// Hottest returns the hottest loops, hottest first, and how many more there are.
func Hottest[L any](o *HotOptions, loops []L, piece func(L) *Piece) (list []L, more int) {
	list = slices.DeleteFunc(loops, func(l L) bool {
		p := piece(l)
		return p.Weight < hotLeast && o.Function == "" || o.Loop > 0 && p.Loop != o.Loop
	})
	sorting.Stable(list, func(a, b L) int { return cmp.Compare(piece(b).Weight, piece(a).Weight) })
	if n := len(list) - hotLoops; n > 0 && !o.All {
		return list[:hotLoops], n
	}
	return list, 0
}

// A SimulatedLoop is a loop that a simulator has executed.
type SimulatedLoop struct {
	Piece *Piece
	// Of an iteration; NaN if they are not known.
	Cycles, Misses, Mispredictions float64

	of *Loops
}

// A Simulated is what a simulator counted of a program, by instruction.
type Simulated struct {
	HotOptions
	Table   *counts.Table // labelled by the program's command
	Column  int           // of the cycles
	Symbols profile.Config
	Syntax  disasm.Syntax

	image *program
}

// LoopEvents are the events that Loops needs: cycles without waits, executions, misses of the first
// level by loads, and mispredictions. They are columns of a kept simulation (docs/simulated.md).
var LoopEvents = []string{"Ct", "Ir", "D1mr", "Bcm"}

// open opens the program, once.
func (s *Simulated) open() error {
	if s.image != nil {
		return nil
	}
	name := ProgramOf(s.Table.Label, s.Symbols.Root)
	if name == "" {
		return fault.Inputf("the simulation does not say which program it is from")
	}
	var err error
	s.image, err = openProgram(name, s.Symbols)
	return err
}

// Close closes the program.
func (s *Simulated) Close() {
	if s.image != nil {
		s.image.close()
		s.image = nil
	}
}

// Counts reports whether Loops needs the counts of an instruction of a hot function of the program:
// others are in no innermost loop. The table has a label only, at first.
func (s *Simulated) Counts(addr uint64) bool {
	if s.open() != nil {
		return true
	}
	l, err := s.image.list(addr, s.Syntax)
	if err != nil {
		return true
	}
	g := l.Graph
	at := g.BlockAt(addr)
	if at < 0 || len(g.Loops) == 0 {
		return true
	}
	in := g.Blocks[at].Loop
	return in >= 0 && !l.outer[in]
}

// Loops finds the loops of hot functions. Lost are the functions without code.
func (s *Simulated) Loops() (loops []SimulatedLoop, lost []string, err error) {
	defer s.Close()
	if loops, lost, err = s.find(); err != nil {
		return nil, nil, err
	}
	for _, l := range loops {
		l.of.Describe(l.Piece)
	}
	return loops, lost, nil
}

// find is Loops without texts and lines.
func (s *Simulated) find() (loops []SimulatedLoop, lost []string, err error) {
	t := s.Table
	if err := s.open(); err != nil {
		return nil, nil, err
	}
	for _, f := range s.Functions(t, s.Column) {
		if f.Code.Module != s.image.file.Base() {
			lost = append(lost, f.Code.Function)
			continue
		}
		listing, err := s.image.list(f.Code.Addr, s.Syntax)
		if err != nil {
			lost = append(lost, f.Code.Function)
			continue
		}
		var of []map[uint64]float64
		for _, event := range LoopEvents {
			of = append(of, sums(t, f.Rows, slices.IndexFunc(t.Columns, func(c counts.Column) bool { return c.Event == event })))
		}
		clock, issued, ir, missed, wrong := sums(t, f.Rows, s.Column), of[0], of[1], of[2], of[3]
		g := listing.Graph
		weight := func(b int) float64 { return ir[g.Blocks[b].Start()] }
		all := &Loops{Listing: listing.Listing, Weight: weight, Plain: true}
		for _, piece := range all.Find() {
			l := SimulatedLoop{piece, math.NaN(), math.NaN(), math.NaN(), all}
			sum, m, w := 0.0, 0.0, 0.0
			for i := range piece.Insts {
				addr := piece.Insts[i].Addr
				sum, m, w = sum+clock[addr], m+missed[addr], w+wrong[addr]
				piece.Issued += issued[addr]
			}
			piece.Weight = sum / t.Cell(0, s.Column).Value
			if n := ir[piece.Insts[0].Addr]; n > 0 && piece.Loop > 0 {
				l.Cycles, l.Misses, l.Mispredictions = sum/n, m/n, w/n
			}
			loops = append(loops, l)
		}
	}
	return loops, lost, nil
}

// A program is a file with its symbols.
type program struct {
	object  *object.Object
	symbols *profile.Symbolizer
	file    *profile.File
	listed  []listed
}

// A listed is a function that was listed, or the error of that.
type listed struct {
	function *profile.Function
	*code.Listing
	err   error
	outer []bool // of its loops
}

func openProgram(name string, c profile.Config) (*program, error) {
	path, err := filepath.Abs(name)
	if err != nil {
		return nil, fault.Inputf("%s: %w", name, err)
	}
	o, err := object.Open(path, object.Options{})
	if err != nil {
		return &program{file: &profile.File{Name: path}}, nil // all of its code is lost
	}
	return &program{object: o, symbols: profile.NewSymbolizer(c), file: &profile.File{Name: path}}, nil
}

func (p *program) close() {
	if p.object != nil {
		_ = p.symbols.Close()
		_ = p.object.Close()
	}
}

// list returns the code of the function that an address is in.
func (p *program) list(addr uint64, syntax disasm.Syntax) (*listed, error) {
	if p.object == nil {
		return nil, errNoCode
	}
	for i := range p.listed {
		if l := &p.listed[i]; addr-l.function.Addr < l.function.Size {
			return l, l.err
		}
	}
	offset, ok := p.object.Offset(addr)
	if !ok {
		return nil, errNoCode
	}
	l := listed{function: p.symbols.Function(profile.Place{File: p.file, Offset: offset})}
	if l.Listing, l.err = code.Bare(p.symbols, l.function, syntax); l.err == nil && !modelled(l.Arch) {
		l.err = errNoCode
	}
	if l.err == nil {
		l.outer = outer(l.Graph)
	}
	p.listed = append(p.listed, l)
	return &p.listed[len(p.listed)-1], l.err
}

// errNoCode says that a function has no code that can be modelled.
var errNoCode = errors.New("there is no code of it")

// ProgramOf returns the file of a command's program below root: as PATH has it, with links followed,
// as simulators name what is executed. It is "" of no command.
func ProgramOf(command, root string) string {
	words := strings.Fields(command)
	if len(words) == 0 {
		return ""
	}
	name := words[0]
	if path, err := exec.LookPath(name); err == nil && filepath.Base(name) == name {
		name = path
	}
	name = filepath.Join(root, name)
	if path, err := filepath.EvalSymlinks(name); err == nil {
		name = path
	}
	return name
}

// Analyse analyses the hottest loops.
func (s *Simulated) Analyse(c *simulation.Core) ([]*Result, error) {
	defer s.Close()
	loops, _, err := s.find()
	if err != nil {
		return nil, err
	}
	loops, _ = Hottest(&s.HotOptions, loops, func(l SimulatedLoop) *Piece { return l.Piece })
	var list []*Result
	for _, l := range loops {
		l.of.Describe(l.Piece)
		r, err := Analyse(l.Piece, []*simulation.Core{c})
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, nil
}

// sums returns the counts of a column by address; none for column -1.
func sums(t *counts.Table, rows []int, column int) map[uint64]float64 {
	sum := map[uint64]float64{}
	for _, row := range rows {
		if column >= 0 {
			sum[t.Scopes[row].Code.Addr] += t.Cell(row, column).Value
		}
	}
	return sum
}

// coreNodes are the nodes for time in the core itself: those of the simulated account, of
// top-down analysis, and of the accounts of cycles. The model of the core says more of it.
var coreNodes = []string{"Issue", "Core_Bound", "Retiring", "Light_Operations", "Heavy_Operations", "Base", "Microcode_Sequencer",
	"Divider", "Ports_Utilization", "Ports_Utilized_0", "Ports_Utilized_1", "Ports_Utilized_2", "Ports_Utilized_3m", "Serializing_Operation",
	"FP_Arith", "FP_Scalar", "FP_Vector", "Int_Operations", "Memory_Operations", "Fused_Instructions", "Other_Light_Ops", "Few_Uops_Instructions",
	"Retired", "Unaccounted", "Stalls", "retiring", "retiring_fastpath", "backend_bound_cpu",
	"Useful_Dispatch", "Chain_Latency", "Port_Contention", "Divider_Busy", "Parts_And_Forwarding", "Other_Limits"}

// ExplainHotspots adds what the model says of the hottest loop of each place: where the account sees
// time in the core, and where nothing is known of the cause.
func ExplainHotspots(h *account.Hotspots, pieces []*Result) {
	if h == nil {
		return
	}
	for i := range h.Places {
		place := &h.Places[i]
		if place.Kernel || place.Function == "" || place.Cause != nil && !slices.Contains(coreNodes, place.Cause.Kind) {
			continue
		}
		at := slices.IndexFunc(pieces, func(r *Result) bool {
			return r.Loop > 0 && r.Function == place.Function && r.Module == place.Module
		})
		if at < 0 {
			continue
		}
		kind := InCore
		if place.Cause != nil {
			kind = place.Cause.Kind
		}
		place.Cause = pieces[at].Cause(kind)
	}
}
