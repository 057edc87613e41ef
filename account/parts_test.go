package account_test

import (
	"math"
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
)

// TestParts: what nodes are parts of, and how large a part, for models that divide
// cycles, slots, and cycles per instruction.
func TestParts(t *testing.T) {
	for _, tt := range []struct {
		cpu, model string
		readings   []reading
		node, unit string
		part       float64
	}{
		{"power7", "power7-cpi", []reading{{event: "PM_RUN_CYC", value: 1000}, {event: "PM_RUN_INST_CMPL", value: 400}, {event: "PM_CMPLU_STALL", value: 300}},
			"STALL_CPI", "cycles", 0.3},
		{"power7", "power7-cpi", []reading{{event: "PM_RUN_CYC", value: 1000}, {event: "PM_CMPLU_STALL", value: 300}}, "STALL_CPI", "cycles", math.NaN()},
		{"skylakex", "tma", []reading{{event: "cycles", value: 1000}, {event: "UOPS_RETIRED.RETIRE_SLOTS", value: 1000}}, "Retiring", "slots", 0.25},
		{"skylakex", "tma", []reading{{event: "cycles", value: 1000}, {event: "instructions", value: 500}}, "Info_Thread_IPC", "", math.NaN()},
		{"core2", "core2-cycles", []reading{{event: "cycles", value: 1000}, {event: "RS_UOPS_DISPATCHED.CYCLES_NONE", value: 400}}, "Stalls", "cycles", 0.4},
		{"core2", "core2-cycles", []reading{{event: "cycles", value: 1000}, {event: "INST_RETIRED.ANY", value: 400}}, "CPI", "", math.NaN()},
	} {
		method, err := account.Load(tt.cpu, tt.model, account.Options{Params: map[string]float64{"#smt_on": 0}})
		if err != nil {
			t.Fatal(err)
		}
		a := run(t, method, 1, tt.readings...)
		i, ok := a.Node(tt.node)
		if !ok {
			t.Fatalf("%s has no node %s", tt.model, tt.node)
		}
		if got := a.Binding.PartUnit(i); got != tt.unit {
			t.Errorf("%s is a part of %q, want %q", tt.node, got, tt.unit)
		}
		if got := a.Part(i); !near(got, tt.part) && !(math.IsNaN(got) && math.IsNaN(tt.part)) {
			t.Errorf("%s is %v of all, want %v", tt.node, got, tt.part)
		}
	}
}

// TestWhole: the whole is the model's own in the unit asked for, else counted slots, else those
// of the cycles.
func TestWhole(t *testing.T) {
	for _, tt := range []struct {
		cpu, model string
		events     map[string]float64
		unit       string
		want       float64
	}{
		{"core2", "core2-cycles", map[string]float64{"cycles": 1000}, "cycles", 1000},
		{"power7", "power7-cpi", map[string]float64{"PM_RUN_CYC": 700}, "cycles", 700},
		{"skylakex", "tma", map[string]float64{"cycles": 1000}, "slots", 4000},
		{"icelakex", "tma", map[string]float64{"cycles": 1000, "slots": 4990}, "slots", 4990},
		{"icelakex", "tma", map[string]float64{"cycles": 1000}, "slots", 5000},
		{"skylakex", "tma", map[string]float64{"cycles": 1000}, "loads", math.NaN()},
		{"skylakex", "tma", map[string]float64{"instructions": 1000}, "slots", math.NaN()},
	} {
		method, err := account.Load(tt.cpu, tt.model, account.Options{Params: map[string]float64{"#smt_on": 0}})
		if err != nil {
			t.Fatal(err)
		}
		l := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("other"), counts.RunScope("this")}}
		var cells []counts.Cell
		for event, value := range tt.events {
			l.Columns = append(l.Columns, counts.Column{Event: event})
			cells = append(cells, counts.Cell{Value: value, State: counts.Counted})
		}
		table := counts.NewTable(l)
		copy(table.Row(1), cells)
		if got := method.Bind(l).Whole(table, account.Place{Self: 1}, tt.unit); !near(got, tt.want) && !(math.IsNaN(got) && math.IsNaN(tt.want)) {
			t.Errorf("%s of %s, from %v: %v, want %v", tt.unit, tt.cpu, tt.events, got, tt.want)
		}
	}
}
