package cli

import (
	"slices"
	"testing"
	"time"
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
		got, err := numbers("-C", tt.list, tt.ranges)
		if !slices.Equal(got, tt.want) || (err == nil) != (tt.want != nil || tt.list == "") {
			t.Errorf("%q, ranges %t: got %v, %v, want %v", tt.list, tt.ranges, got, err, tt.want)
		}
	}
}

func TestMillis(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"100": 100 * time.Millisecond, "1.5s": 1500 * time.Millisecond, "2m": 2 * time.Minute,
		"0": 0, "-5": 0, "fast": 0, "": 0, "-1s": 0, "99999999999": 0,
	} {
		var m millis
		err := m.Set(text)
		if got := time.Duration(m); got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: got %v, %v, want %v", text, got, err, want)
		}
	}
}
