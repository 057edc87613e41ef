package branch_test

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/cyclestack/cyclestack/internal/simulation/internal/branch"
	"github.com/cyclestack/cyclestack/internal/testlong"
)

// Addresses of branches that are not near each other.
const (
	first  = 0x401000
	noise  = 0x402000
	second = 0x403000
	back   = 0x404000
	apart  = 0x30 // between branches of one kind
)

// random returns numbers that are the same in each run.
func random() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// bits returns n outcomes, with a share of them taken.
func bits(r *rand.Rand, n int, share float64) []bool {
	b := make([]bool, n)
	for i := range b {
		b[i] = r.Float64() < share
	}
	return b
}

// loop executes a loop with one branch in it, and returns how often that one was
// mispredicted.
func loop(p *branch.Predictor, outcomes []bool) (mispredicted int) {
	for i, taken := range outcomes {
		if p.Conditional(first, taken) {
			mispredicted++
		}
		p.Conditional(back, i < len(outcomes)-1)
	}
	return mispredicted
}

func TestPatterns(t *testing.T) {
	r := random()
	for _, test := range []struct {
		name    string
		pattern []bool
	}{
		{"always", []bool{true}},
		{"never", []bool{false}},
		{"alternating", []bool{true, false}},
		{"one of three", []bool{false, false, true}},
		{"8", bits(r, 8, 0.5)},
		{"32", bits(r, 32, 0.5)},
		{"100", bits(r, 100, 0.5)},
		{"300", bits(r, 300, 0.5)},
		{"1000", bits(r, 1000, 0.5)},
	} {
		p := branch.New()
		var outcomes []bool
		for len(outcomes) < 10000 {
			outcomes = append(outcomes, test.pattern...)
		}
		loop(p, outcomes)
		if got, most := loop(p, outcomes), len(outcomes)/500; got > most {
			t.Errorf("pattern %s: %d of %d mispredicted, want at most %d", test.name, got, len(outcomes), most)
		}
	}
}

// TestSequence repeats a sequence of branches, each at its own address, like a program with the
// same data.
func TestSequence(t *testing.T) {
	for _, n := range []int{300, 600, 1000} {
		r, p := random(), branch.New()
		outcomes := bits(r, n, 0.5)
		places := make([]uint64, n)
		for i := range places {
			places[i] = first + apart*r.Uint64N(40)
		}
		got := 0
		for pass := range 10 {
			for i, taken := range outcomes {
				p.Jump(back, places[i])
				if p.Conditional(places[i], taken) && pass > 4 {
					got++
				}
			}
		}
		if most := 10 * n / 100; got > most {
			t.Errorf("%d branches, five times: %d mispredicted, want at most %d", n, got, most)
		}
	}
}

func TestRandom(t *testing.T) {
	testlong.Alone(t)
	const n = 100000
	for _, share := range []float64{0.01, 0.05, 0.1, 0.3, 0.5, 0.7, 0.9} {
		r, p := random(), branch.New()
		loop(p, bits(r, n, share))
		got := float64(loop(p, bits(r, n, share))) / n
		least := min(share, 1-share)
		if got < 0.95*least || got > 1.1*least+0.002 {
			t.Errorf("taken with %g: %.4f mispredicted, want about %.4f", share, got, least)
		}
	}
}

// nest executes an inner loop with a random branch. It returns how often the end of the
// inner loop was mispredicted.
func nest(p *branch.Predictor, r *rand.Rand, trips int, share float64) (mispredicted int) {
	for i := range trips {
		if share > 0 {
			p.Conditional(noise, r.Float64() < share)
		}
		if p.Conditional(second, i < trips-1) {
			mispredicted++
		}
	}
	return mispredicted
}

func TestLoops(t *testing.T) {
	testlong.Alone(t)
	const runs = 2000
	for _, test := range []struct {
		trips       int
		share       float64 // of a branch in the loop
		least, most float64 // mispredicted per run of the loop
	}{
		{3, 0, 0, 0.001},
		{8, 0, 0, 0.001},
		{20, 0, 0, 0.001},
		{40, 0, 0, 0.001},
		{200, 0, 0, 0.01},
		{3, 0.5, 0, 0.02},
		{4, 0.2, 0, 0.02},
		{40, 0.5, 0.9, 1.3}, // too many ways to get there
		{1000, 0, 0.9, 1.1}, // too far back
	} {
		r, p := random(), branch.New()
		got := 0
		for run := range 2 * runs {
			m := nest(p, r, test.trips, test.share)
			p.Conditional(back, true)
			if run >= runs {
				got += m
			}
		}
		if got := float64(got) / runs; got < test.least || got > test.most {
			t.Errorf("loop of %d with noise of %g: %.3f mispredicted, want %g to %g", test.trips, test.share, got, test.least, test.most)
		}
	}
}

func TestNestedLoops(t *testing.T) {
	p := branch.New()
	got := 0
	for run := range 2000 {
		for i := range 6 {
			m := nest(p, nil, 5, 0)
			if p.Conditional(back, i < 5) {
				m++
			}
			if run >= 1000 {
				got += m
			}
		}
		p.Conditional(back+apart, true)
	}
	if got > 10 {
		t.Errorf("%d mispredicted in a thousand runs of 6 × 5", got)
	}
}

// TestCorrelated has a branch that repeats what one before it did, with taken branches
// between the two.
func TestCorrelated(t *testing.T) {
	const n = 1500
	for _, test := range []struct {
		distance    int
		least, most float64
	}{
		{0, 0, 0.01},
		{10, 0, 0.01},
		{100, 0, 0.01},
		{450, 0, 0.01},
		{600, 0.45, 0.55},
	} {
		p := branch.New()
		got := 0
		for i, taken := range bits(random(), 2*n, 0.5) {
			p.Conditional(first, taken)
			for j := range uint64(test.distance) {
				p.Jump(noise+apart*j, noise+apart*j+apart)
			}
			if p.Conditional(noise-apart, taken) && i >= n {
				got++
			}
			p.Conditional(back, true)
		}
		if got := float64(got) / n; got < test.least || got > test.most {
			t.Errorf("distance %d: %.3f mispredicted, want %g to %g", test.distance, got, test.least, test.most)
		}
	}
}

// TestNeverTaken has more branches that are never taken between the two than a path has
// branches: they take none of it.
func TestNeverTaken(t *testing.T) {
	p := branch.New()
	got := 0
	for i, taken := range bits(random(), 1000, 0.5) {
		p.Conditional(first, taken)
		for j := range uint64(1000) {
			p.Conditional(noise+apart*j, false)
		}
		if p.Conditional(noise-apart, taken) && i >= 500 {
			got++
		}
		p.Conditional(back, true)
	}
	if got > 10 {
		t.Errorf("%d of 500 mispredicted", got)
	}
}

// TestMachine holds the predictor to what was measured on a core (see the package's
// comment).
func TestMachine(t *testing.T) {
	testlong.Alone(t)
	t.Run("learning", func(t *testing.T) {
		for _, test := range []struct {
			period, pass    int
			want, tolerance float64
		}{
			{1000, 1, 0.50, 0.03}, {1000, 2, 0.02, 0.03}, {1000, 3, 0, 0.01},
			{10000, 2, 0.09, 0.06}, {10000, 3, 0.02, 0.02}, {10000, 5, 0, 0.01},
			{30000, 2, 0.35, 0.05}, {30000, 5, 0.10, 0.05}, {30000, 10, 0.01, 0.02},
			{60000, 2, 0.43, 0.06}, {60000, 10, 0.33, 0.06},
		} {
			r, p := random(), branch.New()
			loop(p, bits(r, 60000, 0.5))
			outcomes := bits(r, test.period, 0.5)
			for range test.pass - 1 {
				loop(p, outcomes)
			}
			got := float64(loop(p, outcomes)) / float64(test.period)
			if got < test.want-test.tolerance || got > test.want+test.tolerance {
				t.Errorf("random pattern of %d, time %d: %.3f mispredicted, want %.2f ± %.2f", test.period, test.pass, got, test.want, test.tolerance)
			}
		}
	})
	t.Run("noise", func(t *testing.T) {
		const n = 60000
		for between, want := range map[int]float64{1: 0.02, 3: 0.10, 4: 0.22, 5: 0.31, 6: 0.38, 8: 0.45} {
			r, p := random(), branch.New()
			got := 0
			for i := range n {
				taken := r.Uint64()&1 == 0
				p.Conditional(first, taken)
				for j := range uint64(between) {
					p.Conditional(noise+apart*j, r.Uint64()&1 == 0)
				}
				if p.Conditional(second, taken) && i >= n/2 {
					got++
				}
				p.Conditional(back, true)
			}
			if got := 2 * float64(got) / n; got < want-0.06 || got > want+0.06 {
				t.Errorf("%d random branches between: %.3f mispredicted, want %.2f", between, got, want)
			}
		}
	})
}

// interpret executes a program of an interpreter that dispatches by one jump. The jump is at
// the end of each instruction if shared, and at the end of a loop if not. It returns how
// often the jump was mispredicted.
func interpret(p *branch.Predictor, program []uint64, shared bool) (mispredicted int) {
	for _, op := range program {
		at := second + 53*op
		if p.Indirect(first, at) {
			mispredicted++
		}
		if shared {
			p.Jump(at+20, first-8)
		} else {
			p.Jump(at+20, back)
			p.Conditional(back, true)
		}
	}
	return mispredicted
}

func TestIndirect(t *testing.T) {
	for _, test := range []struct {
		name        string
		length, ops int
		again       bool // the same program each time
		shared      bool
		least, most float64
	}{
		{"one target", 100, 1, true, true, 0, 0},
		{"program", 50, 20, true, true, 0, 0.01},
		{"longer program", 200, 40, true, true, 0, 0.03},
		{"program in a loop", 50, 20, true, false, 0, 0.1},
		{"longer program in a loop", 500, 20, true, false, 0.6, 0.95}, // 50 contexts of 500 were measured to be known
		{"random", 5000, 20, false, true, 0.93, 0.97},
	} {
		r, p := random(), branch.New()
		program := make([]uint64, test.length)
		got, executed := 0, 0
		for pass := range 40 {
			for i := range program {
				if pass == 0 || !test.again {
					program[i] = r.Uint64N(uint64(test.ops))
				}
			}
			m := interpret(p, program, test.shared)
			if pass >= 30 {
				got += m
				executed += test.length
			}
		}
		if got := float64(got) / float64(executed); got < test.least || got > test.most {
			t.Errorf("%s: %.3f mispredicted, want %g to %g", test.name, got, test.least, test.most)
		}
	}
}

// TestReturns nests calls, from one place or from any of two.
func TestReturns(t *testing.T) {
	for _, test := range []struct {
		name        string
		nested      int
		places      uint64
		least, most float64 // returns mispredicted per run
	}{
		{"shallow", 20, 2, 0, 0},
		{"as deep as the stack", 32, 2, 0, 0},
		{"deep, from two places", 100, 2, 25, 43}, // every other one of 68
		{"deep, from one place", 100, 1, 0, 0},
	} {
		const runs = 200
		r, p := random(), branch.New()
		got := 0
		stack := make([]uint64, test.nested)
		for run := range 2 * runs {
			for i := range stack {
				at := first + apart*r.Uint64N(test.places)
				stack[i] = at + 5
				p.Jump(at, second)
				p.Call(at, at+5)
			}
			for i := range stack {
				if p.Return(second+apart, stack[len(stack)-1-i]) && run >= runs {
					got++
				}
			}
		}
		if got := float64(got) / runs; got < test.least || got > test.most {
			t.Errorf("%s: %.1f of %d returns mispredicted, want %g to %g", test.name, got, test.nested, test.least, test.most)
		}
	}
}

// anything gives a predictor branches of all kinds, and returns what it says of them.
func anything(p *branch.Predictor, n int) (mispredicted []bool) {
	r := random()
	for range n {
		addr, target := r.Uint64N(1<<12), r.Uint64N(1<<12)
		switch r.IntN(6) {
		case 0, 1:
			mispredicted = append(mispredicted, p.Conditional(addr, target&3 == 0))
		case 2:
			mispredicted = append(mispredicted, p.Indirect(addr, target))
		case 3:
			p.Jump(addr, target)
		case 4:
			p.Call(addr, addr+5)
		case 5:
			mispredicted = append(mispredicted, p.Return(addr, target))
		}
	}
	return mispredicted
}

func TestSameAgain(t *testing.T) {
	one, two := anything(branch.New(), 100000), anything(branch.New(), 100000)
	for i := range one {
		if one[i] != two[i] {
			t.Fatalf("prediction %d differs", i)
		}
	}
}

func TestMemory(t *testing.T) {
	if size := unsafe.Sizeof(branch.Predictor{}); size > 1<<20 {
		t.Errorf("a predictor has %d bytes", size)
	}
	p := branch.New()
	outcomes := bits(random(), 1000, 0.5)
	if n := testing.AllocsPerRun(10, func() {
		loop(p, outcomes)
		p.Indirect(first, second)
		p.Call(first, second)
		p.Return(first, second)
	}); n > 0 {
		t.Errorf("%g allocations", n)
	}
}
