package spelling_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/spelling"
	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
)

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		s, t string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "abc", 0}, {"kitten", "sitting", 3}, {"heavy", "hevy", 1}, {"ab", "ba", 2},
		{strings.Repeat("x", 300), "x", 300}, {"x", strings.Repeat("x", 300), 300}} {
		if got := spelling.Distance(tt.s, tt.t); got != tt.want {
			t.Errorf("from %.9q to %.9q: %d, want %d", tt.s, tt.t, got, tt.want)
		}
	}
}

func TestNear(t *testing.T) {
	names := []string{"heavy", "light", "main", "Heaven", "run_heavy_work"}
	for _, tt := range []struct {
		s    string
		most int
		want []string
	}{{"hevy", 3, []string{"heavy"}}, {"HEAVY", 3, []string{"heavy", "Heaven", "run_heavy_work"}}, {"heavy", 1, []string{"heavy"}}, {"zzzzzz", 3, nil}} {
		if got := spelling.Near(tt.s, names, tt.most); !slices.Equal(got, tt.want) {
			t.Errorf("near %s: %q, want %q", tt.s, got, tt.want)
		}
	}
}
