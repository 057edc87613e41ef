package metric

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
)

// inputs are those of the table tests. u is unknown.
var inputs = map[string]float64{
	"a": 6, "b": 4, "one": 1, "zero": 0, "neg": -7.5, "huge": 1e308, "u": math.NaN(), "v": math.NaN(), "inf": math.Inf(1),
}

// evalInputs evaluates a formula on inputs.
func evalInputs(t *testing.T, src string) (float64, Reason, map[int]string) {
	t.Helper()
	e := mustParse(t, src)
	names := make(map[int]string)
	var in []float64
	for i, name := range e.Names() {
		v, ok := inputs[name]
		if !ok {
			t.Fatalf("%s: no input %s", src, name)
		}
		names[i] = name
		in = append(in, v)
	}
	p := mustCompile(t, e)
	return p.Eval(in), p.Why(in), names
}

func TestEval(t *testing.T) {
	unknown := math.NaN()
	for _, tt := range []struct {
		src  string
		want float64
	}{
		{"42", 42},
		{"a", 6},
		{"a + b * 2 - 1", 13},
		{"1 - (a + b) * 2", -19},
		{"a / b", 1.5},
		{"1 / b", 0.25},
		{"(a + b) / (a - b)", 5},
		{"(a - b) / ((a + b) * (a - b) + (a + b) * (a - b))", 0.05},
		{"d_ratio(a, b)", 1.5},
		{"a * b - (a + b)", 14},
		{"(a - b) + a + (a - b) - a + (a - b) * a", 16},
		{"a - (a - b)", 4},
		{"2 - (a - b)", 0},
		{"(a - b) - 3", -1},
		{"(a - b) / a * 3", 1},
		{"(a - b) / 8", 0.25},
		{"a / (a - b)", 3},
		{"8 / (a - b)", 4},
		{"(a - b) * 5 * b", 40},
		{"5 * (a - b)", 10},
		{"a < a - b | a - b < 2", 0},
		{"(a - b < a) + 2 * (a < a - b) + 4 * (2 < a - b) + 8 * (a - b < 3) + 16 * (a - b < a * b) + 32 * (a * b < a - b)", 25},
		{"(a - b > a) + 2 * (a > a - b) + 4 * (2 > a - b) + 8 * (a - b > 1) + 16 * (a - b > a * b) + 32 * (a * b > a - b)", 42},
		{"(a - b <= a) + 2 * (a <= a - b) + 4 * (2 <= a - b) + 8 * (a - b >= 3) + 16 * (a - b >= a * b) + 32 * (a * b >= a - b)", 37},
		{"(a - b & a) + (a & a - b) + (a - b & 1) + (0 & a - b) + (a - b & a * b)", 4},
		{"(a - b) % b + 10 * (b % (a - one)) + 100 * (7 % (a - one)) + 1000 * ((a + b) % 7)", 3242},
		{"(a + b) - (a * b - (a + b))", -4},
		{"(a * b - (a + b)) - (a + b)", 4},
		{"(a + b) * (a - b) + (a + b) / (a - b)", 25},
		{"(a + b) / (a * b + (a + b) * 2)", 10. / 44},
		{"-a + -(-b)", -2},
		{"a % b", 2},
		{"neg % 4", -3},
		{"a % neg", 6},
		{"(a * b) % (a + one)", 3},
		{"10 % ((a * b) % (a + one))", 1},
		{"min(a, b) + 10 * max(a, b)", 64},
		{"(a < b) + 2 * (a > b) + 4 * (a <= 6) + 8 * (a >= 6) + 16 * (a == 6) + 32 * (a != 6)", 30},
		{"(a & b) + 2 * (a & zero) + 4 * (zero | a) + 8 * (zero | zero) + 16 * (a ^ zero) + 32 * (a ^ b)", 21},
		{"neg & 1", 1},
		{"a if b else zero", 6},
		{"a if zero else b", 4},
		{"a if neg else b", 6},
		{"(a if zero else b) * (a if one else b) + (1 if b > a else 2 if a > b else 3)", 26},

		// Unknown inputs.
		{"u", unknown},
		{"u + 1", unknown},
		{"0 * u", unknown},
		{"u - u", unknown},
		{"min(u, a)", unknown},
		{"max(a, u)", unknown},
		{"u < a", unknown},
		{"u == u", unknown},
		{"u != u", unknown},
		{"u ^ 1", unknown},
		{"u & 1", unknown},
		{"1 & u", unknown},
		{"u | 0", unknown},
		{"zero & u", 0},
		{"u & zero", 0},
		{"one | u", 1},
		{"u | one", 1},
		{"u & v & zero", 0},
		{"a > 1 | u > 1", 1},
		{"a < 1 & u > 1", 0},
		{"a if one else u", 6},
		{"u if zero else a", 6},
		{"u if one else a", unknown},
		{"a if u else a", unknown},
		{"1 + (a if u else a) * 2", unknown},
		{"a if u & zero else b", 4},

		// Division by zero, and overflow.
		{"a / zero", unknown},
		{"zero / zero", unknown},
		{"a / (b - 4)", unknown},
		{"d_ratio(a, zero)", unknown},
		{"d_ratio(zero, zero)", unknown},
		{"a % zero", unknown},
		{"a % 0.5", unknown},
		{"1 / zero if zero else a", 6},
		{"zero & 1 / zero", 0},
		{"huge * 10", unknown},
		{"huge + huge", unknown},
		{"-huge - huge", unknown},
		{"1 / (huge * 10)", unknown},
		{"huge / 0.01", unknown},
		{"min(huge * 10, 3)", unknown},
		{"inf", unknown},
		{"1 / inf", unknown},
		{"inf > 1", unknown},
		{"min(inf, 3)", unknown},
		{"inf & 1", unknown},
		{"a if inf else b", unknown},
		{"zero / inf", unknown},
		{"(a - b) % inf", unknown},
	} {
		got, why, _ := evalInputs(t, tt.src)
		if got != tt.want && !(math.IsNaN(got) && math.IsNaN(tt.want)) {
			t.Errorf("%s: got %g, want %g", tt.src, got, tt.want)
		}
		if (why.Kind == None) != (got == got) {
			t.Errorf("%s: is %g because of %v", tt.src, got, why.Kind)
		}
	}
}

// TestEvalDeep evaluates sums nested to one side. Each level has a product to keep aside,
// unless the deeper side is evaluated first.
func TestEvalDeep(t *testing.T) {
	const levels = 150
	left, right := "one", "one"
	want := 1.0
	for i := range levels {
		left = fmt.Sprintf("(%s) + a * %d", left, i)
		right = fmt.Sprintf("a * %d + (%s)", i, right)
		want += 6 * float64(i)
	}
	for _, src := range []string{left, right, right + " + 0 * (" + left + ")"} {
		if got, _, _ := evalInputs(t, src); got != want {
			t.Errorf("%.20s…: got %g, want %g", src, got, want)
		}
	}
}

// TestEvalNoNegativeZero checks that nothing is printed as -0.
func TestEvalNoNegativeZero(t *testing.T) {
	for _, src := range []string{"zero * neg", "-zero", "zero / neg", "-(a - 6)", "neg % 7.5", "-0.0", "min(zero, -zero)"} {
		if got, _, _ := evalInputs(t, src); got != 0 || math.Signbit(got) {
			t.Errorf("%s: got %g, want 0", src, got)
		}
	}
}

func TestWhy(t *testing.T) {
	type reason struct {
		Kind  Kind
		Names []string
		Text  string
	}
	for _, tt := range []struct {
		src  string
		want reason
	}{
		{"a + b", reason{}},
		{"a if one else u", reason{}},
		{"zero & u", reason{}},
		{"a / u", reason{Missing, []string{"u"}, ""}},
		{"u + v * u", reason{Missing, []string{"u", "v"}, ""}},
		{"one & u", reason{Missing, []string{"u"}, ""}},
		{"u & v", reason{Missing, []string{"u", "v"}, ""}},
		{"u if v else u", reason{Missing, []string{"v"}, ""}},
		{"u if a else v", reason{Missing, []string{"u"}, ""}},
		{"u if zero else v", reason{Missing, []string{"v"}, ""}},
		{"(u & zero) + v", reason{Missing, []string{"v"}, ""}},
		{"-u", reason{Missing, []string{"u"}, ""}},
		{"100 * (a / (b - 4)) + 1", reason{ZeroDivision, nil, "a / (b - 4)"}},
		{"d_ratio(a, zero) + b / zero", reason{ZeroDivision, nil, "d_ratio(a, zero)"}},
		{"a % 0.5", reason{ZeroDivision, nil, "a % 0.5"}},
		{"u + a / zero", reason{Missing, []string{"u"}, "a / zero"}},
		{"1 + huge * 10", reason{Overflow, nil, "huge * 10"}},
		{"a / 1e-308", reason{Overflow, nil, "a / 1e-308"}},
		{"huge * 10 + a / zero", reason{ZeroDivision, nil, "a / zero"}},
		{"a + inf", reason{Overflow, nil, "inf"}},
		{"inf / zero", reason{Overflow, nil, "inf"}},
		{"1 if inf else u", reason{Overflow, nil, "inf"}},
	} {
		_, why, names := evalInputs(t, tt.src)
		got := reason{Kind: why.Kind, Text: why.Text}
		for _, s := range why.Slots {
			got.Names = append(got.Names, names[s])
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.src, diff)
		}
	}
}

func TestSlots(t *testing.T) {
	slots := map[string]int{"a": 7, "b": 3, "alias": 7, "c": 0}
	p, err := Compile(mustParse(t, "b + a * alias / (c + b)"), func(name string) int { return slots[name] })
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{3, 7, 0}, p.Slots()); diff != "" {
		t.Errorf("slots (-want +got):\n%s", diff)
	}
	if got := p.Eval([]float64{1, 0, 0, 3, 0, 0, 0, 4}); got != 7 {
		t.Errorf("got %g, want 7", got)
	}
}

func TestEvalDoesNotAllocate(t *testing.T) {
	deep := strings.Repeat("(a*b+", 100) + "a" + strings.Repeat(")", 100)
	for _, src := range []string{benchFormula, benchThreshold, deep, "a if b else min(a, b) % (a | b)"} {
		p := mustCompile(t, mustParse(t, src))
		in := append([]float64{math.NaN()}, benchInputs...)
		if n := testing.AllocsPerRun(100, func() { p.Eval(in) }); n != 0 {
			t.Errorf("%s: %g allocations", src, n)
		}
	}
}

func TestEvalConcurrently(t *testing.T) {
	p := mustCompile(t, mustParse(t, "(a + b) * (a - b) / (a * b)"))
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			in := []float64{float64(i + 2), 1}
			want := float64((i+3)*(i+1)) / float64(i+2)
			for range 1000 {
				if got := p.Eval(in); got != want {
					t.Errorf("input %d: got %g, want %g", i+2, got, want)
					return
				}
			}
		})
	}
	wg.Wait()
}

// A tree is a formula for the differential test, which has an evaluator of its
// own: op is an operator, a function, "if", "neg", a literal or "" for a number
// or a name.
type tree struct {
	op   string
	num  float64
	name int // 1, 2, … for the names x1, x2, …; 0 for a number
	kids []*tree
}

const treeNames = 6

var treeLiterals = map[string]float64{"#smt_on": 1, "has_event(x1)": 0, "strcmp_cpuid_str(0x1f)": 1, "source_count(x2)": 3}

// String writes the tree with all its parentheses.
func (n *tree) String() string {
	switch {
	case n.op == "" && n.name > 0:
		return fmt.Sprintf("x%d", n.name)
	case n.op == "":
		return fmt.Sprintf("%v", n.num)
	case n.op == "neg":
		return fmt.Sprintf("-(%v)", n.kids[0])
	case n.op == "if":
		return fmt.Sprintf("(%v if %v else %v)", n.kids[0], n.kids[1], n.kids[2])
	case n.op == "min" || n.op == "max" || n.op == "d_ratio":
		return fmt.Sprintf("%s(%v, %v)", n.op, n.kids[0], n.kids[1])
	case len(n.kids) == 2:
		return fmt.Sprintf("(%v %s %v)", n.kids[0], n.op, n.kids[1])
	}
	return n.op
}

// eval returns the value of the tree and whether it is known.
func (n *tree) eval(in []float64) (float64, bool) {
	if n.op == "if" {
		c, ok := n.kids[1].eval(in)
		switch {
		case !ok:
			return 0, false
		case c != 0:
			return n.kids[0].eval(in)
		default:
			return n.kids[2].eval(in)
		}
	}
	if n.op == "" {
		v := n.num
		if n.name > 0 {
			v = in[n.name-1]
		}
		return v, !math.IsNaN(v) && !math.IsInf(v, 0)
	}
	if v, ok := treeLiterals[n.op]; ok {
		return v, true
	}
	x, okx := n.kids[0].eval(in)
	if n.op == "neg" {
		return -x, okx
	}
	y, oky := n.kids[1].eval(in)
	switch n.op {
	case "&":
		if okx && x == 0 || oky && y == 0 {
			return 0, true
		}
	case "|":
		if okx && x != 0 || oky && y != 0 {
			return 1, true
		}
	}
	if !okx || !oky {
		return 0, false
	}
	return evalOperator(n.op, x, y)
}

func evalOperator(op string, x, y float64) (float64, bool) {
	var v float64
	is := func(b bool) (float64, bool) {
		if b {
			return 1, true
		}
		return 0, true
	}
	switch op {
	case "+":
		v = x + y
	case "-":
		v = x - y
	case "*":
		v = x * y
	case "/", "d_ratio":
		if y == 0 {
			return 0, false
		}
		v = x / y
	case "%":
		x, y = math.Trunc(x), math.Trunc(y)
		if y == 0 {
			return 0, false
		}
		v = math.Mod(x, y)
	case "min":
		v = math.Min(x, y)
	case "max":
		v = math.Max(x, y)
	case "<":
		return is(x < y)
	case ">":
		return is(x > y)
	case "<=":
		return is(x <= y)
	case ">=":
		return is(x >= y)
	case "==":
		return is(x == y)
	case "!=":
		return is(x != y)
	case "&":
		return is(x != 0 && y != 0)
	case "|":
		return is(x != 0 || y != 0)
	case "^":
		return is((x != 0) != (y != 0))
	}
	return v, !math.IsInf(v, 0)
}

// drawTree draws a tree of at most the depth.
func drawTree(t *rapid.T, depth int) *tree {
	if depth == 0 || rapid.IntRange(0, 3).Draw(t, "leaf") == 0 {
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0:
			literals := []string{"#smt_on", "has_event(x1)", "strcmp_cpuid_str(0x1f)", "source_count(x2)"}
			return &tree{op: rapid.SampledFrom(literals).Draw(t, "literal")}
		case 1, 2:
			return &tree{num: rapid.SampledFrom([]float64{0, 1, 2, 0.5, 3.25, 1e-300, 1e300, 5e-324, 1e15, 123456789}).Draw(t, "number")}
		}
		return &tree{name: rapid.IntRange(1, treeNames).Draw(t, "name")}
	}
	n := &tree{op: rapid.SampledFrom([]string{"neg", "if",
		"+", "-", "*", "/", "%", "min", "max", "d_ratio", "<", ">", "<=", ">=", "==", "!=", "&", "|", "^"}).Draw(t, "op")}
	kids := 2
	switch n.op {
	case "neg":
		kids = 1
	case "if":
		kids = 3
	}
	for range kids {
		n.kids = append(n.kids, drawTree(t, depth-1))
	}
	return n
}

// drawInput draws an input: mostly an ordinary count, for else little is known.
func drawInput(t *rapid.T) float64 {
	if rapid.IntRange(0, 3).Draw(t, "odd") == 0 {
		return rapid.SampledFrom([]float64{math.NaN(), 0, 1, -1, 1e308, -1e308, 5e-324, math.Inf(1), math.Inf(-1)}).Draw(t, "input")
	}
	return rapid.Float64Range(-10, 1e6).Draw(t, "input")
}

// TestAgainstTree compares a program with the evaluator of tree, on several sets
// of inputs; the folded formula, the canonical form and the reason must agree
// with it.
func TestAgainstTree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawTree(t, rapid.IntRange(2, 6).Draw(t, "depth"))
		e, err := Parse(n.String())
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			in := make([]float64, treeNames)
			for i := range in {
				in[i] = drawInput(t)
			}
			want, ok := n.eval(in)
			if !ok {
				want = math.NaN()
			}
			folded := e.Fold(treeConstants(in, rapid.Bool().Draw(t, "some inputs are constants")))
			canonical, err := Parse(folded.String())
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range []*Expr{folded, canonical} {
				p, err := Compile(e, treeSlot)
				if err != nil {
					t.Fatal(err)
				}
				checkValue(t, p, in, want)
			}
		}
	})
}

// treeConstants knows the literals of trees, and every other input too if
// inputs is set.
func treeConstants(in []float64, inputs bool) Constants {
	return Constants{
		Value: func(name string) (float64, bool) {
			i := treeSlot(name)
			return in[i], inputs && i%2 == 0
		},
		Literal:  func(name string) (float64, bool) { v, ok := treeLiterals[name]; return v, ok },
		HasEvent: func(string) bool { return treeLiterals["has_event(x1)"] != 0 },
		CPUID:    func(string) bool { return treeLiterals["strcmp_cpuid_str(0x1f)"] != 0 },
	}
}

func treeSlot(name string) int { return int(name[1] - '1') }

// checkValue checks the value of a program and the reason for it. An unknown
// input cannot have decided a value: with another input there, it is the same.
func checkValue(t *rapid.T, p *Program, in []float64, want float64) {
	got, why := p.Eval(in), p.Why(in)
	if got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
		t.Fatalf("%s = %v, want %v", p.expr, got, want)
	}
	if (why.Kind == None) != (got == got) {
		t.Fatalf("%s = %v, because of %v", p.expr, got, why)
	}
	for _, s := range why.Slots {
		if !math.IsNaN(in[s]) {
			t.Fatalf("%s: %v is missing, but it is %v", p.expr, s, in[s])
		}
	}
	if why.Kind != None {
		return
	}
	other := make([]float64, len(in))
	for i, v := range in {
		if other[i] = v; math.IsNaN(v) {
			other[i] = drawInput(t)
		}
	}
	if v := p.Eval(other); v != got {
		t.Fatalf("%s = %v with inputs missing and %v with others there", p.expr, got, v)
	}
}
