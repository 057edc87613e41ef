package annotate_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/annotate"
	"github.com/cyclestack/cyclestack/internal/disasm"
	"github.com/cyclestack/cyclestack/internal/flow"
	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
)

// The columns of the tables, and what one sample stands for.
const (
	cycles = iota
	stalls
	misses
	retired
	columns
)

var (
	names   = [columns]string{"CPU_CLK_UNHALTED.CORE", "RS_UOPS_DISPATCHED.CYCLES_NONE", "MEM_LOAD_RETIRED.L2_LINE_MISS", "INST_RETIRED.ANY_P"}
	periods = [columns]float64{165e4, 165e4, 1e4, 165e4} // by the penalty of a miss, 165 cycles
)

// A fixture is a function of instructions of four bytes, and its samples.
type fixture struct {
	insts   []annotate.Inst
	samples map[uint64][columns]int
	bare    bool // without code
	exact   []bool
	stacks  []flow.Branch // the branches of a sample's stack, the last one first
	spare   *annotate.Code
}

// straight is a function of n instructions that ends with a return.
func straight(n int) *fixture {
	f := &fixture{samples: map[uint64][columns]int{}, exact: []bool{false, false, true, true}}
	for i := range n {
		f.insts = append(f.insts, annotate.Inst{Inst: disasm.Inst{Addr: uint64(4 * i), Len: 4}, Text: "nop", File: "/f.c", Line: 1 + i/10})
	}
	f.insts[n-1].Flow = disasm.Return
	return f
}

// loop makes a loop of some of the instructions.
func (f *fixture) loop(first, last int) *fixture {
	f.insts[last].Flow, f.insts[last].Target = disasm.CondJump, uint64(4*first)
	return f
}

func (f *fixture) call(i int) *fixture {
	f.insts[i].Flow, f.insts[i].Target = disasm.Call, 0x9000
	return f
}

func (f *fixture) sample(inst, column, n int) *fixture {
	s := f.samples[uint64(4*inst)]
	s[column] += n
	f.samples[uint64(4*inst)] = s
	return f
}

// table is the table that package samples would make.
func (f *fixture) table() *counts.Table {
	l := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("")}}
	for _, name := range names {
		l.Columns = append(l.Columns, counts.Column{Event: name})
	}
	for addr := range f.samples {
		s := counts.RunScope("")
		s.Kind, s.Code = counts.Instruction, &counts.Code{Module: "prog", Function: "f", Addr: addr}
		l.Scopes = append(l.Scopes, s)
	}
	t := counts.NewTable(l)
	for col := range columns {
		t.Cell(0, col).State = counts.Counted
	}
	for row := 1; row < len(l.Scopes); row++ {
		for col, n := range f.samples[l.Scopes[row].Code.Addr] {
			p, c := periods[col], t.Cell(row, col)
			*c = counts.Cell{State: counts.Counted, Value: float64(n) * p, Variance: float64(n) * p * p, Samples: int64(n)}
			if n == 0 {
				c.Variance = p * p
			}
			t.Cell(0, col).Value += c.Value
			t.Cell(0, col).Samples += c.Samples
		}
	}
	return t
}

func (f *fixture) annotate(t testing.TB) *annotate.Code {
	t.Helper()
	method, err := account.Load("core2", "core2-cycles", account.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l := &annotate.Listing{Function: "f", Module: "prog", End: uint64(4 * len(f.insts))}
	if !f.bare {
		l.Insts = f.insts
		var code []disasm.Inst
		for _, i := range f.insts {
			code = append(code, i.Inst)
		}
		l.Graph = flow.NewGraph(code, nil)
	}
	o := annotate.Options{Method: method, Clock: cycles, Retired: retired, Exact: f.exact, Spare: f.spare}
	if f.stacks != nil {
		o.Branches, o.Relative = flow.NewBranches(l.Graph), true
		o.Branches.Add(f.stacks, 1)
	}
	c, err := annotate.New(f.table(), l, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// verdict is that of the misses at an instruction.
func verdict(c *annotate.Code, inst int) annotate.Verdict {
	for i := range c.Insts {
		if c.Insts[i].Addr != uint64(4*inst) {
			continue
		}
		for k, cost := range c.Costs {
			if c.Account.Model().Nodes[cost.Node].Name == "L2_Miss" && c.Parts[i].Hidden != nil {
				return c.Parts[i].Hidden[k]
			}
		}
	}
	return annotate.None
}

// TestHidden has misses at instruction 20 of 100, and stalled cycles elsewhere. A sample of
// either stands for as many cycles.
func TestHidden(t *testing.T) {
	base := func() *fixture { return straight(100).sample(90, stalls, 100).sample(90, cycles, 100) }
	tests := []struct {
		name string
		f    *fixture
		want annotate.Verdict
	}{
		{"no event", base(), annotate.None},
		{"four misses and no stall are too few", base().sample(20, misses, 4), annotate.Few},
		{"five are enough", base().sample(20, misses, 5), annotate.Hidden},
		{"five at different instructions near each other", base().sample(20, misses, 1).sample(22, misses, 2).sample(24, misses, 2), annotate.Hidden},
		{"one stall for ten misses, which could be chance", base().sample(20, misses, 10).sample(21, stalls, 1), annotate.Hidden},
		{"two stalls for ten misses are more than a tenth", base().sample(20, misses, 10).sample(21, stalls, 2), annotate.Stalling},
		{"as many stalls as misses", base().sample(20, misses, 50).sample(21, stalls, 50), annotate.Stalling},
		{"a stall at the end of the window", base().sample(20, misses, 10).sample(36, stalls, 10), annotate.Stalling},
		{"a stall behind the window", base().sample(20, misses, 10).sample(37, stalls, 10), annotate.Hidden},
		{"blocks apart, and behind the window", base().loop(25, 30).loop(40, 42).sample(20, misses, 10).sample(41, stalls, 50), annotate.Hidden},
		{"blocks apart, and at the end of the window", base().loop(25, 30).sample(20, misses, 10).sample(36, stalls, 10), annotate.Stalling},
		{"a stall before a precise event", base().loop(10, 15).sample(20, misses, 10).sample(14, stalls, 10), annotate.Hidden},
		{"a stall before an event that is late", base().loop(10, 15).imprecise().sample(20, misses, 10).sample(14, stalls, 10), annotate.Stalling},
		{"in a loop what follows it is not near", base().loop(18, 22).sample(20, misses, 10).sample(25, stalls, 10), annotate.Hidden},
		{"in a loop with few trips it is", base().loop(18, 22).sample(20, misses, 10).sample(25, stalls, 10).trips(18, 22, 2), annotate.Stalling},
		{"in a loop that is left within ten windows it is", base().loop(18, 22).sample(20, misses, 10).sample(25, stalls, 10).trips(18, 22, 20), annotate.Stalling},
		{"in a loop that is left later it is not", base().loop(18, 22).sample(20, misses, 10).sample(25, stalls, 10).trips(18, 22, 40), annotate.Hidden},
		{"a call in the window", base().call(24).sample(20, misses, 10), annotate.HiddenSoFar},
		{"the end of the function in the window", straight(30).sample(2, stalls, 100).sample(2, cycles, 100).sample(20, misses, 10), annotate.HiddenSoFar},
		{"without code: bytes", base().withoutCode().sample(20, misses, 10).sample(37, stalls, 10), annotate.HiddenSoFar},
		{"without code: a stall within 64 bytes", base().withoutCode().sample(20, misses, 10).sample(36, stalls, 10), annotate.Stalling},
		{"without code: a stall before a precise event", base().withoutCode().sample(20, misses, 10).sample(14, stalls, 10), annotate.HiddenSoFar},
		{"without code: a stall before an event that is late", base().withoutCode().imprecise().sample(20, misses, 10).sample(14, stalls, 10), annotate.Stalling},
		{"no stall in the whole run: what one stands for is not known", straight(100).sample(20, misses, 100).sample(20, cycles, 5), annotate.Few},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := verdict(test.f.annotate(t), 20); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func (f *fixture) imprecise() *fixture   { f.exact = nil; return f }
func (f *fixture) withoutCode() *fixture { f.bare = true; return f }

// trips has samples of instructions that give a loop some trips on the average.
func (f *fixture) trips(first, last, n int) *fixture {
	for i := range f.insts {
		times := 40
		if i >= first && i <= last {
			times *= n
		}
		f.sample(i, retired, times)
	}
	return f
}

// TestHiddenSums has the part of the misses that is hidden, of parts and of all.
func TestHiddenSums(t *testing.T) {
	c := straight(100).loop(50, 60).sample(20, misses, 30).sample(80, misses, 10).sample(81, stalls, 20).sample(81, cycles, 100).annotate(t)
	var cost annotate.Cost
	for _, k := range c.Costs {
		if c.Account.Model().Nodes[k.Node].Name == "L2_Miss" {
			cost = k
		}
	}
	if want := 30 * 165e4 / (100 * 165e4); !(math.Abs(cost.Hidden-want) <= 1e-9) {
		t.Errorf("hidden %v, want %v", cost.Hidden, want)
	}
	if got := c.Whole.Figures[cost.Node]; !(math.Abs(got.Value-0.4) <= 1e-9) || !(math.Abs(got.Error-1.96*math.Sqrt(40)/100) <= 1e-4) || got.Samples != 40 || !got.Reliable {
		t.Errorf("the whole has %+v", got)
	}
	for _, l := range c.Lines {
		for k := range l.Hidden {
			if c.Costs[k].Node != cost.Node {
				continue
			}
			want := map[int]annotate.Verdict{3: annotate.Hidden, 9: annotate.Stalling}[l.Line]
			if l.Hidden[k] != want {
				t.Errorf("line %d: %q, want %q", l.Line, l.Hidden[k], want)
			}
		}
	}
}

// TestHiddenLine has a line of the source whose code is in two places: its verdict is that
// of nine tenths of its samples.
func TestHiddenLine(t *testing.T) {
	for _, test := range []struct {
		name           string
		hidden, stalls int // misses at instruction 20 without stalls, and at 70 with some
		left           int // at 98 without stalls, where the function ends
		want           annotate.Verdict
	}{
		{"all hidden", 20, 0, 0, annotate.Hidden},
		{"more than nine tenths hidden", 20, 2, 0, annotate.Hidden},
		{"less than nine tenths hidden", 20, 3, 0, annotate.Stalling},
		{"hidden as far as the function goes", 12, 0, 8, annotate.HiddenSoFar},
		{"some of it too few to tell", 8, 0, 3, annotate.Few},
	} {
		f := straight(100).sample(20, misses, test.hidden).sample(70, misses, test.stalls).sample(98, misses, test.left).sample(40, cycles, 100).sample(75, stalls, 50)
		for _, i := range []int{20, 70, 98} {
			f.insts[i].Line = 99
		}
		c := f.annotate(t)
		for _, l := range c.Lines {
			if l.Line != 99 {
				continue
			}
			for k, got := range l.Hidden {
				if c.Account.Model().Nodes[c.Costs[k].Node].Name == "L2_Miss" && got != test.want {
					t.Errorf("%s: got %q, want %q", test.name, got, test.want)
				}
			}
		}
	}
}

// TestErrors has the errors that the number of samples leaves to shares and figures.
func TestErrors(t *testing.T) {
	c := straight(100).sample(10, cycles, 100).sample(20, cycles, 20).sample(20, misses, 4).sample(30, cycles, 30).sample(30, misses, 3).sample(40, cycles, 50).annotate(t)
	l2, ok := c.Account.Node("L2_Miss")
	if !ok {
		t.Fatal("no node L2_Miss")
	}
	for _, test := range []struct {
		inst           int
		cycles, misses float64 // samples
		reliable       bool
	}{{10, 100, 0, false}, {20, 20, 4, true}, {30, 30, 3, false}, {40, 50, 0, false}} {
		p := &c.Parts[test.inst]
		if want := 1.959964 * math.Sqrt(test.cycles) / 200; !(math.Abs(p.Share-test.cycles/200) <= 1e-9) || !(math.Abs(p.Error-want) <= 1e-9) {
			t.Errorf("instruction %d: share %v ± %v, want %v ± %v", test.inst, p.Share, p.Error, test.cycles/200, want)
		}
		// What has no sample might have had one.
		f := p.Figures[l2]
		if want := 1.959964 * math.Sqrt(max(1, test.misses)) / 200; !(math.Abs(f.Value-test.misses/200) <= 1e-9) || !(math.Abs(f.Error-want) <= 1e-9) || f.Reliable != test.reliable {
			t.Errorf("instruction %d: misses %+v, want %v ± %v", test.inst, f, test.misses/200, want)
		}
	}
}

// TestOtherRows: rows of other code are not the listing's: another build's, another
// module's, and what lies outside of its addresses.
func TestOtherRows(t *testing.T) {
	f := straight(100).sample(3, cycles, 1).sample(4, cycles, 2).sample(7, cycles, 4).sample(8, cycles, 8)
	table := f.table()
	other := counts.NewTable(&counts.Layout{Columns: table.Columns, Scopes: slices.Clone(table.Scopes)})
	for row := range table.Scopes {
		copy(other.Row(row), table.Row(row))
	}
	l := &annotate.Listing{Function: "f", Module: "prog", Start: 4 * 4, End: 4 * 8}
	samples := func(t *counts.Table) int64 {
		c, err := annotate.New(t, l, annotate.Options{Clock: cycles, Retired: -1})
		if err != nil {
			return -1
		}
		return c.Whole.Samples
	}
	if got := samples(table); got != 6 {
		t.Errorf("%d samples, want 2 + 4", got)
	}
	for row := range other.Scopes {
		if code := other.Scopes[row].Code; code != nil && code.Addr == 4*4 {
			other.Scopes[row].Code = &counts.Code{Module: "prog", Function: "f", Addr: code.Addr, BuildID: "ab"}
		}
	}
	if got := samples(other); got != 4 {
		t.Errorf("%d samples, want 4 without those of another build", got)
	}
}

// TestLoops has the shares of nested loops, and their trips.
func TestLoops(t *testing.T) {
	f := straight(100).loop(20, 30).loop(15, 35).loop(50, 60).sample(25, cycles, 60).sample(17, cycles, 10).sample(55, cycles, 20).sample(90, cycles, 10)
	f.trips(15, 35, 3).trips(20, 30, 50).trips(50, 60, 100) // 120 samples each outside of them, 200, 2160 and 4080 inside
	want := map[int]struct{ share, inner, trips float64 }{  // by the first line
		2: {0.7, 0.1, 5.0 / 3}, 3: {0.6, 0.6, 54.0 / 5}, 6: {0.2, 0.2, 102.0 / 3},
	}
	c := f.annotate(t)
	if len(c.Loops) != len(want) {
		t.Fatalf("%d loops", len(c.Loops))
	}
	for _, l := range c.Loops {
		w := want[l.First]
		if !(math.Abs(l.Share-w.share) <= 1e-9) || !(math.Abs(l.Inner-w.inner) <= 1e-9) || !(math.Abs(l.Executed.Trips-w.trips) <= 0.05*w.trips) {
			t.Errorf("lines %d to %d: %v, %v of it in no other loop, %v trips; want %v", l.First, l.Last, l.Share, l.Inner, l.Executed.Trips, w)
		}
	}
}

// TestPerIteration has what events come to in an iteration: their error is that of both
// counts.
func TestPerIteration(t *testing.T) {
	c := straight(100).loop(20, 29).trips(20, 29, 3).sample(25, cycles, 50).sample(25, misses, 8).annotate(t)
	l := &c.Loops[0]
	it := l.Executed.Iterations // 120 samples at each of 10 instructions
	if want := 120 * periods[retired]; !(math.Abs(it.Value-want) <= 1e-6*want) {
		t.Fatalf("%v iterations, want %v", it.Value, want)
	}
	want := map[string]float64{names[cycles]: 50, names[misses]: 8, names[retired]: 1200}
	for _, p := range l.PerIter {
		n := want[p.Event]
		value := n * periods[slices.Index(names[:], p.Event)] / it.Value
		err := 1.959964 * value * math.Sqrt(1/n+it.Variance/(it.Value*it.Value))
		if !(math.Abs(p.Value-value) <= 1e-9*value) || !(math.Abs(p.Error-err) <= 1e-9*err) || p.Samples != int64(n) {
			t.Errorf("%s: %+v, want %v ± %v", p.Event, p, value, err)
		}
		delete(want, p.Event)
	}
	if len(want) > 0 {
		t.Errorf("nothing is known of %v", want)
	}
}

// TestScaledBranches has executions by branch stacks that stand for an unknown number:
// they are scaled so that the instructions that retired come out.
func TestScaledBranches(t *testing.T) {
	back := flow.Branch{From: 4 * 29, To: 4 * 20}
	f := straight(100).loop(20, 29).sample(25, retired, 70).imprecise()
	f.stacks = []flow.Branch{back, back, back}
	c := f.annotate(t)
	if c.Relative || c.Executions != "branch stacks, scaled to "+names[retired] {
		t.Errorf("relative %v, by %s", c.Relative, c.Executions)
	}
	want := 70 * periods[retired] / 10 // all of them in the 10 instructions of the loop
	if got := c.Loops[0].Executed.Iterations.Value; !(math.Abs(got-want) <= 1e-6*want) {
		t.Errorf("%v iterations, want %v", got, want)
	}
	f.samples = map[uint64][columns]int{4 * 25: {cycles: 10}}
	if c := f.annotate(t); !c.Relative || c.Executions != "branch stacks" || len(c.Loops[0].PerIter) != 0 {
		t.Errorf("without instructions: relative %v, by %s, %v in each iteration", c.Relative, c.Executions, c.Loops[0].PerIter)
	}
}

// TestWithoutMethod has shares, and executions, where no method fits.
func TestWithoutMethod(t *testing.T) {
	f := straight(10).sample(2, cycles, 3).sample(4, cycles, 1).sample(4, misses, 2)
	l := &annotate.Listing{Function: "f", Module: "prog", End: 40, Insts: f.insts}
	c, err := annotate.New(f.table(), l, annotate.Options{Clock: cycles, Retired: -1})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Parts) != 2 || c.Parts[0].Share != 0.75 || c.Parts[0].Figures != nil || c.Account != nil || c.Whole.OfRun != 1 || !slices.Equal(c.Unnamed, []int{misses}) {
		t.Errorf("got %+v", c)
	}
	if named := f.annotate(t); len(named.Unnamed) != 0 {
		t.Errorf("no node names %v", named.Unnamed)
	}
	if _, err := annotate.New(f.table(), l, annotate.Options{Clock: 99}); err == nil {
		t.Error("a column that is not there is taken")
	}
}

// TestAmidst has samples at addresses that are no instruction's.
func TestAmidst(t *testing.T) {
	f := straight(10).sample(2, cycles, 3)
	f.samples[0x12] = [columns]int{cycles: 1}
	c := f.annotate(t)
	if c.Parts[4].Samples != 1 || len(c.Listing.Notes) != 1 {
		t.Errorf("got %+v, %q", c.Parts[4], c.Listing.Notes)
	}
}

// BenchmarkNew annotates a large function that has samples everywhere.
func BenchmarkNew(b *testing.B) {
	f := straight(4000)
	for i := range f.insts {
		f.sample(i, cycles, 3).sample(i, misses, 1).sample(i, retired, 4)
	}
	for _, bare := range []bool{false, true} {
		f.bare = bare
		b.Run(fmt.Sprintf("bare=%v", bare), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f.annotate(b)
			}
		})
	}
}

func ExampleNew() {
	c := straight(10).loop(2, 5).sample(3, cycles, 3).sample(7, cycles, 1).annotate(&testing.T{})
	for i, p := range c.Parts {
		if p.Samples > 0 {
			fmt.Printf("%#x %s %.0f %%\n", c.Insts[i].Addr, c.Insts[i].Text, 100*p.Share)
		}
	}
	fmt.Printf("loop: %.0f %%\n", 100*c.Loops[0].Share)
	// Output:
	// 0xc nop 75 %
	// 0x1c nop 25 %
	// loop: 75 %
}

// TestSpare: the memory of another code makes no difference, and what was short of it stays.
func TestSpare(t *testing.T) {
	first := straight(30).loop(5, 25).sample(2, cycles, 3).sample(14, cycles, 1).sample(14, misses, 2)
	second := straight(30).loop(5, 25).sample(7, cycles, 5).sample(28, misses, 2)
	want, one := second.annotate(t), first.annotate(t)
	parts := func(c *annotate.Code) string {
		return fmt.Sprintf("%+v %+v %+v %+v %+v", c.Whole, c.Parts, c.Lines, c.Blocks, c.Loops) // some of it is NaN
	}
	short := one.Short()
	was := parts(short)
	second.spare = one
	if parts(second.annotate(t)) != parts(want) {
		t.Error("the memory of another code makes a difference")
	}
	if parts(short) != was {
		t.Error("a short code has changed")
	}
	whole := first.annotate(t)
	if len(short.Parts) != 2 || len(short.Insts) != 2 || len(short.Lines) != 2 || short.Blocks != nil {
		t.Fatalf("%d instructions, %d lines, %d blocks", len(short.Parts), len(short.Lines), len(short.Blocks))
	}
	for i, inst := range []int{2, 14} {
		if short.Insts[i].Addr != whole.Insts[inst].Addr || fmt.Sprint(short.Parts[i]) != fmt.Sprint(whole.Parts[inst]) || short.Lines[i].Line != whole.Insts[inst].Line {
			t.Errorf("instruction %d: %+v, %+v", inst, short.Insts[i], short.Lines[i])
		}
	}
}
