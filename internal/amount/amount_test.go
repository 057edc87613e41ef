package amount

import (
	"slices"
	"testing"
	"time"

	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
)

func TestNumbers(t *testing.T) {
	for _, tt := range []struct {
		list   string
		ranges bool
		want   []int
	}{
		{"", true, nil},
		{"3", true, []int{3}},
		{"0-2,8,1", true, []int{0, 1, 2, 8}},
		{" 1, 2", false, []int{1, 2}},
		{"1-2", false, nil},
		{"2-1", true, nil},
		{"0-4000000000", true, nil},
		{"0-100000", true, nil},
		{"-1", true, nil},
		{"1,", true, nil},
	} {
		got, err := Numbers(tt.list, tt.ranges)
		if !slices.Equal(got, tt.want) || (err == nil) != (tt.want != nil || tt.list == "") {
			t.Errorf("%q, ranges %t: got %v, %v, want %v", tt.list, tt.ranges, got, err, tt.want)
		}
	}
}

func TestTime(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"100": 100 * time.Millisecond, "1.5s": 1500 * time.Millisecond, "2m": 2 * time.Minute,
		"0": 0, "-5": 0, "fast": 0, "": 0, "-1s": 0, "99999999999": 0,
	} {
		if got, err := Time(text); got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: got %v, %v, want %v", text, got, err, want)
		}
	}
}

func TestSize(t *testing.T) {
	for text, want := range map[string]int{"1": 1, "4096": 4096, "64K": 64 << 10, "256m": 256 << 20, "1G": 1 << 30} {
		if got, _, err := Size(text); err != nil || got != want {
			t.Errorf("Size(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "K", "0", "-1M", "x", "1T", "1.5G", "9007199254740992K", " "} {
		if got, _, err := Size(text); err == nil {
			t.Errorf("Size(%q) = %d, want an error", text, got)
		}
	}
}
