package series_test

import (
	"regexp"
	"testing"

	"github.com/cyclestack/cyclestack/internal/fleet/series"
)

// TestNames: the names are as Prometheus wants them, and no two units share one.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, u := range series.Units {
		for _, name := range []string{u.Whole, u.Node(1), u.Node(12)} {
			if seen[name] || !regexp.MustCompile(`^cyclestack_[a-z0-9_]+_total$`).MatchString(name) {
				t.Errorf("%s: %q", u.Name, name)
			}
			seen[name] = true
		}
	}
	if seen[series.CPU] {
		t.Errorf("%s is also a whole", series.CPU)
	}
}
