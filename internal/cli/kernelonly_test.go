package cli

import (
	"github.com/cyclestack/cyclestack/internal/resolve"
	"testing"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/model"
)

// TestKernelOnly checks what kernelOnly rests on: of the processors whose methods are
// their own, none uses an event that the kernel counts itself.
func TestKernelOnly(t *testing.T) {
	s, err := (&common{}).session()
	if err != nil {
		t.Fatal(err)
	}
	table := counts.NewTable(&counts.Layout{Columns: []counts.Column{{Event: "cpu-clock:u"}, {Event: "page-faults"}}, Scopes: []counts.Scope{counts.RunScope("")}})
	more := counts.NewTable(&counts.Layout{Columns: []counts.Column{{Event: "cpu-clock"}, {Event: "cycles"}}, Scopes: table.Scopes})
	own := 0
	for _, cpu := range s.cat.CPUs() {
		if s.cpu, err = s.cat.CPU(cpu.Name); err != nil {
			t.Fatal(err)
		}
		if s.kernelOnly(more) {
			t.Errorf("%s: cycles are not the kernel's", cpu.Name)
		}
		if !s.kernelOnly(table) {
			continue
		}
		own++
		for _, info := range s.cat.Models(cpu.Name) {
			if err := s.settleModel(info.Name); err != nil {
				t.Fatal(err)
			}
			for _, name := range s.method.Inputs() {
				if model.KernelCounts(name) {
					t.Errorf("%s, %s: it uses %s", cpu.Name, info.Name, name)
				}
			}
		}
	}
	if s.cpu, err = s.cat.CPU(resolve.GenericCPU); err != nil || s.kernelOnly(table) {
		t.Errorf("the generic method uses task-clock: %v", err)
	}
	if own < 50 {
		t.Errorf("%d processors with methods of their own", own)
	}
}
