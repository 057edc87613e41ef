package resolve

import (
	"errors"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/fault"
)

// tableOf is a table with events that were all counted once.
func tableOf(cpu string, events ...string) *counts.Table {
	l := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("")}}
	for _, e := range events {
		l.Columns = append(l.Columns, counts.Column{Event: e})
	}
	t := counts.NewTable(l)
	t.CPU, t.Duration = cpu, 1
	for i := range events {
		*t.Cell(0, i) = counts.Cell{Value: 1e9, Enabled: 1e9, Running: 1e9, State: counts.Counted}
	}
	return t
}

var levelOne = []string{"CPU_CLK_UNHALTED.THREAD", "IDQ_UOPS_NOT_DELIVERED.CORE", "UOPS_ISSUED.ANY", "UOPS_RETIRED.RETIRE_SLOTS", "INT_MISC.RECOVERY_CYCLES", "instructions"}

// TestTable: the method follows from the counts, and the search for it leaves the
// resolver and earlier results as they were.
func TestTable(t *testing.T) {
	r, err := New(Choice{})
	if err != nil {
		t.Fatal(err)
	}
	first, err := r.Table(tableOf("skylakex", levelOne...), "a.csv", Request{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if first.Model.Name != "tma" || first.CPU.Name != "skylakex" || first.File != "a.csv" || first.ID != "skylakex" {
		t.Errorf("%s for %s from %s (%s)", first.Model.Name, first.CPU.Name, first.File, first.ID)
	}
	if r.Named() != (Processor{}) {
		t.Errorf("the resolver has got a processor: %+v", r.Named())
	}
	again, err := r.Table(tableOf("skylakex", "instructions"), "b.csv", Request{}, first)
	if err != nil || again != first {
		t.Errorf("the second table: another method, %v", err)
	}
	other, err := r.Table(tableOf("skylakex", "task-clock"), "c.csv", Request{}, nil)
	if err != nil || other.Model.Name == "tma" {
		t.Errorf("the clock alone: %v, %v", other, err)
	}
	if first.Model.Name != "tma" {
		t.Error("the first result has changed")
	}
	_, err = r.Table(tableOf("power7", "PM_RUN_CYC"), "d.csv", Request{}, first)
	if fault.Of(err) != fault.Input || !strings.Contains(err.Error(), "a.csv is from skylakex") {
		t.Errorf("another processor: %v", err)
	}
}

// TestRead: a recording is read as from the processor that the user names, with a note.
func TestRead(t *testing.T) {
	r, err := New(Choice{CPU: "skylakex"})
	if err != nil {
		t.Fatal(err)
	}
	m, err := r.Table(tableOf("icelakex", levelOne...), "a.csv", Request{}, nil)
	if err != nil || m.CPU.Name != "skylakex" || !strings.Contains(m.Note.Text, "a.csv says that it is from icelakex") {
		t.Errorf("%+v, %v", m, err)
	}
}

// TestErrors: errors have a kind and name no flags.
func TestErrors(t *testing.T) {
	good := tableOf("skylakex", levelOne...)
	for _, tt := range []struct {
		name   string
		choice Choice
		table  *counts.Table
		want   fault.Kind
		text   string
	}{
		{"a processor", Choice{CPU: "nosuch"}, good, fault.Usage, "cpu: unknown processor"},
		{"a model", Choice{Model: "nosuch"}, good, fault.Usage, `no model "nosuch"`},
		{"SMT", Choice{Model: "tma", SMT: "maybe"}, good, fault.Usage, "smt maybe: must be on or off"},
		{"a parameter", Choice{Model: "tma", Params: []Param{{"X", "y"}}}, good, fault.Usage, `param X=y: "y" is not a number`},
		{"penalties", Choice{Model: "tma", Penalties: "/nosuch"}, good, fault.Input, "/nosuch"},
		{"a file of models", Choice{ModelFiles: []string{"/nosuch"}}, good, fault.Input, "/nosuch"},
		{"no processor", Choice{}, tableOf("", levelOne...), fault.Usage, "f.csv does not say which processor it is from"},
		{"an odd processor", Choice{}, tableOf("nosuch", "x"), fault.Input, "it says its processor is nosuch"},
		{"nodes", Choice{Nodes: "nosuch"}, good, fault.Usage, "nodes nosuch: no node of tma matches"},
	} {
		r, err := New(tt.choice)
		if err == nil {
			var m *Method
			if m, err = r.Table(tt.table, "f.csv", Request{}, nil); err == nil {
				err = m.CheckNodes()
			}
		}
		if fault.Of(err) != tt.want || !strings.Contains(err.Error(), tt.text) || strings.Contains(err.Error(), "--") {
			t.Errorf("%s: kind %v of %v, want %v and %q", tt.name, fault.Of(err), err, tt.want, tt.text)
		}
	}
}

// TestUnknownCPU: without a processor, what holds everywhere can be checked.
func TestUnknownCPU(t *testing.T) {
	r, err := New(Choice{})
	if err != nil {
		t.Fatal(err)
	}
	table := tableOf("", "CPU_CLK_UNHALTED.THREAD", "UOPS_RETIRED.RETIRE_SLOTS")
	var unknown *UnknownCPUError
	if _, err := r.Table(table, "f.csv", Request{}, nil); !errors.As(err, &unknown) || len(unknown.Fits) == 0 || unknown.Candidates() == "" {
		t.Errorf("%v: %+v", err, unknown)
	}
	m, err := r.Table(table, "f.csv", Request{Audits: true}, nil)
	if err != nil || m.CPU.Name != GenericCPU || m.Unknown == nil || !m.Audits {
		t.Errorf("%+v, %v", m, err)
	}
}

// TestNode: nodes are found by name or path in any case, and near names are suggested.
func TestNode(t *testing.T) {
	r, err := New(Choice{CPU: "power7"})
	if err != nil {
		t.Fatal(err)
	}
	m, err := r.ForNode("lsu_stall_cpi")
	if err != nil {
		t.Fatal(err)
	}
	if i, err := m.Node("LSU_Stall_CPI"); err != nil || m.Model.Nodes[i].Name != "LSU_STALL_CPI" {
		t.Errorf("%d, %v", i, err)
	}
	var node *NodeError
	if _, err := m.Node("LSU_STAL_CPI"); !errors.As(err, &node) || node.Near != "LSU_STALL_CPI" {
		t.Errorf("%v", err)
	}
}
