package model_test

import (
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/model"
)

// TestWithLoops puts the nodes of hot loops into every method that they are for. Each is
// below a node that the method has, and has a title and a text.
func TestWithLoops(t *testing.T) {
	c, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	divided := 0
	for _, cpu := range c.CPUs() {
		for _, info := range c.Models(cpu.Name) {
			m, err := c.Model(info.Name, cpu.Name)
			if err != nil {
				t.Fatal(err)
			}
			with, err := c.WithLoops(m, cpu)
			if err != nil {
				t.Errorf("%s of %s: %v", info.Name, cpu.Name, err)
			}
			if with == nil {
				if m.Node("Core_Bound") != nil {
					t.Errorf("%s of %s has Core_Bound without parts", info.Name, cpu.Name)
				}
				continue
			}
			divided++
			chain := with.Node("Chain_Latency")
			if m.Node("Chain_Latency") != nil || chain == nil || chain.Title == "" || chain.About == "" ||
				!strings.HasSuffix(strings.ToLower(chain.Path), "bound.chain_latency") && !strings.HasSuffix(chain.Path, "backend_bound_cpu.Chain_Latency") {
				t.Errorf("%s of %s: %+v", info.Name, cpu.Name, chain)
			}
			if len(with.Nodes) < len(m.Nodes)+5 || with.Name != m.Name || with.Unit != m.Unit || with.Version != m.Version {
				t.Errorf("%s of %s has %d nodes, %d with loops", info.Name, cpu.Name, len(m.Nodes), len(with.Nodes))
			}
		}
	}
	if divided < 30 {
		t.Errorf("%d methods have nodes for hot loops", divided)
	}
}
