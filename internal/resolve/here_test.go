package resolve_test

import (
	"testing"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/resolve"
)

// TestHere checks when a recording without a processor is taken for one of this machine's:
// if it has events by the names of its processor. Codes and the kernel's names do not tell.
func TestHere(t *testing.T) {
	for _, tt := range []struct {
		name, here string
		events     []string
		want       string
	}{
		{"names of its own", "GenuineIntel-6-A7-1", []string{"cycles", "INST_RETIRED.ANY", "CYCLE_ACTIVITY.STALLS_L3_MISS"}, "rocketlake"},
		{"names in lower case", "GenuineIntel-6-A7-1", []string{"inst_retired.any:u"}, "rocketlake"},
		{"a code", "GenuineIntel-6-A7-1", []string{"cycles", "page-faults", "r0c4"}, "generic"},
		{"the kernel's names", "GenuineIntel-6-A7-1", []string{"cycles", "instructions", "page-faults"}, "generic"},
		{"names of another vendor's", "GenuineIntel-6-A7-1", []string{"PM_CMPLU_STALL_DCACHE_MISS"}, "generic"},
		{"a machine that is not known", "", []string{"INST_RETIRED.ANY"}, "generic"},
	} {
		r, err := resolve.New(resolve.Choice{Here: tt.here})
		if err != nil {
			t.Fatal(err)
		}
		l := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("")}}
		for _, e := range tt.events {
			l.Columns = append(l.Columns, counts.Column{Event: e})
		}
		table := counts.NewTable(l)
		for i := range l.Columns {
			*table.Cell(0, i) = counts.Cell{Value: 1e9, State: counts.Counted}
		}
		m, err := r.Table(table, "file", resolve.Request{Anywhere: true}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if m.CPU.Name != tt.want || m.Here != (tt.want != "generic") {
			t.Errorf("%s: %s, this machine's: %v", tt.name, m.CPU.Name, m.Here)
		}
	}
}
