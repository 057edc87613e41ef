// Package penalties lists the parameters of models that a calibration measures. Models take
// them, and package calibrate measures them.
package penalties

import "math"

// A Penalty is a parameter of accounting models with the value measured for it.
type Penalty struct {
	Name  string // of the parameter
	Unit  string
	Value float64
	Error float64 // the spread of the best samples, in the same unit
	From  string  // the figures that it comes from, in words
	Why   string  // why there is no value
	// Cases are the other figures that an event of this penalty may stand for, each with what
	// it is.
	Cases []string
	// Unless names a node: in models with that node the parameter means something else.
	Unless string
}

// Bandwidth is the parameter of what one core can read from memory in a second.
const Bandwidth = "MEMORY_BANDWIDTH"

// BusBandwidth is the parameter of what all cores together can move to and from memory in a
// second.
const BusBandwidth = "BUS_BANDWIDTH"

// ThirdSize is the parameter of how much of the third-level cache there is for a program.
const ThirdSize = "L3_SIZE"

// FlopPeak is how many floating-point operations one core does in a second, of doubles and with
// the widest vectors. No model takes it: pictures do.
const FlopPeak = "FLOP_PEAK"

// Costs has the figure of a calibration for each parameter. Models differ in the meaning of a name:
// with another unit it is another parameter.
var Costs = []struct{ Name, Unit, Cost, Unless string }{
	{"STLB_HIT_PENALTY", "cycles/load", "stlb-hit", ""},
	{"DTLB_WALK_PENALTY", "cycles/walk", "page-walk", ""},
	{"PAGE_WALK_PENALTY", "cycles/load", "page-walk", ""},
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
	{"L3_LIFETIME", "cycles", "third-lifetime", ""},
}

// Cases has the other costs that may stand behind the event of a parameter. A load's overlap
// with an earlier store is cheap or dear by its kind. Intel's events count all kinds:
// Levinthal's table of penalties has two for one event.
var Cases = map[string][]string{
	"STORE_OVERLAP_PENALTY": {"store-forward-part", "store-forward-blocked", "alias-4k"},
	"SPLIT_LOAD_PENALTY":    {"split-page-load"},
}

// Parameters returns the parameters of models that a calibration can measure, without
// values. No machine has all of them.
func Parameters() []Penalty {
	list := []Penalty{{Name: "L2_HIT_PENALTY"}, {Name: "L2_MISS_PENALTY"}, {Name: "L3_HIT_PENALTY"}, {Name: "L3_MISS_PENALTY"}, {Name: "REMOTE_DRAM_PENALTY"}}
	for i := range list {
		list[i].Unit = "cycles/load"
	}
	for _, m := range Costs {
		list = append(list, Penalty{Name: m.Name, Unit: m.Unit, Unless: m.Unless})
	}
	list = append(list, Penalty{Name: Bandwidth, Unit: "bytes/second"}, Penalty{Name: BusBandwidth, Unit: "bytes/second"}, Penalty{Name: ThirdSize, Unit: "bytes"}, Penalty{Name: "FREQUENCY", Unit: "cycles/second"})
	for i := range list {
		list[i].Value, list[i].Error = math.NaN(), math.NaN()
	}
	return list
}
