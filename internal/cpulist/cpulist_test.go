package cpulist_test

import (
	"slices"
	"testing"

	"github.com/cyclestack/cyclestack/internal/cpulist"
	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
)

func TestParse(t *testing.T) {
	for list, want := range map[string][]int{
		"": {}, "0": {0}, "0-3": {0, 1, 2, 3}, "3,1,1-2\n": {1, 2, 3}, " 5 , 7 ": {5, 7}, "65535": {65535},
	} {
		if got, err := cpulist.Parse(list); err != nil || !slices.Equal(got, want) || got == nil {
			t.Errorf("%q: %v, %v", list, got, err)
		}
	}
	for _, list := range []string{"65536", "a", "1-", "-1", "1,,2", "2-1", "0x1", "1-2-3"} {
		if got, err := cpulist.Parse(list); err == nil {
			t.Errorf("%q: %v", list, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"0-3,8", "", "0,1", "65535", "0-65535,0-65535", "9-1", "1,,"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		cpus, err := cpulist.Parse(s)
		if err == nil && (!slices.IsSorted(cpus) || len(cpus) > 1<<16) {
			t.Errorf("%q: %v", s, cpus)
		}
	})
}
