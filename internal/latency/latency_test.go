package latency

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"
)

// threeLoops are the counts by threshold of three loops, with "<10" as 9, from an answer on
// Stack Overflow: "Weird performance effects from nearby dependent stores in a
// pointer-chasing loop on IvyBridge" (question 54084992).
var threeLoops = map[string][]Point{
	"case 1": {{3, 1426934}, {4, 1505684}, {5, 1439650}, {6, 1032657}, {7, 47543}, {8, 57681}, {9, 60803}, {10, 76655}, {11, 9}},
	"case 2": {{3, 1532028}, {4, 1536547}, {5, 1550828}, {6, 1541661}, {7, 1536371}, {8, 1537337}, {9, 1538440}, {10, 1531577}, {11, 9}},
	"case 3": {{3, 2936547}, {4, 2890162}, {5, 2921158}, {6, 2468704}, {7, 1242425}, {8, 1238254}, {9, 1249995}, {10, 1240548}, {11, 9}},
}

// TestThreeLoops checks the conclusions of that answer: where the drops are, and the bounds
// of the mean. Its other method finds 5.4, 8.8 and 5.6 cycles.
func TestThreeLoops(t *testing.T) {
	for _, c := range []struct {
		name  string
		drops []float64
		truth float64
	}{
		{"case 1", []float64{6, 7, 11}, 5.4},
		{"case 2", []float64{11}, 8.8},
		{"case 3", []float64{6, 7, 11}, 5.6},
	} {
		d, err := New(threeLoops[c.name], 4)
		if err != nil {
			t.Fatal(err)
		}
		var at []float64
		for _, drop := range d.Drops {
			at = append(at, drop.At)
		}
		if fmt.Sprint(at) != fmt.Sprint(c.drops) {
			t.Errorf("%s: drops at %v, want %v", c.name, at, c.drops)
		}
		if !(d.Floor <= c.truth && c.truth <= d.First) {
			t.Errorf("%s: %v is not between %v and %v", c.name, c.truth, d.Floor, d.First)
		}
		if near := c.truth > (d.Floor+d.First)/2; near != d.NearFirst {
			t.Errorf("%s: NearFirst = %v, want %v", c.name, d.NearFirst, near)
		}
	}
}

// TestMean checks the bounds against latencies whose distribution is known.
func TestMean(t *testing.T) {
	latencies := map[float64]float64{5: 100, 6: 300, 12: 50, 40: 50}
	thresholds := []float64{3, 5, 8, 16, 64}
	var points []Point
	mean, total := 0.0, 0.0
	for l, n := range latencies {
		mean += l * n
		total += n
	}
	mean /= total
	for _, th := range thresholds {
		p := Point{Threshold: th}
		for l, n := range latencies {
			if l > th {
				p.Count += n
			}
		}
		points = append(points, p)
	}
	d, err := New(points, 0)
	if err != nil {
		t.Fatal(err)
	}
	if !(d.Low <= mean && mean <= d.High) {
		t.Errorf("mean %v is not in %v…%v", mean, d.Low, d.High)
	}
	if want := 100.0 / 500; !(math.Abs(d.Bins[0].Share-want) <= 1e-12) {
		t.Errorf("share of the first bin = %v, want %v", d.Bins[0].Share, want)
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		points []Point
		want   string
	}{
		{[]Point{{3, 1}}, ErrFew.Error()},
		{[]Point{{3, 1}, {3, 2}}, "threshold 3 is given twice"},
		{[]Point{{3, 1}, {4, -2}}, "the count at threshold 4 is -2"},
		{[]Point{{3, 0}, {4, 0}}, "no load was slower than the first threshold"},
	} {
		if _, err := New(c.points, 4); err == nil || err.Error() != c.want {
			t.Errorf("New(%v) = %v, want %v", c.points, err, c.want)
		}
	}
	if _, err := New(nil, 0); !errors.Is(err, ErrFew) {
		t.Error("no points are too few")
	}
}

// TestInvariants checks on random counts that the fit never rises, shares sum to one, and
// bounds are in order.
func TestInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		counts := rapid.SliceOfN(rapid.IntRange(0, 1e6), 2, 20).Draw(t, "counts")
		var points []Point
		for i, c := range counts {
			points = append(points, Point{float64(i + 3), float64(c)})
		}
		d, err := New(points, 4)
		if err != nil {
			return
		}
		sum := 0.0
		for i, b := range d.Bins {
			if b.Share < 0 {
				t.Fatalf("bin %d has the share %v", i, b.Share)
			}
			sum += b.Share
		}
		if !(math.Abs(sum-1) <= 1e-9) {
			t.Fatalf("shares sum to %v", sum)
		}
		if d.Tail == 0 && d.Low > d.High+1e-9 {
			t.Fatalf("bounds %v, %v", d.Low, d.High)
		}
	})
}

func Example() {
	d, _ := New([]Point{{3, 1000}, {5, 990}, {6, 700}, {7, 50}, {11, 0}}, 4)
	fmt.Printf("load to use: between %v and %v cycles\n", d.Floor, d.First)
	for _, drop := range d.Drops {
		fmt.Printf("drop at %v: %.0f %% of the loads\n", drop.At, 100*drop.Share)
	}
	// Output:
	// load to use: between 4 and 6 cycles
	// drop at 6: 29 % of the loads
	// drop at 7: 65 % of the loads
	// drop at 11: 5 % of the loads
}
