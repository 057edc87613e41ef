package model_test

import (
	"testing"

	"github.com/cyclestack/cyclestack/model"
)

// TestGroupNames checks that POWER's events are known by oprofile's names, with the number
// of a group. Names that only look like it stay.
func TestGroupNames(t *testing.T) {
	cat, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ cpu, spelling, want string }{
		{"power7", "PM_DATA_FROM_L2MISS_GRP16", "PM_DATA_FROM_L2MISS"},
		{"power7", "pm_run_cyc_grp1:u", "PM_RUN_CYC"},
		{"power7", "PM_GRP_CMPL", "PM_GRP_CMPL"},
		{"power7", "PM_GRP_CMPL_GRP2", "PM_GRP_CMPL"},
		{"power7", "PM_DATA_FROM_L2MISS_GRP", ""},
		{"power7", "PM_DATA_FROM_L2MISS_GRP1x", ""},
		{"skylake", "INST_RETIRED.ANY_GRP1", ""},
	} {
		cpu, err := cat.CPU(tt.cpu)
		if err != nil {
			t.Fatal(err)
		}
		table, err := cat.Events(cpu)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if e, ok := table.Lookup(tt.spelling); ok {
			got = e.Name
		}
		if got != tt.want {
			t.Errorf("%s of %s is %q, want %q", tt.spelling, tt.cpu, got, tt.want)
		}
	}
}
