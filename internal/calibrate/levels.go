package calibrate

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/cyclestack/cyclestack/internal/sorting"
)

// How level ground is recognised on a curve: see findGrounds.
const (
	levelSlope = 0.25 // growth for each doubling of the size, as an exponent of it
	levelNoise = 0.05 // further growth by chance
	levelOver  = 0.9  // doublings that level ground must at least extend over
	levelApart = 1.6  // the least ratio of the next level's latency
)

// memoryNanos is less than any memory takes: opening a row and reading from it are 14 ns each
// by the standards of DDR3 to DDR5. If a busy machine leaves no time for large working sets,
// the last level ground is a cache's.
const memoryNanos = 25

// A ground is level ground, of one or more pieces. It has the points from and to, to
// included; the first piece ends at first, and the last begins at last. The latency is the
// most common one of the first piece.
type ground struct {
	from, first, last, to int
	cycles                float64
}

// findGrounds returns the pieces of a curve with nearly constant y. From point to point,
// and over each doubling of x, y grows less than the levelSlope-th power of x.
// Consecutive pieces whose ratio is below levelApart are one level: between them the cost
// of finding pages grows within a cache. The level's latency is that of the first piece,
// without that cost.
func findGrounds(x, y []float64) []ground {
	smooth := smoothed(y)
	var levels []ground
	for from := 0; from < len(x); {
		to := from
		for to+1 < len(x) && staysLevel(x[from:to+2], smooth[from:to+2]) {
			to++
		}
		g := ground{from, to, from, to, typical(y[from : to+1])}
		n := len(levels)
		switch {
		case math.Log2(x[to]/x[from]) < levelOver:
		case n > 0 && g.cycles < levelApart*levels[n-1].cycles:
			levels[n-1].last, levels[n-1].to = from, to
		default:
			levels = append(levels, g)
		}
		from = to + 1
	}
	return levels
}

// smoothed removes single points that are far from their neighbours.
func smoothed(y []float64) []float64 {
	out := slices.Clone(y)
	for i := 1; i+1 < len(y); i++ {
		out[i] = median(y[i-1 : i+2])
	}
	return out
}

// staysLevel says whether a curve is as level at its last point as before. It compares
// the point with the one before it, and with the last point at half its x or less. Noise
// may lower a latency as much as raise it.
func staysLevel(x, y []float64) bool {
	last := len(x) - 1
	if !isLevel(x[last-1], y[last-1], x[last], y[last]) {
		return false
	}
	for i := last - 1; i >= 0; i-- {
		if x[i] <= x[last]/2 {
			return isLevel(x[i], y[i], x[last], y[last])
		}
	}
	return true
}

func isLevel(x0, y0, x1, y1 float64) bool {
	return math.Abs(math.Log(y1/y0)) <= levelSlope*math.Log(x1/x0)+levelNoise
}

// typical returns the middle of the half of the values that lie closest together. At the
// edges of a level, latencies are mixtures with the neighbouring levels. From some size
// on pages cost more. Most points show the level alone.
func typical(list []float64) float64 {
	sorted := slices.Clone(list)
	slices.Sort(sorted)
	half := len(sorted)/2 + 1
	best := sorted[:half]
	for i := range sorted[half:] {
		if some := sorted[i+1 : i+1+half]; some[half-1]-some[0] < best[half-1]-best[0] {
			best = some
		}
	}
	return median(best)
}

// median returns the middle value, the lower of two.
func median(list []float64) float64 {
	sorted := slices.Clone(list)
	slices.Sort(sorted)
	return sorted[(len(sorted)-1)/2]
}

// findLevels names the level ground of a latency curve: the first is L1, the others are
// L2 and up. The last is memory if the curve ends on it. The curve cannot show a cache
// without level ground. If the curve climbs in more than one step after a level, the next
// level is given without a latency.
func findLevels(curve []Point) []Level {
	var x, y []float64
	var points []Point
	for _, p := range curve {
		if p.Why == "" {
			x, y, points = append(x, float64(p.Bytes)), append(y, float64(p.Cycles)), append(points, p)
		}
	}
	grounds := findGrounds(x, y)
	var levels []Level
	for i, g := range grounds {
		name := fmt.Sprintf("L%d", i+1)
		last := i > 0 && i == len(grounds)-1 && points[g.to].Nanos >= memoryNanos
		switch {
		case last && points[g.to].Bytes >= curve[len(curve)-1].Bytes/4: // the last points may be uncertain
			// Memory's latency is that of the last piece: a cache may have held a part of
			// the working sets of the first.
			levels = append(levels, level("memory", points[g.last:g.to+1], points[g.to].Bytes))
			continue
		case last && i > 1 && slices.Max(y[g.to:]) < levelApart*g.cycles:
			why := fmt.Sprintf("about %.0f cycles up to %s, but what comes behind could not be measured: it may be memory", g.cycles, Size(points[g.to].Bytes))
			levels = append(levels, absentLevel(name, why))
			continue
		}
		levels = append(levels, level(name, points[g.from:g.first+1], points[g.to].Bytes))
	}
	n := len(levels)
	if n == 0 || levels[n-1].Name != "memory" {
		return append(levels, absentLevel("memory", noMemory(curve, points)))
	}
	if n > 1 {
		before, memory := levels[n-2], levels[n-1]
		if memory.From > 4*before.To && memory.Cycles > 10*before.Cycles {
			why := fmt.Sprintf("the latency grows from %s to %s without a plateau: other programs may change the size of such a cache", Size(before.To), Size(memory.From))
			levels = append(levels[:n-1], absentLevel(fmt.Sprintf("L%d", n), why), memory)
		}
	}
	return levels
}

// noMemory says why a curve does not end on the level ground of memory.
func noMemory(curve, known []Point) string {
	switch n := len(known); {
	case n > 0 && known[n-1].Nanos < memoryNanos:
		return fmt.Sprintf("working sets up to %s, which is all that could be measured, fit the caches", Size(known[n-1].Bytes))
	case n == 0:
		return "no working set could be measured: the machine is too busy"
	case known[n-1].Bytes < curve[len(curve)-1].Bytes:
		return "no working set above " + Size(known[n-1].Bytes) + " could be measured: the machine is too busy"
	}
	return "the latency still grows with the largest working set that was measured"
}

// level is the level ground of some points: the point that shows it best. A cache's level
// is refused if that point is too uncertain.
func level(name string, points []Point, to int) Level {
	var at Point
	if name == "memory" {
		least := slices.MinFunc(points, func(a, b Point) int { return cmp.Compare(a.uncertainty(), b.uncertainty()) }).uncertainty()
		at = typicalPoint(certain(points, 3*least))
	} else {
		at = cachePoint(points, name == "L1")
	}
	l := Level{Name: name, Cycles: at.Cycles, Nanos: at.Nanos, Error: at.Error, From: points[0].Bytes, To: to}
	if u := at.uncertainty(); name != "memory" && u > tooUncertain {
		return absentLevel(name, fmt.Sprintf("about %.0f cycles, but the best samples are %.0f %% apart: the machine is too busy", float64(at.Cycles), 100*u))
	}
	return l
}

// cachePoint is the point that shows a cache best. If most points are certain, it is the
// one at their typical latency. Otherwise it is the one with the least upper bound, since
// disturbances make latencies longer. It leaves out the points at the edges of a level
// behind another one, whose latencies are mixtures.
func cachePoint(points []Point, first bool) Point {
	if good := certain(points, certainEnough); 2*len(good) >= len(points) {
		return typicalPoint(good)
	}
	inner := points
	if !first && len(inner) > 1 {
		inner = inner[1:]
	}
	if len(inner) > 1 {
		inner = inner[:len(inner)-1]
	}
	return slices.MinFunc(inner, func(a, b Point) int { return cmp.Compare(a.Cycles+a.Error, b.Cycles+b.Error) })
}

// certain returns the points whose uncertainty is at most a share, or too small to matter.
func certain(points []Point, most float64) []Point {
	return sorting.Delete(slices.Clone(points), func(p Point) bool { return p.uncertainty() > max(most, certainEnough) })
}

// typicalPoint is the point that has the typical latency.
func typicalPoint(points []Point) Point {
	var cycles []float64
	for _, p := range points {
		cycles = append(cycles, float64(p.Cycles))
	}
	middle := Number(typical(cycles))
	return points[slices.IndexFunc(points, func(p Point) bool { return p.Cycles == middle })]
}

// Shares of a latency: an error that does not matter, and the largest error for reporting
// of a cache. That of memory varies by itself.
const (
	certainEnough = 0.01
	tooUncertain  = 0.1
)

// uncertainty is a point's error as a share of its latency.
func (p Point) uncertainty() float64 { return float64(p.Error / p.Cycles) }

func absentLevel(name, why string) Level {
	return Level{Name: name, Cycles: unknown, Nanos: unknown, Error: unknown, Why: why}
}

// Level returns the level of a name; nil if its latency is not known.
func (r *Result) Level(name string) *Level {
	for i := range r.Levels {
		if l := &r.Levels[i]; l.Name == name && l.Why == "" {
			return l
		}
	}
	return nil
}

// Size is a number of bytes in words.
func Size(bytes int) string {
	switch {
	case bytes >= 1<<30:
		return fmt.Sprintf("%.4g GiB", float64(bytes)/(1<<30))
	case bytes >= 1<<20:
		return fmt.Sprintf("%.4g MiB", float64(bytes)/(1<<20))
	case bytes >= 1<<10:
		return fmt.Sprintf("%.4g KiB", float64(bytes)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", bytes)
}

// A pageLevel is level ground of a curve of pages: its extra cost and its last
// point.
type pageLevel struct {
	cost, err Number
	to        int // pages
}

// pageLevels finds the level ground of the extra cost of pages. The whole latency of a load
// is level, including the share of the first cache.
func pageLevels(points []PagePoint, l1 float64) []pageLevel {
	var x, y []float64
	var known []PagePoint
	for _, p := range points {
		if p.Why == "" {
			x, y, known = append(x, float64(p.Pages)), append(y, max(float64(p.Cycles), 0)+l1), append(known, p)
		}
	}
	var levels []pageLevel
	for _, g := range findGrounds(x, y) {
		l := pageLevel{cost: Number(g.cycles - l1), to: known[g.to].Pages}
		for _, p := range known[g.from : g.to+1] {
			if max(float64(p.Cycles), 0)+l1 == g.cycles {
				l.err = p.Error
			}
		}
		levels = append(levels, l)
	}
	return levels
}

// pageCosts reads two figures from a curve of pages: the cost of a page that only the
// second TLB has, and of one that no TLB has. On the first level ground the first TLB has
// the pages. If there is no second TLB, the one step of the curve is the walk. Walks may
// cost more with more pages, because the page tables leave the caches; then the cost is
// that at the last point.
func pageCosts(points []PagePoint, l1 float64) (second, walk Figure) {
	second = Figure{Name: "stlb-hit", Title: "page that only the second TLB has: extra", Unit: "cycles/load"}
	walk = Figure{Name: "page-walk", Title: "page that no TLB has: extra", Unit: "cycles/walk"}
	levels := pageLevels(points, l1)
	second.Value, second.Error, walk.Value, walk.Error = unknown, unknown, unknown, unknown
	if len(levels) == 0 {
		second.Why = "the cost grows with every number of pages, without a plateau"
		walk.Why = second.Why
		return second, walk
	}
	last, before, ok := lastOctave(points)
	top := levels[len(levels)-1]
	if ok && len(levels) < 3 && last.Pages < points[len(points)-1].Pages/2 {
		second.Why = fmt.Sprintf("more than %d pages could not be measured: the machine is too busy", last.Pages)
		walk.Why = second.Why
		return second, walk
	}
	climbs := ok && last.Pages >= 2*top.to && float64(last.Cycles)+l1 > levelApart*(float64(top.cost)+l1)
	switch {
	case len(levels) > 2:
		second.Value, second.Error = levels[1].cost, levels[1].err
		walk.Value, walk.Error = levels[2].cost, levels[2].err
	case len(levels) == 2 && climbs:
		second.Value, second.Error = levels[1].cost, levels[1].err
		walk = climbing(walk, last, before)
	case len(levels) == 2:
		second.Why = "the cost has one step only, which is taken for that of the page walk"
		walk.Value, walk.Error = levels[1].cost, levels[1].err
	case climbs:
		second.Why = "the cost grows without a plateau"
		walk = climbing(walk, last, before)
	default:
		second.Why = fmt.Sprintf("no step in the cost up to %d pages", top.to)
		walk.Why = second.Why
	}
	return second, walk
}

// climbing is the cost of a walk at a curve's last point, if the last doubling hardly
// changed it.
func climbing(walk Figure, last, before PagePoint) Figure {
	walk.Value, walk.Error = last.Cycles, max(last.Error, last.Cycles-before.Cycles)
	if uncertain(walk.Value, walk.Error) {
		walk.Why = fmt.Sprintf("the cost keeps growing: %.0f cycles with %d pages, %.0f with %d", before.Cycles, before.Pages, last.Cycles, last.Pages)
		walk.Value, walk.Error = unknown, unknown
	}
	return walk
}

// lastOctave returns the last point of a curve of pages, and the last with half as many
// or less.
func lastOctave(points []PagePoint) (last, before PagePoint, ok bool) {
	for _, p := range slices.Backward(points) {
		switch {
		case p.Why != "":
		case last.Pages == 0:
			last = p
		case p.Pages <= last.Pages/2:
			return last, p, true
		}
	}
	return last, before, false
}

// uncertain says whether a figure is useless because of its error: more than a quarter of
// it, or for figures about 0 more than half a cycle.
func uncertain(value, err Number) bool {
	return float64(err) > max(0.5, math.Abs(float64(value))/4)
}
