package metric

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func TestFold(t *testing.T) {
	known := Constants{
		Value: func(name string) (float64, bool) {
			v, ok := map[string]float64{"two": 2, "zero": 0, "nan": math.NaN(), "inf": math.Inf(1)}[name]
			return v, ok
		},
		Literal: func(name string) (float64, bool) {
			v, ok := map[string]float64{"#smt_on": 1, "#num_packages": 2, `source_count(arb@x@)`: 3}[name]
			return v, ok
		},
		HasEvent: func(name string) bool { return name == "topdown-retiring" },
		CPUID:    func(pattern string) bool { return pattern == "0x410fd493" },
	}
	for _, tt := range []struct{ src, want string }{
		{"a + 2 * 3", "a + 6"},
		{"two * a + two", "2 * a + 2"},
		{"zero - two", "-2"},
		{"-(two + 1)", "-3"},
		{"-two * a", "-2 * a"},
		{"two / 3 < 1", "1"},
		{"min(two, 3) + max(two, 3) + d_ratio(two, 4) + 7 % two", "6.5"},
		{"(2 > 1) + (2 >= 3) + (2 == 2) + (2 != 2) + (1 <= 2) + (1 < 2) + (1 ^ 0) + (3 & 4) + (0 | 0)", "6"},

		{"a if #SMT_on else b", "a"},
		{"a if zero else b", "b"},
		{"a if two < 1 else b if #smt_on else c", "b"},
		{"a if x else b if #smt_on else c", "a if x else b"},
		{"a if #unknown else b", "a if #unknown else b"},
		{"a / #num_packages", "a / 2"},
		{"source_count(arb@x@) * source_count(y)", "3 * source_count(y)"},
		{`a if has_event(topdown\-retiring) else b`, "a"},
		{"a if has_event(slots) else b", "b"},
		{"a if strcmp_cpuid_str(0x410fd493) | strcmp_cpuid_str(0x410fd490) ^ 1 else b", "a"},

		// What one side decides, and what it does not.
		{"0 & a", "0"},
		{"a & zero", "0"},
		{"1 | a", "1"},
		{"a | two", "1"},
		{"1 & a", "1 & a"},
		{"a | 0", "a | 0"},
		{"1 ^ a", "1 ^ a"},
		{"0 * a", "0 * a"},
		{"0 / a", "0 / a"},
		{"a - a", "a - a"},
		{"min(a, 0)", "min(a, 0)"},

		// What has no result is kept, so that its reason can be given.
		{"1 / zero", "1 / 0"},
		{"d_ratio(1, zero) + 1", "d_ratio(1, 0) + 1"},
		{"1 % 0.5", "1 % 0.5"},
		{"1e300 * 1e300", "1e+300 * 1e+300"},
		{"0 & 1 / 0", "0"},
		{"a if 1 / 0 else b", "a if 1 / 0 else b"},
		{"nan + inf", "nan + inf"},
	} {
		folded := mustParse(t, tt.src).Fold(known)
		if got := folded.String(); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.src, got, tt.want)
		}
		if again := folded.Fold(known); !equal(again, folded) {
			t.Errorf("%s: folds again, to %s", folded, again)
		}
	}
}

func TestFoldNothingKnown(t *testing.T) {
	const src = "a if #smt_on & has_event(x) & strcmp_cpuid_str(y) else b / source_count(z)"
	e := mustParse(t, src)
	if got := e.Fold(Constants{}); got != e {
		t.Errorf("got %s, want the same expression", got)
	}
}

func TestSubstitute(t *testing.T) {
	sub := map[string]*Expr{
		"a": mustParse(t, "b + c"),
		"b": mustParse(t, "never"),
		"n": mustParse(t, "-2"),
		"i": mustParse(t, "x if y else z"),
	}
	for _, tt := range []struct{ src, want string }{
		{"a * d", "(b + c) * d"},
		{"a", "b + c"},
		{"d - a", "d - (b + c)"},
		{"min(a, i)", "min(b + c, x if y else z)"},
		{"1 + i", "1 + (x if y else z)"},
		{"i if i else i", "(x if y else z) if (x if y else z) else x if y else z"},
		{"-n", "2"},
		{"-a", "-(b + c)"},
		{"has_event(a) & #b", "has_event(a) & #b"},
	} {
		e := mustParse(t, tt.src)
		s := e.Substitute(func(name string) *Expr { return sub[name] })
		if got := s.String(); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.src, got, tt.want)
		}
		if !equal(s, mustParse(t, s.String())) {
			t.Errorf("%s: %s parses to another tree", tt.src, s)
		}
		if e.String() != mustParse(t, tt.src).String() {
			t.Errorf("%s: changed to %s", tt.src, e)
		}
	}
	e := mustParse(t, "a + b")
	if got := e.Substitute(func(string) *Expr { return nil }); got != e {
		t.Errorf("nothing to substitute: got %s, want the same expression", got)
	}
}

// doubled returns the sum of 2^n times e.
func doubled(t *testing.T, e *Expr, n int) *Expr {
	twice := mustParse(t, "a + a")
	for range n {
		e = twice.Substitute(func(string) *Expr { return e })
	}
	return e
}

// TestSpills evaluates the formulas that need the most values kept aside.
func TestSpills(t *testing.T) {
	for _, tt := range []struct {
		src    string
		n      int
		terms  int32
		spills uint8
	}{
		{"a", 16, maxTerms - 1, 15},
		{"-a", 15, 3<<15 - 1, 15},
		{"a if a else 0", 14, 5<<14 - 1, 14},
	} {
		e := doubled(t, mustParse(t, tt.src), tt.n)
		if e.terms != tt.terms || e.spills != tt.spills || e.spills >= maxSpills {
			t.Errorf("%s: got %d terms and %d spills, want %d and %d", tt.src, e.terms, e.spills, tt.terms, tt.spills)
		}
		in := []float64{3}
		want := mustCompile(t, mustParse(t, tt.src)).Eval(in) * float64(int(1)<<tt.n)
		if got := mustCompile(t, e).Eval(in); got != want {
			t.Errorf("%s: got %g, want %g", tt.src, got, want)
		}
	}
}

// TestTooLarge doubles a sum until it is too large. A model could do so by nodes that
// each use the one before twice.
func TestTooLarge(t *testing.T) {
	e := doubled(t, mustParse(t, "a"), 60)
	if _, err := Compile(e, func(string) int { return 0 }); !errors.Is(err, errTooLarge) {
		t.Errorf("Compile: got %v, want %v", err, errTooLarge)
	}
	if _, err := e.Unit(func(string) (Unit, bool) { return Unit{}, true }); !errors.Is(err, errTooLarge) {
		t.Errorf("Unit: got %v, want %v", err, errTooLarge)
	}
	if got := e.Fold(Constants{}); got != e || e.Names() != nil {
		t.Errorf("Fold: got %s with the names %v, want nothing", got, e.Names())
	}
	if !strings.Contains(e.String(), "131072") {
		t.Errorf("String: got %q, want the limit", e)
	}
}

func TestCompileUnresolved(t *testing.T) {
	for _, tt := range []struct{ src, want string }{
		{"a + b", "b"},
		{`a + cpu@event\=1@`, `cpu@event\=1@`},
		{"a + #smt_on", "#smt_on"},
		{"a if has_event(x) else a", "has_event(x)"},
		{"a * source_count(x)", "source_count(x)"},
		{"strcmp_cpuid_str(0x1) & a", "strcmp_cpuid_str(0x1)"},
		{"a if a else -#slots", "#slots"},
		{"(a + a) * (a * #slots)", "#slots"},
		{"(#cores + a) * (a * #slots)", "#cores"},
	} {
		_, err := Compile(mustParse(t, tt.src), func(name string) int {
			if name == "a" {
				return 0
			}
			return -1
		})
		var unresolved *unresolvedError
		if !errors.As(err, &unresolved) || unresolved.Part != tt.want || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want it about %s", tt.src, err, tt.want)
		}
	}
}
