package emulator

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestRelative compares the variance of a ratio with how estimates of many runs differ. Windows
// have instructions and cycles by chance.
func TestRelative(t *testing.T) {
	const runs, windows = 3000, 40
	r := rand.New(rand.NewPCG(1, 2))
	var stated, sum, squares, equal float64
	d := &detailed{}
	for range runs {
		f := &function{}
		var cycles, instructions float64
		in := &instruction{sample: &sample{windowed: &windowed{of: f}}}
		for w := range windows {
			n := float64(1 + r.IntN(200))
			c := 0.5 + r.ExpFloat64()
			d.id, d.each = int32(w+1), n
			d.count(in)
			d.spend(in, costWaits, c)
			cycles, instructions = cycles+n*c, instructions+n
		}
		f.close()
		rate := cycles / instructions
		stated += f.relative(costWaits) * rate * rate / runs
		sum, squares, equal = sum+rate, squares+rate*rate, equal+f.effective()/runs
	}
	mean, student := sum/runs, equal/(equal-3)
	if seen := (squares/runs - mean*mean) * student; math.Abs(stated/seen-1) > 0.12 {
		t.Errorf("a variance of %.5f is stated, estimates have %.5f", stated, seen)
	}
}

// TestFewWindows holds that little says nothing.
func TestFewWindows(t *testing.T) {
	f := &function{}
	for w := range windowsLeast - 1 {
		now := f.in(int32(w + 1))
		now.instructions, now.cycles[costIdeal] = 10, 5
	}
	f.close()
	if got := f.relative(costIdeal); got != 1 {
		t.Errorf("a few windows have a relative variance of %g", got)
	}
	if got := f.relative(costLost); got != 0 {
		t.Errorf("a cost of 0 has a relative variance of %g", got)
	}
	for w := range windowsLeast {
		now := f.in(int32(windowsLeast + w))
		now.instructions, now.cycles[costIdeal] = 10, 5
	}
	f.close()
	if got := f.relative(costIdeal); got != 0 {
		t.Errorf("windows that are all alike have a relative variance of %g", got)
	}
}
