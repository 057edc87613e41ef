package calibrate

import (
	"fmt"
	"math"
	"slices"

	"github.com/cyclestack/cyclestack/internal/penalties"
)

// Penalties returns the parameters of models that the result has values for, and those
// without a value, with Why. A penalty is the time that a load or branch loses: for a cache
// level, its latency less that of the first level.
//
// A value below 0 means that no cost was seen. It is 0 in the list, if the error allows
// that.
func (r *Result) Penalties() []penalties.Penalty {
	list := []penalties.Penalty{r.levelPenalty("L2", "L2_HIT_PENALTY")}
	if r.Level("memory") != nil && !r.hasLevel("L3") {
		// Without a third level, memory answers what misses the second.
		list = append(list, r.levelPenalty("memory", "L2_MISS_PENALTY"))
	} else {
		list = append(list, r.levelPenalty("L3", "L3_HIT_PENALTY"), r.levelPenalty("memory", "L3_MISS_PENALTY"))
	}
	if f, ok := r.remoteMemory(); ok {
		list = append(list, r.lessL1(f, penalties.Penalty{Name: "REMOTE_DRAM_PENALTY", Unit: "cycles/load"}))
	}
	for _, m := range penalties.Costs {
		f := r.cost(m.Cost)
		if f == nil {
			continue
		}
		list = append(list, none(penalties.Penalty{Name: m.Name, Unit: m.Unit, Value: float64(f.Value), Error: float64(f.Error),
			From: f.Title, Why: f.Why, Unless: m.Unless, Cases: r.cases(m.Name)}))
	}
	list = append(list, r.bandwidthPenalty(), r.busPenalty(), r.thirdSize())
	if f := r.Peak; f != nil {
		list = append(list, penalties.Penalty{Name: penalties.FlopPeak, Unit: f.Unit, Value: float64(f.Value), Error: float64(f.Error), From: f.Title + ", 1 thread", Why: f.Why})
	}
	f := &r.Clock
	return append(list, penalties.Penalty{Name: "FREQUENCY", Unit: "cycles/second", Value: float64(f.Value), Error: float64(f.Error), From: f.Title, Why: f.Why})
}

// cases returns the figures of the other costs that a parameter's event may stand for.
func (r *Result) cases(parameter string) []string {
	var list []string
	for _, name := range penalties.Cases[parameter] {
		if f := r.cost(name); f != nil && f.Why == "" {
			list = append(list, fmt.Sprintf("%s, %.2f ± %.2f", f.Title, f.Value, f.Error))
		}
	}
	return list
}

func (r *Result) bandwidthPenalty() penalties.Penalty {
	p := penalties.Penalty{Name: penalties.Bandwidth, Unit: "bytes/second"}
	for i := range r.Bandwidth {
		f := &r.Bandwidth[i]
		if f.Kernel == "read" && !f.Streaming && f.Threads == 1 {
			p.Value, p.Error, p.From, p.Why = float64(f.Value), float64(f.Error), f.Title+", 1 thread", f.Why
			if f.Why != "" {
				return absentPenalty(p, f.Why)
			}
			return p
		}
	}
	return absentPenalty(p, "the bandwidth was not measured")
}

// busPenalty returns the most that any number of threads moved. Only kernels count whose
// bytes are those on the bus: a store that is not streaming reads its line first.
func (r *Result) busPenalty() penalties.Penalty {
	p := penalties.Penalty{Name: penalties.BusBandwidth, Unit: "bytes/second"}
	for i := range r.Bandwidth {
		f := &r.Bandwidth[i]
		if f.Why == "" && (f.Kernel == "read" || f.Streaming) && float64(f.Value) > p.Value {
			p.Value, p.Error, p.From = float64(f.Value), float64(f.Error), fmt.Sprintf("%s, %d threads", f.Title, f.Threads)
		}
	}
	if p.Value == 0 {
		return absentPenalty(p, "the bandwidth was not measured")
	}
	return p
}

// thirdSize returns how much of the third-level cache the machine had left for one program. All
// lines of a working set are read one after the other, in a random order, again and again. The
// cache replaces any line. After m misses a line is still among s lines with the probability
// e^(−m/s). Of a set of w lines, a share h hits with h = e^(−(1−h)·w/s). For a half that is
// s = w / (2 ln 2).
// A share of the lines leaves because others use the cache, if these lines are read seldom. Then
// h is for the others only. If that alone makes half of the misses, the size cannot be seen.
// Where the cache has no latency of its own, a sixth of that of memory stands for it.
func (r *Result) thirdSize() penalties.Penalty {
	p := penalties.Penalty{Name: penalties.ThirdSize, Unit: "bytes"}
	memory := r.Level("memory")
	if memory == nil {
		return absentPenalty(p, "the curve of latencies shows no memory")
	}
	third := memory.Cycles / 6
	if level := r.Level("L3"); level != nil {
		third = level.Cycles
	}
	half := (memory.Cycles + third) / 2
	bytes := r.halfAt(half)
	gone := leftAfter(bytes/usualLine*float64(half), r.life())
	switch {
	case bytes == 0:
		return absentPenalty(p, "the curve of latencies does not come to memory")
	case gone >= 0.5:
		return absentPenalty(p, "lines leave before a working set comes round that exceeds the cache")
	}
	p.Value, p.From = bytes/(2*math.Log(2*(1-gone))), "memory and caches answer by halves a working set 1.39 times as large"
	return p
}

// life is the half-life in cycles of unused lines in the third level; infinite if it is not known.
func (r *Result) life() float64 {
	if f := r.cost("third-lifetime"); f != nil && f.Why == "" {
		return float64(f.Value)
	}
	return math.Inf(1)
}

// usualLine is the bytes of a line on most machines.
const usualLine = 64

// halfAt returns the size where the curve first has a latency; 0 if it never has.
func (r *Result) halfAt(cycles Number) float64 {
	var before *Point
	for i := range r.Curve {
		at := &r.Curve[i]
		if at.Why != "" {
			continue
		}
		if at.Cycles >= cycles {
			to := float64(at.Bytes)
			if before == nil {
				return to
			}
			from := float64(before.Bytes)
			return from + (to-from)*float64((cycles-before.Cycles)/(at.Cycles-before.Cycles))
		}
		before = at
	}
	return 0
}

func (r *Result) cost(name string) *Figure {
	for i := range r.Costs {
		if r.Costs[i].Name == name {
			return &r.Costs[i]
		}
	}
	return nil
}

func (r *Result) hasLevel(name string) bool {
	return slices.ContainsFunc(r.Levels, func(l Level) bool { return l.Name == name })
}

// remoteMemory returns the slowest memory of another NUMA node.
func (r *Result) remoteMemory() (Figure, bool) {
	var slowest Figure
	found := false
	for _, f := range r.Costs {
		var node int
		if n, _ := fmt.Sscanf(f.Name, "memory-node-%d", &node); n == 1 && (!found || f.Value > slowest.Value) {
			slowest, found = f, true
		}
	}
	return slowest, found
}

func (r *Result) levelPenalty(level, name string) penalties.Penalty {
	p := penalties.Penalty{Name: name, Unit: "cycles/load"}
	for _, l := range r.Levels {
		if l.Name == level {
			return r.lessL1(Figure{Title: level, Value: l.Cycles, Error: l.Error, Why: l.Why}, p)
		}
	}
	return absentPenalty(p, "the curve of latencies shows no "+level)
}

// lessL1 is a latency less that of the first level.
func (r *Result) lessL1(f Figure, p penalties.Penalty) penalties.Penalty {
	p.From = f.Title + " less L1"
	l1 := r.Level("L1")
	switch {
	case f.Why != "":
		return absentPenalty(p, f.Why)
	case l1 == nil:
		return absentPenalty(p, "the latency of L1 is not known")
	}
	p.Value = float64(f.Value - l1.Cycles)
	p.Error = float64(f.Error + l1.Error)
	return p
}

func absentPenalty(p penalties.Penalty, why string) penalties.Penalty {
	p.Value, p.Error, p.Why = math.NaN(), math.NaN(), why
	return p
}

// none returns 0 for a cost just below 0: there is no cost.
func none(p penalties.Penalty) penalties.Penalty {
	switch {
	case p.Why != "" || p.Value >= 0:
	case -p.Value <= max(p.Error, 0.1):
		p.Value = 0
	default:
		p = absentPenalty(p, fmt.Sprintf("%.2f cycles: what should cost more costs less", p.Value))
	}
	return p
}
