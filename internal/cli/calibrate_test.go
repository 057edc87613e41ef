package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/penalties"
	"github.com/cyclestack/cyclestack/internal/resolve"

	"github.com/cyclestack/cyclestack/internal/calibrate"
	"github.com/cyclestack/cyclestack/model"
)

// TestWantedBy checks which processors a penalty is for: the parameter must mean the same.
func TestWantedBy(t *testing.T) {
	t.Parallel()
	cat, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		cpu  string
		p    penalties.Penalty
		want bool
	}{
		{"amdzen4", penalties.Penalty{Name: "L3_HIT_PENALTY", Unit: "cycles/load"}, true},
		{"amdzen4", penalties.Penalty{Name: "LCP_PENALTY", Unit: "cycles/stall"}, false},
		{"amdzen4", penalties.Penalty{Name: "DTLB_WALK_PENALTY", Unit: "cycles/walk"}, true},
		// There it is what a walk takes in addition to its counted cycles.
		{"core2", penalties.Penalty{Name: "DTLB_WALK_PENALTY", Unit: "cycles/walk"}, false},
		{"core2", penalties.Penalty{Name: "L2_MISS_PENALTY", Unit: "cycles/load"}, true},
		{"amdzen4", penalties.Penalty{Name: "BRANCH_RESTEER_PENALTY", Unit: "cycles/branch", Unless: "Branch_Mispredict_Clear"}, true},
		{"skylakex", penalties.Penalty{Name: "BRANCH_RESTEER_PENALTY", Unit: "cycles/branch", Unless: "Branch_Mispredict_Clear"}, false},
		{"a processor of tomorrow", penalties.Penalty{Name: "LCP_PENALTY"}, true},
	} {
		if got := resolve.Wanted(cat, tt.cpu)(tt.p); got != tt.want {
			t.Errorf("%s takes %s: got %v, want %v", tt.cpu, tt.p.Name, got, tt.want)
		}
	}
}

// TestStorePenalties checks where they go, and that a quick or earlier calibration replaces no
// thorough one unasked.
func TestStorePenalties(t *testing.T) {
	config := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", config)
	usual := filepath.Join(config, "cyclestack", "penalties-AuthenticAMD-25-11-1.toml")
	named := filepath.Join(t.TempDir(), "here.toml")
	all := func(penalties.Penalty) bool { return true }
	for _, tt := range []struct {
		name           string
		store          string
		quick, earlier bool
		want           string // file; empty: none
	}{
		{"quick", storeAuto, true, false, ""},
		{"earlier", storeAuto, false, true, ""},
		{"none", storeNone, false, false, ""},
		{"quick, to a file", named, true, false, named},
		{"thorough", storeAuto, false, false, usual},
	} {
		var said bytes.Buffer
		a := &app{err: &said}
		r := &calibrate.Result{CPU: "AuthenticAMD-25-11-1", Quick: tt.quick, Clock: calibrate.Figure{Value: 3e9}}
		if err := a.storePenalties(&common{}, &calibrateFlags{store: tt.store}, r, tt.earlier, all); err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if tt.want == "" {
			if said.Len() > 0 {
				t.Errorf("%s: %s", tt.name, said.String())
			}
			if _, err := os.Stat(usual); err == nil {
				t.Errorf("%s: stored in the usual place", tt.name)
			}
			continue
		}
		text, err := os.ReadFile(tt.want)
		if err != nil || !strings.Contains(string(text), "FREQUENCY = 3.000e+09\n") {
			t.Errorf("%s: stored %q, %v", tt.name, text, err)
		}
		if !strings.Contains(said.String(), tt.want) {
			t.Errorf("%s: said %q, want where", tt.name, said.String())
		}
	}
}
