package cli

import (
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/account"
)

// TestLimits: a limit is broken by a change beyond it, in its direction, that is no chance;
// of several by the largest.
func TestLimits(t *testing.T) {
	change := func(name string, old, new float64, v account.Verdict) limited {
		return limited{name, &account.Change{Old: old, New: new, Delta: new - old, Verdict: v}}
	}
	for _, test := range []struct {
		limit string
		on    []limited
		want  string // "" if it is not broken
	}{
		{"cycles>3%", []limited{change("cycles", 100, 104, account.More)}, "cycles changed by +4.00 %"},
		{"cycles>3%", []limited{change("cycles", 100, 102, account.More)}, ""},
		{"cycles>3%", []limited{change("cycles", 100, 150, account.CannotTell)}, ""},
		{"cycles>3%", []limited{change("cycles", 100, 50, account.Less)}, ""},
		{"cycles<3%", []limited{change("cycles", 100, 96, account.Less)}, "cycles changed by -4.00 %"},
		{"cycles<3%", []limited{change("cycles", 100, 98, account.Less)}, ""},
		{"cycles<3%", []limited{change("cycles", 100, 104, account.More)}, ""},
		{"function:f*>1.5%", []limited{change("f1", 100, 102, account.More), change("f2", 50, 55, account.More), change("f3", 9, 10, account.More)}, "f2 changed by +10.00 %"},
		{"function:f>50%", []limited{change("f", 0, 1, account.More)}, "f is new"},
	} {
		list, err := parseLimits(test.limit)
		if err != nil || len(list) != 1 {
			t.Fatalf("%s: %d limits, %v", test.limit, len(list), err)
		}
		list[0].on = test.on
		got := ""
		if err := brokenLimits(list); err != nil {
			got = strings.TrimPrefix(err.Error(), "--fail-on: ")
		}
		if got != test.want {
			t.Errorf("%s of %s: %q, want %q", test.limit, test.on[0].name, got, test.want)
		}
	}
}

func TestParseLimits(t *testing.T) {
	list, err := parseLimits(" cycles > 3 % , function:a<b>::operator>(x)>1.5%,module:libc.so.6<2%")
	want := []limit{{name: "cycles", share: 0.03}, {kind: "function", name: "a<b>::operator>(x)", share: 0.015}, {kind: "module", name: "libc.so.6", less: true, share: 0.02}}
	if err != nil || len(list) != len(want) {
		t.Fatalf("%+v, %v", list, err)
	}
	for i := range want {
		if l := list[i]; l.kind != want[i].kind || l.name != want[i].name || l.less != want[i].less || l.share != want[i].share {
			t.Errorf("got %+v, want %+v", l, want[i])
		}
	}
	for _, text := range []string{"cycles", "cycles>3", "cycles>x%", ">3%", "cycles>3%,", "cycles>3% instructions>1%", "cycles>1.2.3%"} {
		if _, err := parseLimits(text); err == nil || !strings.Contains(err.Error(), "--fail-on") {
			t.Errorf("%s: %v", text, err)
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
