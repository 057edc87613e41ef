package model

import (
	"slices"
	"testing"
)

// TestRoles checks that the file can be read and that each role and set has events. Any
// name of an event finds its role.
func TestRoles(t *testing.T) {
	for _, r := range []Role{RoleCycles, RoleInstructions, RoleRetired} {
		if len(r.Events()) < 2 {
			t.Errorf("%s: %q", r, r.Events())
		}
	}
	for _, s := range BranchSets() {
		if len(s[0]) == 0 || len(s[1]) == 0 || len(s[2]) == 0 {
			t.Errorf("a set without events: %+v", s)
		}
	}
	if len(BranchSets()) < 4 {
		t.Errorf("only %d sets of branch events", len(BranchSets()))
	}
	cat := embeddedCatalogue(t)
	for _, tt := range []struct {
		role       Role
		cpu, event string
		want       bool
	}{
		{RoleRetired, "skylakex", "INST_RETIRED.ANY:u", true},
		{RoleRetired, "skylakex", "inst_retired.prec_dist", true},
		{RoleRetired, "skylakex", "cpu/event=0xc0/", true},
		{RoleRetired, "amdzen3", "cpu/event=0xc0/", true},
		{RoleRetired, "amdzen3", "cycles", false},
		{RoleRetired, "power9", "PM_RUN_INST_CMPL", true},
		{RoleRetired, "generic", "Ir", false},
		{RoleInstructions, "generic", "Ir", true},
		{RoleTakenBranches, "skylakex", "BR_INST_RETIRED.NEAR_TAKEN:pp", true},
		{RoleTakenBranches, "skylakex", "cpu/event=0xc4,umask=0x20/", true},
		{RoleTakenBranches, "amdzen3", "ex_ret_brn_tkn", true},
		{RoleTakenBranches, "skylakex", "branches", false},
		{"nothing", "skylakex", "branches", false},
	} {
		if got := tt.role.Has(tt.event, embeddedTable(t, cat, tt.cpu)); got != tt.want {
			t.Errorf("%s has the role %q on %s: %t", tt.event, tt.role, tt.cpu, got)
		}
	}
	if _, err := parseRoles([]byte("[[role]]\nname = \"x\"\ncolour = 1\n")); err == nil || !slices.Contains([]string{`roles.toml:3: unknown key "colour" in "role"`}, err.Error()) {
		t.Errorf("an unknown key: %v", err)
	}
}
