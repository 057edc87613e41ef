package metric

import (
	"bufio"
	"errors"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// seedFormulas returns the formulas of testdata/formulas.txt, one a line.
func seedFormulas(tb testing.TB) []string {
	tb.Helper()
	f, err := os.Open("testdata/formulas.txt")
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	var all []string
	s := bufio.NewScanner(f)
	for s.Scan() {
		if line := s.Text(); line != "" && !strings.HasPrefix(line, "# ") {
			all = append(all, line)
		}
	}
	if err := s.Err(); err != nil || len(all) == 0 {
		tb.Fatalf("no formulas: %v", err)
	}
	return all
}

// FuzzParse checks that no text makes the package panic, and of what parses: the canonical form
// is stable, one pass folds all, and a result known without inputs stays the same with them.
func FuzzParse(f *testing.F) {
	for _, src := range seedFormulas(f) {
		f.Add(src)
	}
	for _, src := range []string{"", "a if b", "1e400", "((((", `\`, "a[0", "b(%", "0x", "#", `"`, "a\x00", "-----1", "a<<64", "1/0", "µ"} {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src string) {
		e, err := Parse(src)
		var syntax *SyntaxError
		if err != nil {
			if !errors.As(err, &syntax) || syntax.Pos > len(src) || strings.ContainsAny(err.Error(), "\n\x00") {
				t.Fatalf("a bad error: %q", err)
			}
			return
		}
		checkCanonical(t, e)
		e.Unit(func(string) (Unit, bool) { return Unit{}, false })
		folded := e.Fold(Constants{
			Literal:  func(name string) (float64, bool) { return float64(len(name) % 3), true },
			HasEvent: func(name string) bool { return len(name)%2 == 0 },
			CPUID:    func(pattern string) bool { return len(pattern)%2 == 0 },
		})
		checkCanonical(t, folded)
		if again := folded.Fold(Constants{}); !equal(again, folded) {
			t.Fatalf("%s folds again, to %s", folded, again)
		}
		checkProgram(t, folded)
	})
}

func checkCanonical(t *testing.T, e *Expr) {
	t.Helper()
	text := e.String()
	if len(text) > maxLength {
		return
	}
	again, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if !equal(e, again) || again.String() != text {
		t.Fatalf("%q parses to another tree: %q", text, again)
	}
	if diff := cmp.Diff(e.Names(), again.Names()); diff != "" {
		t.Fatalf("%q: other names:\n%s", text, diff)
	}
}

func checkProgram(t *testing.T, e *Expr) {
	t.Helper()
	p := mustCompile(t, e)
	in := make([]float64, len(e.Names()))
	for i := range in {
		in[i] = math.NaN()
	}
	nothing := p.Eval(in)
	if why := p.Why(in); (why.Kind == None) != (nothing == nothing) {
		t.Fatalf("%s = %g, because of %+v", e, nothing, why)
	}
	for _, scale := range []float64{0, 1, -1e200, 0.3, math.Inf(1)} {
		for i := range in {
			in[i] = scale * float64(i+1)
		}
		v := p.Eval(in)
		if math.IsInf(v, 0) {
			t.Fatalf("%s is infinite", e)
		}
		if nothing == nothing && v != nothing {
			t.Fatalf("%s = %g without inputs and %g with some", e, nothing, v)
		}
		if why := p.Why(in); (why.Kind == None) != (v == v) {
			t.Fatalf("%s = %g, because of %+v", e, v, why)
		}
	}
}

// FuzzParseUnit checks that what parses is written as the same unit.
func FuzzParseUnit(f *testing.F) {
	for _, src := range []string{"1", "cycles/instruction", "cycles*slots/s", "1/s^2", "s^-99*s^99", "misses/entries*µs", "", "a b", "s^0", "1*1/1", "ss/s"} {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src string) {
		u, err := ParseUnit(src)
		if err != nil {
			return
		}
		if u.product(u).quotient(u).String() != u.String() || !u.quotient(u).Equal(Unit{}) {
			t.Fatalf("%q: %s · %s / %s = %s", src, u, u, u, u.product(u).quotient(u))
		}
		text := u.String()
		if len(text) > maxUnitLength {
			return
		}
		again, err := ParseUnit(text)
		if err != nil || !again.Equal(u) || again.String() != text {
			t.Fatalf("%q: %s parses to %s, %v", src, u, again, err)
		}
	})
}
