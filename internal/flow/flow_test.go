package flow_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cyclestack/cyclestack/internal/disasm"
	"github.com/cyclestack/cyclestack/internal/flow"
)

// A node describes a block of a made-up function: how many instructions of four
// bytes it has, and where the last one goes.
type node struct {
	size   int
	flow   disasm.Flow
	target int // block
}

// function makes the instructions of blocks.
func function(nodes []node) []disasm.Inst {
	var starts []uint64
	at := uint64(0x1000)
	for _, n := range nodes {
		starts = append(starts, at)
		at += uint64(4 * n.size)
	}
	var list []disasm.Inst
	for b, n := range nodes {
		for i := range n.size {
			in := disasm.Inst{Addr: starts[b] + uint64(4*i), Len: 4}
			if i == n.size-1 && n.flow != disasm.Next {
				in.Flow = n.flow
				if n.target < len(nodes) {
					in.Target = starts[n.target]
				}
			}
			list = append(list, in)
		}
	}
	return list
}

// nest is a loop in a loop: entry, outer header, inner loop, outer latch, exit.
var nest = []node{
	{2, disasm.Next, 0}, {3, disasm.Next, 0}, {4, disasm.CondJump, 2}, {2, disasm.CondJump, 1}, {1, disasm.Return, 0},
}

// count is a count without doubt.
func count(v float64) flow.Count { return flow.Count{Value: v, Samples: int64(v)} }

// TestFromInstructions has a count for each block that does not depend on the distribution
// of its samples.
func TestFromInstructions(t *testing.T) {
	g := flow.NewGraph(function(nest), nil)
	const one = 10.0
	retired := map[uint64]flow.Count{
		0x1008: {Value: 300, Variance: 300 * one, Samples: 30}, // of 3 instructions
		0x1018: {Value: 100, Variance: 100 * one, Samples: 10}, // of 4
		0x101c: {Value: 3900, Variance: 3900 * one, Samples: 390},
	}
	got := flow.FromInstructions(g, func(addr uint64) flow.Count { return retired[addr] }, one)
	want := []flow.Count{
		{Value: 0, Variance: one * one / 4}, {Value: 100, Variance: 300 * one / 9, Samples: 30},
		{Value: 1000, Variance: 4000 * one / 16, Samples: 400}, {Value: 0, Variance: one * one / 4}, {Value: 0, Variance: one * one},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if e := got[1].Error(); math.Abs(e-1.96*math.Sqrt(3000)/3) > 0.01 {
		t.Errorf("error %v", e)
	}
}

func TestTrips(t *testing.T) {
	g := flow.NewGraph(function(nest), nil)
	loops := flow.Trips(g, []flow.Count{count(10), count(200), count(6000), count(200), count(10)})
	if len(loops) != 2 || loops[0].Trips != 20 || loops[1].Trips != 30 || loops[0].Iterations.Value != 200 || loops[1].Entries.Value != 200 {
		t.Errorf("got %+v", loops)
	}
	// Errors of independent counts: relative ones add up in squares.
	loops = flow.Trips(g, []flow.Count{{Value: 100, Variance: 100, Samples: 100}, {Value: 400, Variance: 400, Samples: 400}, count(1), count(1), count(1)})
	if want := 1.96 * 4 * math.Sqrt(1/100.0+1/400.0); math.Abs(loops[0].Error-want) > 1e-3 {
		t.Errorf("error %v, want %v", loops[0].Error, want)
	}
	// Without a sample of an entry there is a bound: up to 1.96 samples of one.
	loops = flow.Trips(g, []flow.Count{{Variance: 25}, count(980), count(1), count(1), count(1)})
	if l := loops[0]; !math.IsNaN(l.Trips) || math.Abs(l.Least-100) > 0.01 || l.Why != "no sample of an entry" {
		t.Errorf("got %+v", l)
	}
	loops = flow.Trips(g, []flow.Count{count(1), count(0), count(1), count(1), count(1)})
	if l := loops[0]; !math.IsNaN(l.Trips) || !math.IsNaN(l.Least) || l.Why != "no sample of its header" {
		t.Errorf("got %+v", l)
	}
}

// TestTripsWithoutRuns has a loop that is passed by, from a block to the one
// behind the loop: nothing is executed once for each entry, but what comes in is
// what goes out.
func TestTripsWithoutRuns(t *testing.T) {
	g := flow.NewGraph(function([]node{{1, disasm.CondJump, 3}, {2, disasm.CondJump, 3}, {1, disasm.Jump, 1}, {1, disasm.Return, 0}}), nil)
	if len(g.Loops) != 1 {
		t.Fatalf("%d loops", len(g.Loops))
	}
	loops := flow.Trips(g, []flow.Count{count(100), count(840), count(800), count(100)})
	if math.Abs(loops[0].Entries.Value-40) > 1e-9 || math.Abs(loops[0].Trips-21) > 1e-9 {
		t.Errorf("got %+v", loops[0])
	}
}

// A run is an execution of a made-up function by chance.
type run struct {
	blocks []float64
	edges  map[[2]int]float64
	taken  []flow.Branch // the oldest first
}

// execute executes the blocks of a graph, which goes either way at each branch.
func (r *run) execute(g *disasm.Graph, rnd *rand.Rand, bias []float64) {
	const most = 100_000
	b := 0
	r.taken = append(r.taken, flow.Branch{From: 0, To: g.Blocks[0].Start()}) // called
	for range most {
		r.blocks[b]++
		last := g.Blocks[b].Last()
		jump := last.Flow == disasm.Jump || last.Flow == disasm.CondJump && rnd.Float64() < bias[b]
		to := b + 1
		switch {
		case last.Flow == disasm.Return:
			r.taken = append(r.taken, flow.Branch{From: last.Addr, To: 0})
			return
		case jump:
			to = g.BlockAt(last.Target)
			r.taken = append(r.taken, flow.Branch{From: last.Addr, To: last.Target})
		}
		r.edges[[2]int{b, to}]++
		b = to
	}
}

// randomFunction makes blocks that go forwards or back by chance, and ends with a
// return.
func randomFunction(rnd *rand.Rand) []node {
	n := 3 + rnd.IntN(10)
	var list []node
	for range n {
		kind := []disasm.Flow{disasm.Next, disasm.CondJump, disasm.CondJump, disasm.Jump}[rnd.IntN(4)]
		list = append(list, node{1 + rnd.IntN(4), kind, rnd.IntN(n + 1)})
	}
	return append(list, node{1, disasm.Return, 0})
}

// TestExecutions executes random functions. It compares what follows from exact counts of their
// blocks and branches with what happened.
func TestExecutions(t *testing.T) {
	known, unknown, solved := 0, 0, 0
	for seed := range uint64(3000) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		g := flow.NewGraph(function(randomFunction(rnd)), nil)
		if !reachesEnd(g) {
			continue
		}
		bias := make([]float64, len(g.Blocks))
		for i := range bias {
			bias[i] = 0.1 + 0.8*rnd.Float64()
		}
		r := run{blocks: make([]float64, len(g.Blocks)), edges: map[[2]int]float64{}}
		for range 5 {
			r.execute(g, rnd, bias)
		}
		var blocks []flow.Count
		for _, n := range r.blocks {
			blocks = append(blocks, count(n))
		}
		branches := flow.NewBranches(g)
		slices.Reverse(r.taken)
		branches.Add(r.taken, 1)
		if d := cmp.Diff(r.blocks, values(branches.Blocks())); d != "" {
			t.Fatalf("seed %d, blocks by branches (-want +got):\n%s", seed, d)
		}
		byBranches := branches.Loops()
		for i, l := range flow.Trips(g, blocks) {
			want := entries(g, i, r.edges)
			if g.Loops[i].Header == 0 {
				want += 5 // calls
			}
			if got := byBranches[i].Entries.Value; got != want {
				t.Fatalf("seed %d, loop %d: %v entries by branches, want %v", seed, i, got, want)
			}
			switch {
			case l.Iterations.Value == 0:
			case math.IsNaN(l.Entries.Value):
				unknown++
			case math.Abs(l.Entries.Value-want) > 1e-6:
				t.Fatalf("seed %d, loop %d of %+v: %v entries, want %v", seed, i, g.Loops[i], l.Entries.Value, want)
			default:
				known++
				if g.Loops[i].Runs == nil {
					solved++
				}
			}
		}
	}
	t.Logf("%d loops with entries known, %d of them by solving for edges, %d not known", known, solved, unknown)
	if known < 1000 || solved < 100 {
		t.Error("too few loops for a test")
	}
}

func values(list []flow.Count) []float64 {
	var out []float64
	for _, c := range list {
		out = append(out, c.Value)
	}
	return out
}

// entries counts how often a loop was entered.
func entries(g *disasm.Graph, loop int, edges map[[2]int]float64) float64 {
	n := 0.0
	for e, times := range edges {
		if e[1] == g.Loops[loop].Header && !slices.Contains(g.Loops[loop].Blocks, e[0]) {
			n += times
		}
	}
	return n
}

// reachesEnd says whether the function can be left from every block that it gets
// to.
func reachesEnd(g *disasm.Graph) bool {
	last := len(g.Blocks) - 1
	back := map[int]bool{last: true}
	for work := []int{last}; len(work) > 0; work = work[1:] {
		for _, p := range g.Blocks[work[0]].Preds {
			if !back[p] {
				back[p] = true
				work = append(work, p)
			}
		}
	}
	seen := map[int]bool{0: true}
	for work := []int{0}; len(work) > 0; work = work[1:] {
		if !back[work[0]] {
			return false
		}
		for _, s := range g.Blocks[work[0]].Succs {
			if !seen[s] {
				seen[s] = true
				work = append(work, s)
			}
		}
	}
	return true
}

// TestBranchesOfCalls has a block that calls: the branch back leads into its midst.
func TestBranchesOfCalls(t *testing.T) {
	insts := function([]node{{1, disasm.Next, 0}, {4, disasm.CondJump, 1}, {1, disasm.Return, 0}})
	insts[2].Flow, insts[2].Target = disasm.Call, 0x9000
	g := flow.NewGraph(insts, nil)
	b := flow.NewBranches(g)
	var taken []flow.Branch
	for i := range 10 {
		if i == 0 {
			taken = append(taken, flow.Branch{From: 0, To: 0x1000})
		}
		taken = append(taken, flow.Branch{From: 0x1008, To: 0}, flow.Branch{From: 0, To: 0x100c})
		if i < 9 {
			taken = append(taken, flow.Branch{From: 0x1010, To: 0x1004})
		}
	}
	taken = append(taken, flow.Branch{From: 0x1014, To: 0})
	slices.Reverse(taken)
	b.Add(taken, 1)
	if got := values(b.Blocks()); !slices.Equal(got, []float64{1, 10, 1}) {
		t.Errorf("got %v", got)
	}
	if l := b.Loops(); len(l) != 1 || l[0].Trips != 10 {
		t.Errorf("got %+v", l)
	}
	b.Scale(3)
	if got := values(b.Blocks()); !slices.Equal(got, []float64{3, 30, 3}) {
		t.Errorf("scaled: got %v", got)
	}
}

// TestBranchErrors has the error of a trip count from many samples: that of a
// simulation.
func TestBranchErrors(t *testing.T) {
	g := flow.NewGraph(function([]node{{1, disasm.Next, 0}, {2, disasm.CondJump, 1}, {1, disasm.Return, 0}}), nil)
	rnd := rand.New(rand.NewPCG(1, 2))
	outside, trials := 0, 400
	for range trials {
		b := flow.NewBranches(g)
		for range 200 {
			r := run{blocks: make([]float64, len(g.Blocks)), edges: map[[2]int]float64{}}
			r.execute(g, rnd, []float64{0, 0.9, 0})
			slices.Reverse(r.taken)
			b.Add(r.taken, 1)
		}
		if l := b.Loops()[0]; math.Abs(l.Trips-10) > l.Error {
			outside++
		}
	}
	if outside > trials/10 || outside < trials/100 {
		t.Errorf("%d of %d intervals of 95 %% do not have the truth", outside, trials)
	}
}

func TestNeverReturns(t *testing.T) {
	for name, want := range map[string]bool{
		"abort": true, "abort@plt": true, "exit@GLIBC_2.2.5": true, "__stack_chk_fail@plt": true, "runtime.panicIndex": true,
		"runtime.gopanic": true, "std::__throw_length_error": true, "core::panicking::panic_fmt": true,
		"": false, "abort_all": false, "malloc": false, "runtime.newobject": false, "runtime.morestack_noctxt": true, "exitcode": false,
	} {
		if got := flow.NeverReturns(name); got != want {
			t.Errorf("%s: got %v", name, got)
		}
	}
	insts := function([]node{{2, disasm.CondJump, 2}, {1, disasm.Next, 0}, {1, disasm.Return, 0}})
	insts[2].Flow, insts[2].Target = disasm.Call, 0x9000
	g := flow.NewGraph(insts, func(addr uint64) string {
		if addr == 0x9000 {
			return "abort@plt"
		}
		return ""
	})
	if len(g.Blocks) != 3 || len(g.Blocks[1].Succs) != 0 || !g.Blocks[1].Leaves {
		t.Errorf("got %+v", g.Blocks)
	}
	if insts[2].Flow != disasm.Call {
		t.Error("the caller's instructions were changed")
	}
}
