package cyclestack

import (
	"slices"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// coreOf is a machine's type of cores, by the processor's name.
func coreOf(t *testing.T, name string) *measure.CoreType {
	t.Helper()
	cat, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	cpu, err := cat.CPU(name)
	if err != nil {
		t.Fatal(err)
	}
	return &measure.CoreType{CPU: cpu}
}

// TestPlanErrata checks that nothing is planned for that Linux would never count.
func TestPlanErrata(t *testing.T) {
	_, p, err := planFor(coreOf(t, "haswellx"), &perfevent.Probe{SMT: true, Counters: 4}, Options{Level: 6})
	if err != nil {
		t.Fatal(err)
	}
	if i := slices.IndexFunc(p.Warnings, func(w string) bool { return strings.Contains(w, "will not be counted") }); i >= 0 {
		t.Error(p.Warnings[i])
	}
}

// TestHalfCores checks that what is about whole cores is not relied upon where
// logical processors share them, and what is not is.
func TestHalfCores(t *testing.T) {
	const level = 1
	for _, smt := range []bool{false, true} {
		method, p, err := planFor(coreOf(t, "skylakex"), &perfevent.Probe{SMT: smt}, Options{Level: level})
		if err != nil {
			t.Fatal(err)
		}
		l := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("")}}
		for _, e := range p.Groups[0].Events {
			l.Columns = append(l.Columns, counts.Column{Event: e.Name, Group: 1})
		}
		table := counts.NewTable(l)
		table.Reset(l)
		table.Duration = 1
		for k, c := range l.Columns {
			v := 1e9
			if strings.HasPrefix(c.Event, "IDQ_UOPS_NOT_DELIVERED.") || strings.HasPrefix(c.Event, "INT_MISC.") {
				v = 1e8
			}
			table.Row(0)[k] = counts.Cell{State: counts.Counted, Value: v, Enabled: 1e9, Running: 1e9}
		}
		m := &Measurement{binding: method.Bind, smt: smt}
		a := m.evaluate(table)
		for _, n := range p.Nodes {
			if v := &a.Nodes[n.Index]; !v.Known() || v.Reliable() == smt || smt && v.Doubt != account.DoubtCore {
				t.Errorf("SMT %t: %s is %g, doubt %q", smt, method.Model.Nodes[n.Index].Name, v.Value, v.Doubt)
			}
		}
		if said := slices.ContainsFunc(a.Notes, func(n counts.Note) bool { return n.Kind == counts.NoteHalfCores }); said != smt {
			t.Errorf("SMT %t: notes %q", smt, a.Notes)
		}
	}
}
