package account_test

import (
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
)

// TestFullWidth checks that code at the core's full width is bound by that. With QEMU it may be half of the native run.
func TestFullWidth(t *testing.T) {
	m, err := account.Load("generic", "simulated-cycles", account.Options{Params: map[string]float64{"FREQUENCY": 1e9}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		native, useful, branches float64
		qemu                     bool
		want                     string
	}{
		{1000, 960, 0, true, "Issue Useful_Dispatch"},
		{1800, 960, 0, true, "Issue Useful_Dispatch"},
		{2300, 960, 0, true, ""},                       // most of the run is something else
		{1100, 840, 0, true, ""},                       // the core waits for something
		{1800, 960, 500, true, "Branch_Misprediction"}, // mispredictions come to a third
		{1800, 960, 0, false, ""},                      // valgrind does not simulate all
		{1000, 960, 0, false, "Issue Useful_Dispatch"},
	} {
		readings := []reading{{event: "Ct", value: 1000}, {event: "Cbt", value: tt.branches}, {event: "user_time", value: tt.native},
			{event: "core.useful", value: tt.useful}, {event: "core.other", value: 1000 - tt.useful}}
		zero := "Iru Bcmu Bimu D1mru D1mwu DLmru DLmwu I1mr ILmr D1mr.exposed DLmr.exposed DLm.memory DLmr.memory.exposed C2t C3t Cmt" +
			" system_time core.chain core.ports core.divider core.frontend core.forwarding"
		if tt.qemu {
			zero += " Cpt DTu Wdu"
		}
		for _, e := range strings.Fields(zero) {
			readings = append(readings, reading{event: e})
		}
		a := run(t, m, 1, readings...)
		if got := names(a, a.Bottleneck); got != tt.want {
			t.Errorf("%+v: bottleneck %q", tt, got)
		}
	}
}

// TestWithWhole checks that scopes get what the model divides as a count of their own.
func TestWithWhole(t *testing.T) {
	m, err := account.Load("generic", "simulated-cycles", account.Options{Params: map[string]float64{
		"INSTRUCTIONS_PER_CYCLE": 2, "OVERLAP": 10, "L2_HIT_PENALTY": 10}})
	if err != nil {
		t.Fatal(err)
	}
	l := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("all"), counts.RunScope("part"), counts.RunScope("unknown")}}
	for _, e := range []string{"Ir", "D1mr", "D1mw", "DLmr", "DLmw", "I1mr", "ILmr", "Bcm", "Bim", "D1mr.exposed", "DLmr.exposed", "DLm.memory", "DLmr.memory.exposed"} {
		l.Columns = append(l.Columns, counts.Column{Event: e})
	}
	table := counts.NewTable(l)
	for row, values := range map[int][2]float64{0: {1000, 100}, 1: {400, 20}} {
		for c := range l.Columns {
			*table.Cell(row, c) = counts.Cell{State: counts.Counted}
		}
		table.Cell(row, 0).Value, table.Cell(row, 1).Value = values[0], values[1]
	}
	table.Label, table.Duration, table.Elapsed, table.Line, table.Relative, table.CPU = "x", 3, 0.1, 7, true, "core2"
	table.Notes = []counts.Note{counts.Notef("a note")}
	got := m.WithWhole(table, "cycles")
	if got.Label != "x" || got.Duration != 3 || got.Elapsed != 0.1 || got.Line != 7 || !got.Relative || got.CPU != "core2" || len(got.Notes) != 1 {
		t.Errorf("the table is described as %+v", got)
	}
	last := len(got.Columns) - 1
	if got.Columns[last].Event != "cycles" || len(got.Columns) != len(l.Columns)+1 {
		t.Fatalf("columns %v", got.Columns)
	}
	for row, want := range map[int]float64{0: 1000/2.0 + 100/10.0*10, 1: 400/2.0 + 20/10.0*10} {
		if c := got.Cell(row, last); !c.Ok() || c.Value != want {
			t.Errorf("row %d: %+v, want %v", row, c, want)
		}
		if got.Cell(row, 0).Value != table.Cell(row, 0).Value {
			t.Errorf("row %d: the counts changed", row)
		}
	}
	if c := got.Cell(2, last); c.Ok() {
		t.Errorf("the whole of what was not counted: %+v", c)
	}
	unknown := counts.NewTable(l)
	if m.WithWhole(unknown, "cycles") != nil {
		t.Error("a whole of nothing")
	}
	plain, err := account.Load("generic", "os-time", account.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if plain.WithWhole(table, "cycles") != nil {
		t.Error("the whole of a model that divides none")
	}
}
