package model

import (
	"slices"
	"testing"
)

// TestRelationsAreUsed checks that some processor has each relation, and each event that
// relations name: a name with a slip in it would be passed over.
func TestRelationsAreUsed(t *testing.T) {
	cat, err := Embedded()
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	var tables []*EventTable
	for _, cpu := range cat.CPUs() {
		table, err := cat.Events(cpu)
		if err != nil {
			t.Fatal(err)
		}
		tables = append(tables, table)
		_, relations, err := table.Relations()
		if err != nil {
			t.Fatalf("%s: %v", cpu.Name, err)
		}
		for i := range relations {
			used[relations[i].File+" "+relations[i].Name] = true
		}
	}
	known := func(event string) bool {
		return slices.ContainsFunc(tables, func(t *EventTable) bool { _, ok := t.Lookup(event); return ok })
	}
	for _, stem := range []string{"any", "intel", "amd", "arm", "power", "none"} {
		m, err := cat.lib.readRelations(relationsDir + "/" + stem + ".toml")
		if err != nil {
			t.Error(err)
			continue
		}
		for i := range m.Relations {
			rel := &m.Relations[i]
			if !used[rel.File+" "+rel.Name] {
				t.Errorf("%s:%d: no processor has the events of %q", rel.File, rel.Line, rel.Name)
			}
			for _, event := range rel.Each {
				if slices.ContainsFunc(m.Inputs, func(in Input) bool { return in.Name == event }) {
					continue
				}
				if stem != "none" && !known(event) {
					t.Errorf("%s:%d: %s: no processor has %s", rel.File, rel.Line, rel.Name, event)
				}
			}
			if rel.Fails == "" || rel.Source == "" || rel.Tolerance > 0 && rel.Slack == "" {
				t.Errorf("%s:%d: %s: it does not say what its failure means, where it comes from or why its tolerance is what it is", rel.File, rel.Line, rel.Name)
			}
		}
		for i := range m.Inputs {
			for _, event := range m.Inputs[i].Events {
				if stem != "none" && !known(event) {
					t.Errorf("%s:%d: input %s: no processor has %s", m.Inputs[i].File, m.Inputs[i].Line, m.Inputs[i].Name, event)
				}
			}
		}
	}
}
