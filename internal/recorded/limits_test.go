package recorded

import (
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/internal/limits"
)

// changes is a comparison that has only these changes.
type changes []Change

func (c changes) Changes(string, string) ([]Change, error) { return c, nil }

func (c changes) Document() any { return nil }

// TestLimits: a limit is broken by a change beyond it, in its direction, that is no chance;
// of several by the largest.
func TestLimits(t *testing.T) {
	change := func(name string, old, new float64, v account.Verdict) Change {
		return Change{name, &account.Change{Old: old, New: new, Delta: new - old, Verdict: v}}
	}
	for _, test := range []struct {
		limit limits.Limit
		on    []Change
		want  string // "" if it is not broken
	}{
		{limits.Limit{Name: "cycles", Share: 0.03}, []Change{change("cycles", 100, 104, account.More)}, "cycles changed by +4.00 %"},
		{limits.Limit{Name: "cycles", Share: 0.03}, []Change{change("cycles", 100, 102, account.More)}, ""},
		{limits.Limit{Name: "cycles", Share: 0.03}, []Change{change("cycles", 100, 150, account.CannotTell)}, ""},
		{limits.Limit{Name: "cycles", Share: 0.03}, []Change{change("cycles", 100, 50, account.Less)}, ""},
		{limits.Limit{Name: "cycles", Less: true, Share: 0.03}, []Change{change("cycles", 100, 96, account.Less)}, "cycles changed by -4.00 %"},
		{limits.Limit{Name: "cycles", Less: true, Share: 0.03}, []Change{change("cycles", 100, 98, account.Less)}, ""},
		{limits.Limit{Name: "cycles", Less: true, Share: 0.03}, []Change{change("cycles", 100, 104, account.More)}, ""},
		{limits.Limit{Kind: "function", Name: "f*", Share: 0.015}, []Change{change("f1", 100, 102, account.More), change("f2", 50, 55, account.More), change("f3", 9, 10, account.More)}, "f2 changed by +10.00 %"},
		{limits.Limit{Kind: "function", Name: "f", Share: 0.5}, []Change{change("f", 0, 1, account.More)}, "f is new"},
	} {
		got, err := broken(&test.limit, changes(test.on))
		if err != nil || got != test.want {
			t.Errorf("%+v of %s: %q, want %q", test.limit, test.on[0].Name, got, test.want)
		}
	}
}

// TestMatches has the names that a pattern of --fail-on means.
func TestMatches(t *testing.T) {
	for _, test := range []struct {
		pattern, name string
		want          bool
	}{
		{"f", "f", true}, {"f", "f(int)", true}, {"f", "ff", false}, {"f", "g::f", false}, {"*f", "g::f(int, char)", true},
		{"f*", "found", true}, {"a.c", "abc", false}, {"operator()", "operator()(int)", true}, {"*", "", true},
	} {
		if got := matches(test.pattern, test.name); got != test.want {
			t.Errorf("matches(%q, %q) = %v", test.pattern, test.name, got)
		}
	}
}
