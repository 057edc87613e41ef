package resolve

import (
	"testing"

	"github.com/cyclestack/cyclestack/counts"
	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
	"github.com/cyclestack/cyclestack/model"
)

// TestKernelOnly checks the assumption of KernelOnly: processors with methods of their
// own use no event that the kernel counts itself.
func TestKernelOnly(t *testing.T) {
	r, err := New(Choice{})
	if err != nil {
		t.Fatal(err)
	}
	table := counts.NewTable(&counts.Layout{Columns: []counts.Column{{Event: "cpu-clock:u"}, {Event: "page-faults"}}, Scopes: []counts.Scope{counts.RunScope("")}})
	more := counts.NewTable(&counts.Layout{Columns: []counts.Column{{Event: "cpu-clock"}, {Event: "cycles"}}, Scopes: table.Scopes})
	own := 0
	for _, cpu := range r.Catalogue.CPUs() {
		var p Processor
		if p.CPU, err = r.Catalogue.CPU(cpu.Name); err != nil {
			t.Fatal(err)
		}
		if r.KernelOnly(p, more) {
			t.Errorf("%s: cycles are not the kernel's", cpu.Name)
		}
		if !r.KernelOnly(p, table) {
			continue
		}
		own++
		for _, info := range r.Catalogue.Models(cpu.Name) {
			m, err := r.Method(p, info.Name)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range m.Account.Inputs() {
				if model.KernelCounts(name) {
					t.Errorf("%s, %s: it uses %s", cpu.Name, info.Name, name)
				}
			}
		}
	}
	generic, err := r.Catalogue.CPU(GenericCPU)
	if err != nil || r.KernelOnly(Processor{CPU: generic}, table) {
		t.Errorf("the generic method uses task-clock: %v", err)
	}
	if own < 50 {
		t.Errorf("%d processors with methods of their own", own)
	}
}
