package calibrate

import (
	"fmt"
	"math"
)

// A Penalty is a parameter of accounting models with the value measured for it.
type Penalty struct {
	Name  string // of the parameter
	Unit  string
	Value float64
	Error float64 // the spread of the best samples, in the same unit
	From  string  // the figures that it comes from, in words
	Why   string  // why there is no value
	// Unless names a node: in models with that node the parameter means something else.
	Unless string
}

// Penalties returns the parameters of models that the result has values for, and those
// without a value, with Why. A penalty is the time that a load or branch loses: for a cache
// level, its latency less that of the first level.
//
// A value below 0 means that no cost was seen. It is 0 in the list, if the error allows
// that.
func (r *Result) Penalties() []Penalty {
	list := []Penalty{r.levelPenalty("L2", "L2_HIT_PENALTY")}
	if _, ok := r.Level("memory"); ok && !r.hasLevel("L3") {
		// Without a third level, memory answers what misses the second.
		list = append(list, r.levelPenalty("memory", "L2_MISS_PENALTY"))
	} else {
		list = append(list, r.levelPenalty("L3", "L3_HIT_PENALTY"), r.levelPenalty("memory", "L3_MISS_PENALTY"))
	}
	if f, ok := r.remoteMemory(); ok {
		list = append(list, r.lessL1(f, Penalty{Name: "REMOTE_DRAM_PENALTY", Unit: "cycles/load"}))
	}
	for _, m := range costPenalties {
		f := r.cost(m.cost)
		if f == nil {
			continue
		}
		list = append(list, none(Penalty{Name: m.name, Unit: m.unit, Value: float64(f.Value), Error: float64(f.Error), From: f.Title, Why: f.Why, Unless: m.unless}))
	}
	list = append(list, r.bandwidthPenalty())
	f := &r.Clock
	return append(list, Penalty{Name: "FREQUENCY", Unit: "cycles/second", Value: float64(f.Value), Error: float64(f.Error), From: f.Title, Why: f.Why})
}

// costPenalties has the figure of each parameter. Models differ in the meaning of a name:
// with another unit it is another parameter.
var costPenalties = []struct{ name, unit, cost, unless string }{
	{"STLB_HIT_PENALTY", "cycles/load", "stlb-hit", ""},
	{"DTLB_WALK_PENALTY", "cycles/walk", "page-walk", ""},
	{"DTLB_MISS_PENALTY", "cycles/load", "page-walk", ""},
	{"BRANCH_MISPREDICT_PENALTY", "cycles/branch", "branch-mispredict", ""},
	// If the cycles of recovery are counted, the parameter is the rest.
	{"BRANCH_RESTEER_PENALTY", "cycles/branch", "branch-mispredict", "Branch_Mispredict_Clear"},
	{"STORE_ADDRESS_PENALTY", "cycles/load", "store-address", ""},
	{"STORE_OVERLAP_PENALTY", "cycles/load", "store-forward-overlap", ""},
	{"ALIAS_PENALTY", "cycles/load", "alias-4k", ""},
	{"SPLIT_LOAD_PENALTY", "cycles/load", "split-line-load", ""},
	{"LCP_PENALTY", "cycles/stall", "length-changing-prefix", ""},
	{"FP_ASSIST_PENALTY", "cycles/assist", "denormal", ""},
}

// Parameters returns the parameters of models that a calibration can measure, without
// values. No machine has all of them.
func Parameters() []Penalty {
	list := []Penalty{{Name: "L2_HIT_PENALTY"}, {Name: "L2_MISS_PENALTY"}, {Name: "L3_HIT_PENALTY"}, {Name: "L3_MISS_PENALTY"}, {Name: "REMOTE_DRAM_PENALTY"}}
	for i := range list {
		list[i].Unit = "cycles/load"
	}
	for _, m := range costPenalties {
		list = append(list, Penalty{Name: m.name, Unit: m.unit, Unless: m.unless})
	}
	list = append(list, Penalty{Name: bandwidthName, Unit: "bytes/second"}, Penalty{Name: "FREQUENCY", Unit: "cycles/second"})
	for i := range list {
		list[i].Value, list[i].Error = math.NaN(), math.NaN()
	}
	return list
}

// bandwidthName is the parameter of what one core can read from memory in a second.
const bandwidthName = "MEMORY_BANDWIDTH"

func (r *Result) bandwidthPenalty() Penalty {
	p := Penalty{Name: bandwidthName, Unit: "bytes/second"}
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

func (r *Result) cost(name string) *Figure {
	for i := range r.Costs {
		if r.Costs[i].Name == name {
			return &r.Costs[i]
		}
	}
	return nil
}

func (r *Result) hasLevel(name string) bool {
	for _, l := range r.Levels {
		if l.Name == name {
			return true
		}
	}
	return false
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

func (r *Result) levelPenalty(level, name string) Penalty {
	p := Penalty{Name: name, Unit: "cycles/load"}
	for _, l := range r.Levels {
		if l.Name == level {
			return r.lessL1(Figure{Title: level, Value: l.Cycles, Error: l.Error, Why: l.Why}, p)
		}
	}
	return absentPenalty(p, "the curve of latencies shows no "+level)
}

// lessL1 is a latency less that of the first level.
func (r *Result) lessL1(f Figure, p Penalty) Penalty {
	p.From = f.Title + " less L1"
	l1, ok := r.Level("L1")
	switch {
	case f.Why != "":
		return absentPenalty(p, f.Why)
	case !ok:
		return absentPenalty(p, "the latency of L1 is not known")
	}
	p.Value = float64(f.Value - l1.Cycles)
	p.Error = float64(f.Error + l1.Error)
	return p
}

func absentPenalty(p Penalty, why string) Penalty {
	p.Value, p.Error, p.Why = math.NaN(), math.NaN(), why
	return p
}

// none returns 0 for a cost just below 0: there is no cost.
func none(p Penalty) Penalty {
	switch {
	case p.Why != "" || p.Value >= 0:
	case -p.Value <= max(p.Error, 0.1):
		p.Value = 0
	default:
		p = absentPenalty(p, fmt.Sprintf("%.2f cycles: what should cost more costs less", p.Value))
	}
	return p
}
