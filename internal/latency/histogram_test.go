package latency

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cyclestack/cyclestack/internal/testlong"
)

func TestHistogram(t *testing.T) {
	var h Histogram
	if h.Measured() != nil {
		t.Error("a distribution of no samples")
	}
	for latency := uint64(1); latency <= 100; latency++ {
		h.Add(latency, 1000)
	}
	m := h.Measured()
	if m.Samples != 100 || m.Loads != 100_000 || m.Cycles != 5_050_000 || m.Least != 1 || m.Most != 100 {
		t.Errorf("%d samples of %v loads, %v cycles, from %d to %d", m.Samples, m.Loads, m.Cycles, m.Least, m.Most)
	}
	// The deviation of 1…100 is 29.01; the error that of the mean of 100.
	if m.Mean.Value != 50.5 || !(math.Abs(m.Mean.Error-5.72) <= 0.05) {
		t.Errorf("mean %v ± %v, want 50.5 ± 5.72", m.Mean.Value, m.Mean.Error)
	}
	for i, want := range []float64{50, 90, 99, 100} {
		if q := m.Quantile[i]; q.Value != want {
			t.Errorf("p%v is %v, want %v", 100*q.Of, q.Value, want)
		}
	}
	// Of 100 samples the 40th and 61st bound the median. None bounds the 99th percentile
	// (tables of order statistics).
	if q := m.Quantile[0]; q.Low != 40 || q.High != 61 {
		t.Errorf("the median is between %v and %v, want 40 and 61", q.Low, q.High)
	}
	if q := m.Quantile[2]; !math.IsInf(q.High, 1) || !(q.Low < 99) {
		t.Errorf("p99 is between %v and %v, want no upper bound", q.Low, q.High)
	}
	wantBins := []struct {
		from, to float64
		samples  int64
	}{{1, 2, 1}, {2, 4, 2}, {4, 8, 4}, {8, 16, 8}, {16, 32, 16}, {32, 64, 32}, {64, 128, 37}}
	if len(m.Bins) != len(wantBins) {
		t.Fatalf("%d bins, want %d", len(m.Bins), len(wantBins))
	}
	for i, w := range wantBins {
		b := m.Bins[i]
		if b.From != w.from || b.To != w.to || b.Samples != w.samples || b.Share.Value != float64(w.samples)/100 || !(b.Share.Error > 0) {
			t.Errorf("bin %d is %+v, want %+v", i, b, w)
		}
	}
}

// TestPeriodsCount: a sample of ten times the period is ten loads, and not ten samples.
func TestPeriodsCount(t *testing.T) {
	var few, many Histogram
	few.Add(10, 90)
	few.Add(20, 10)
	for range 90 {
		many.Add(10, 1)
	}
	for range 10 {
		many.Add(20, 1)
	}
	a, b := few.Measured(), many.Measured()
	if a.Mean.Value != 11 || b.Mean.Value != 11 || a.Cycles != b.Cycles || a.Quantile[1].Value != b.Quantile[1].Value {
		t.Errorf("means %v and %v, want 11", a.Mean.Value, b.Mean.Value)
	}
	if !(a.Mean.Error > 5*b.Mean.Error) {
		t.Errorf("errors ± %v of two samples and ± %v of a hundred", a.Mean.Error, b.Mean.Error)
	}
}

// TestShares has the interval of E. B. Wilson for 10 of 100: 5.52 to 17.44 %, whose half
// is 5.96.
func TestShares(t *testing.T) {
	var h Histogram
	for i := range 100 {
		latency := uint64(2)
		if i < 10 {
			latency = 1
		}
		h.Add(latency, 7)
	}
	if got := h.Measured().Bins[0].Share; !(math.Abs(got.Value-0.1) <= 1e-12) || !(math.Abs(got.Error-0.0596) <= 1e-4) {
		t.Errorf("got %+v, want 0.1 ± 0.0596", got)
	}
}

// TestUnequalPeriods: quantiles of samples that stand for different numbers of loads are
// as uncertain as those of fewer samples.
func TestUnequalPeriods(t *testing.T) {
	var equal, unequal Histogram
	for i := range 1000 {
		loads := 1.0
		if i%10 == 0 {
			loads = 100
		}
		equal.Add(uint64(100+i), 1)
		unequal.Add(uint64(100+i), loads)
	}
	a, b := equal.Measured().Quantile[0], unequal.Measured().Quantile[0]
	if width := (b.High - b.Low) / (a.High - a.Low); !(width > 2.5) { // a hundred and eighteen samples would know as much
		t.Errorf("%+v of equal periods, %+v of others, %.2f times as wide", a, b, width)
	}
}

func TestLongLatencies(t *testing.T) {
	var h Histogram
	for _, latency := range []uint64{0, 4095, 4096, 4097, 1 << 20, 1<<20 + 1, math.MaxUint64} {
		h.Add(latency, 1)
	}
	m := h.Measured()
	if m.Least != 0 || m.Most != math.MaxUint64 || m.Bins[0].From != 0 || m.Bins[0].To != 1 || m.Bins[0].Samples != 1 {
		t.Errorf("from %d to %d, first bin %+v", m.Least, m.Most, m.Bins[0])
	}
	for _, latency := range []uint64{4097, 1<<20 - 1, 1<<40 - 1} {
		var one Histogram
		one.Add(latency, 1)
		if got := one.Measured().Quantile[0].Value / float64(latency); !(got <= 1 && got >= 1-1.0/2048) {
			t.Errorf("%d is kept as %v of it", latency, got)
		}
	}
	total := int64(0)
	for i, b := range m.Bins {
		total += b.Samples
		if i > 0 && b.From != m.Bins[i-1].To {
			t.Errorf("a gap between %v and %v", m.Bins[i-1].To, b.From)
		}
	}
	if total != h.samples {
		t.Errorf("%d samples in bins, want %d", total, h.samples)
	}
}

// TestIntervalsCover draws samples of a known distribution again and again: the
// intervals must hold what is true as often as they say.
func TestIntervalsCover(t *testing.T) {
	const runs, samples = 1000, 400
	rng := rand.New(rand.NewPCG(1, 2))
	// Latencies as caches give them: most are short, a few very long.
	draw := func() uint64 {
		switch x := rng.Float64(); {
		case x < 0.7:
			return 4 + rng.Uint64N(4)
		case x < 0.95:
			return 12 + rng.Uint64N(30)
		}
		return 200 + rng.Uint64N(300)
	}
	var truth Histogram
	for range 500_000 {
		truth.Add(draw(), 1)
	}
	want := truth.Measured()
	hit := map[string]int{}
	for range runs {
		var h Histogram
		for range samples {
			h.Add(draw(), 1)
		}
		m := h.Measured()
		if math.Abs(m.Mean.Value-want.Mean.Value) <= m.Mean.Error {
			hit["mean"]++
		}
		for i, name := range []string{"p50", "p90", "p99", "p99.9"} {
			if q, w := m.Quantile[i], want.Quantile[i].Value; !(w < q.Low) && !(w > q.High) {
				hit[name]++
			}
		}
		if b := m.Bins[slices.IndexFunc(m.Bins, func(b LogBin) bool { return b.From == 4 })]; math.Abs(b.Share.Value-0.7) <= b.Share.Error+0.01 {
			hit["share"]++
		}
	}
	for name, n := range hit {
		if share := float64(n) / runs; share < 0.925 {
			t.Errorf("%s: %.1f %% of the intervals hold the value, want 95 %%", name, 100*share)
		}
	}
	if len(hit) != 6 {
		t.Errorf("hits %v", hit)
	}
	if share := float64(hit["mean"]) / runs; share > 0.97 {
		t.Errorf("mean: %.1f %% of the intervals hold the value, want 95 %%: they are too wide", 100*share)
	}
}

func TestRanks(t *testing.T) {
	for _, tt := range []struct {
		n         int
		q         float64
		low, high int
	}{
		// From tables of confidence intervals of the median (H. A. David, Order
		// Statistics; two-sided, 97.5 % on each side).
		{10, 0.5, 2, 9}, {20, 0.5, 6, 15}, {100, 0.5, 40, 61},
		{5, 0.5, 0, 6}, {6, 0.5, 1, 6},
		// The largest of n is above a quantile q with a chance of 1 − qⁿ: it takes 368
		// samples to bound the 99th percentile.
		{367, 0.99, 359, 368}, {368, 0.99, 360, 368},
		// By the normal distribution.
		{1_000_000, 0.5, 499_020, 500_981},
	} {
		if low, high := ranks(tt.n, tt.q); low != tt.low || high != tt.high {
			t.Errorf("ranks(%d, %v) = %d, %d, want %d, %d", tt.n, tt.q, low, high, tt.low, tt.high)
		}
	}
}

func TestStudent(t *testing.T) {
	// Of a table of Student's distribution, two-sided 5 %.
	for freedom, want := range map[float64]float64{1: 12.706, 2: 4.303, 3: 3.182, 5: 2.571, 10: 2.228, 30: 2.042, 1e6: 1.960} {
		if got := student95(freedom); !(math.Abs(got-want) <= 0.01*want) {
			t.Errorf("student95(%v) = %v, want %v", freedom, got, want)
		}
	}
}

func TestGroups(t *testing.T) {
	var g Groups
	g.Add("RAM", 2, Load{Latency: 300, Loads: 10, TLBMiss: true})
	g.Add("L1", 1, Load{Latency: 5, Loads: 100, Locked: true})
	g.Add("L1", 1, Load{Latency: 5, Loads: 100, Blocked: true, Instruction: 40})
	if list := g.ByRank(); len(list) != 2 || list[0].Name != "L1" || list[1].Name != "RAM" {
		t.Errorf("by rank: %v", list)
	}
	if list := g.ByCycles(); list[0].Name != "RAM" {
		t.Errorf("by cycles %s is first", list[0].Name)
	}
	if m := g.All.Measured(); m.Loads != 210 || m.Cycles != 4000 || g.All.TLBMisses != 10 || g.All.Locked != 100 || g.All.Blocked != 100 {
		t.Errorf("all: %+v, %v TLB misses, %v locked, %v blocked", m, g.All.TLBMisses, g.All.Locked, g.All.Blocked)
	}
	if m := g.All.Instruction.Measured(); m == nil || m.Mean.Value != 40 {
		t.Errorf("instructions: %+v", m)
	}
}

// TestGroupsAreBounded: what a file can make a reader remember has a limit.
func TestGroupsAreBounded(t *testing.T) {
	var g Groups
	for i := range maxGroups + 10 {
		g.Add(string(rune(i)), 0, Load{Latency: 1, Loads: 1})
	}
	list := g.ByRank()
	if len(list) != maxGroups+1 {
		t.Fatalf("%d groups", len(list))
	}
	i := slices.IndexFunc(list, func(x *Group) bool { return x.Name == OthersName })
	if i < 0 || list[i].Measured().Samples == 0 {
		t.Error("nothing is with the others")
	}
}

// TestLatenciesAreBounded adds different latencies to many groups: memory is bounded, and
// the quantiles remain right except for the last digits.
func TestLatenciesAreBounded(t *testing.T) {
	var g Groups
	rng := rand.New(rand.NewPCG(3, 4))
	loads := testlong.Size(800_000, 1_300_000)
	for i := range loads {
		l := Load{Latency: 100 + rng.Uint64N(60_000), Loads: 1}
		if i%2 == 0 {
			l.Instruction = l.Latency + rng.Uint64N(60_000)
		}
		g.Add(string(rune('a'+i%2000)), 0, l)
	}
	cells := 0
	for _, x := range append(g.ByRank(), &g.All) {
		cells += len(x.cells) + len(x.Instruction.cells)
	}
	if g.fewer == 0 {
		t.Error("there were too few latencies to join any")
	}
	if cells > maxCells || cells != g.cells {
		t.Errorf("%d latencies are kept apart, counted as %d", cells, g.cells)
	}
	late := Load{Latency: 500, Instruction: 700, Loads: 1} // the first with a second latency
	g.Add("late", 0, late)
	i := slices.IndexFunc(g.list, func(x *Group) bool { return x.Name == "late" })
	if m := g.list[i].Instruction.Measured(); m.Least != 700 || len(g.list[i].Instruction.cells) != 1 {
		t.Errorf("the least is %d", m.Least)
	}
	m := g.All.Measured()
	m.Samples--
	if m.Samples != int64(loads) || m.Least < 100 || !(math.Abs(m.Quantile[0].Value/30_000-1) <= 0.07) || !(math.Abs(m.Mean.Value/30_000-1) <= 0.01) {
		t.Errorf("%d samples, mean %v, median %v", m.Samples, m.Mean.Value, m.Quantile[0].Value)
	}
}
