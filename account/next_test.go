package account

import (
	"testing"

	"github.com/cyclestack/cyclestack/counts"
)

// TestPrecise: the event that locates a node, precise where it can be.
func TestPrecise(t *testing.T) {
	for _, tt := range []struct{ cpu, node, want string }{
		{"skylake", "DRAM_Bound", "cpu/event=0xd1,umask=0x20/pp"},
		{"skylake", "Core_Bound", "cycles:pp"},
		{"core2", "L2_Miss", "cpu/event=0xcb,umask=0x8/pp"},
		{"power7", "LSU_STALL_DCACHE_MISS_CPI", "r20016"},
		{"amdzen4", "backend_bound", "cpu/event=0x1a0,umask=0x1e/"},
		{"neoverse-n2", "backend_bound", "r3d"},
		{"amdzen4", "retiring", "cpu/event=0xc1/"},
	} {
		method, err := Load(tt.cpu, "", Options{})
		if err != nil {
			t.Fatal(err)
		}
		a := method.Bind(&counts.Layout{Scopes: []counts.Scope{counts.RunScope("run")}}).Evaluate(
			counts.NewTable(&counts.Layout{Scopes: []counts.Scope{counts.RunScope("run")}}), Place{}, nil)
		i, ok := a.Node(tt.node)
		if !ok {
			t.Errorf("%s has no node %s", tt.cpu, tt.node)
			continue
		}
		g := guide{a, Provenance{}, i}
		if got := g.precise(); got != tt.want {
			t.Errorf("%s %s: %s, want %s", tt.cpu, tt.node, got, tt.want)
		}
	}
}
