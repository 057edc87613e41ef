package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/counts"
)

// TestFilterFlags: flags are read, and given again as they were.
func TestFilterFlags(t *testing.T) {
	t.Parallel()
	var f filterFlags
	if f.used() || len(f.conditions()) > 0 {
		t.Errorf("without flags: used %v", f.used())
	}
	f.names[counts.Function] = []string{"f(int, char),g", "h"}
	f.names[counts.Instruction] = []string{"0x10,0x20-0x30"}
	f.cpus = "1-2"
	keep, err := f.filter()
	if err != nil || !slices.Equal(keep.Functions, []string{"f(int, char)", "g", "h"}) || len(keep.Addresses) != 2 || len(keep.Processes) != 0 {
		t.Errorf("%+v, %v", keep, err)
	}
	if got, want := strings.Join(keep.Words(), " "), "-C 1-2 --function f(int, char),g,h --instruction 0x10,0x20-0x30"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	f.names[counts.Thread] = []string{""}
	if _, err := f.filter(); err == nil || !f.used() {
		t.Error("an empty name passes")
	}
}
