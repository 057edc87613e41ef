package metric

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func mustUnit(tb testing.TB, s string) Unit {
	tb.Helper()
	u, err := ParseUnit(s)
	if err != nil {
		tb.Fatal(err)
	}
	return u
}

func TestParseUnit(t *testing.T) {
	for _, tt := range []struct{ src, want string }{
		{"1", "1"},
		{"cycles", "cycles"},
		{"cycles/instruction", "cycles/instruction"},
		{"cycles/instructions", "cycles/instruction"},
		{" cycles / instruction ", "cycles/instruction"},
		{"cycles*slots/s/uop", "cycles*slots/s/uop"},
		{"slots*cycles", "cycles*slots"},
		{"1/s", "1/s"},
		{"1*s/1", "s"},
		{"bytes/s^2", "bytes/s^2"},
		{"s^-1", "1/s"},
		{"1/s^-3", "s^3"},
		{"cycles*cycles", "cycles^2"},
		{"cycles/cycle", "1"},
		{"branches/branch*ns", "ns"},
		{"misses/miss", "1"},
		{"entries/entry", "1"},
		{"µs/L1_miss", "µs/L1_miss"},
	} {
		u, err := ParseUnit(tt.src)
		if err != nil {
			t.Errorf("%q: %v", tt.src, err)
			continue
		}
		if got := u.String(); got != tt.want {
			t.Errorf("%q: got %s, want %s", tt.src, got, tt.want)
		}
		if again := mustUnit(t, u.String()); !again.Equal(u) {
			t.Errorf("%q: %s parses to another unit, %s", tt.src, u, again)
		}
	}
}

func TestParseUnitErrors(t *testing.T) {
	for _, tt := range []struct{ src, want string }{
		{"", "a unit is missing"},
		{"cycles/", "a unit is missing"},
		{"cycles per instruction", `"cycles per instruction" is not the name`},
		{"2", `"2" is not the name`},
		{"%", `"%" is not the name`},
		{"?", `"?" is not the name`},
		{"s^", `the power ""`},
		{"s^0", `the power "0"`},
		{"s^1.5", `the power "1.5"`},
		{"s^100", `the power "100"`},
		{"s^99999999999999999999", "the power"},
		{"s^99*s", "the power of s is above 99"},
		{"1/seconds^99/second", "the power of seconds is above 99"},
		{"^2", "a unit is missing"},
		{strings.Repeat("s*", 1000) + "s", "longer than 200 bytes"},
	} {
		if _, err := ParseUnit(tt.src); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: got %v, want %s", tt.src, err, tt.want)
		}
	}
}

func TestUnitArithmetic(t *testing.T) {
	cycles, instructions := mustUnit(t, "cycles"), mustUnit(t, "instructions")
	cpi := cycles.quotient(instructions)
	if got := cpi.String(); got != "cycles/instruction" {
		t.Errorf("got %s, want cycles/instruction", got)
	}
	if !cpi.product(instructions).Equal(cycles) || !cpi.quotient(cpi).Equal(Unit{}) || cpi.Equal(cycles) {
		t.Error("cycles/instruction: multiplied by instructions, it must be cycles; divided by itself, 1")
	}
	if cycles.String() != "cycles" {
		t.Errorf("an operand has changed to %s", cycles)
	}
	any := Unit{any: true}
	if any.Known() || any.product(cycles).Known() || cycles.quotient(any).Known() || any.Equal(cycles) || !any.Equal(any) || !cycles.Known() {
		t.Error("a unit that is not known must stay so, and equal no other")
	}
}

// TestUnitLaws checks products and quotients of random units.
func TestUnitLaws(t *testing.T) {
	factor := rapid.SampledFrom([]string{"cycles", "cycle", "s", "ns", "uops^2", "slots^-3", "1", "branches", "access"})
	unit := rapid.Custom(func(t *rapid.T) Unit {
		u, err := ParseUnit(strings.Join(rapid.SliceOfN(factor, 1, 5).Draw(t, "factors"), rapid.SampledFrom([]string{"*", "/"}).Draw(t, "sign")))
		if err != nil {
			t.Fatal(err)
		}
		return u
	})
	rapid.Check(t, func(t *rapid.T) {
		u, v, w := unit.Draw(t, "u"), unit.Draw(t, "v"), unit.Draw(t, "w")
		if !u.product(v).Equal(v.product(u)) || !u.product(v).product(w).Equal(u.product(v.product(w))) {
			t.Fatalf("%s, %s, %s: the product depends on the order", u, v, w)
		}
		if !u.product(v).quotient(v).Equal(u) {
			t.Fatalf("%s · %s / %s = %s", u, v, v, u.product(v).quotient(v))
		}
		if again, err := ParseUnit(u.String()); err != nil || !again.Equal(u) {
			t.Fatalf("%s parses to %s, %v", u, again, err)
		}
	})
}

var unitsOfNames = map[string]string{
	"CYC": "cycles", "STALLS": "cycles", "INST": "instructions", "UOPS": "uops", "SLOTS": "slots", "BYTES": "bytes", "TIME": "s",
	"PENALTY": "cycles/miss", "MISSES": "misses", "CPI": "cycles/instruction", "#num_cores": "1", "#system_tsc_freq": "cycles/s",
}

func unitOfName(name string) (Unit, bool) {
	s, ok := unitsOfNames[name]
	if !ok {
		return Unit{}, false
	}
	u, err := ParseUnit(s)
	return u, err == nil
}

func TestExprUnit(t *testing.T) {
	for _, tt := range []struct{ src, want string }{
		{"CYC / INST", "cycles/instruction"},
		{"CYC + STALLS - CYC", "cycles"},
		{"-CYC", "cycles"},
		{"1 - STALLS / CYC", "1"},
		{"100 * STALLS / CYC", "1"},
		{"d_ratio(UOPS, SLOTS)", "uops/slot"},
		{"PENALTY * MISSES + STALLS", "cycles"},
		{"CPI - STALLS / INST", "cycles/instruction"},
		{"64 * BYTES / TIME", "bytes/s"},
		{"BYTES << 6", "bytes"},
		{"max(CYC - STALLS, 0)", "cycles"},
		{"min(0, CYC)", "cycles"},
		{"CYC % STALLS", "cycles"},
		{"CYC + 0", "cycles"},
		{"0", "?"},
		{"CYC > STALLS", "1"},
		{"(CYC > STALLS) * INST", "instructions"},
		{"STALLS > 0 & UOPS != 0", "1"},
		{"CYC & INST | UOPS ^ TIME", "1"},
		{"CYC if UOPS else 0", "cycles"},
		{"0 if has_event(x) else CYC if strcmp_cpuid_str(y) else STALLS", "cycles"},
		{"source_count(x) * CYC * #num_cores", "cycles"},
		{"#system_tsc_freq * TIME", "cycles"},
		{"CYC + other", "cycles"},
		{"other + CYC", "cycles"},
		{"other * CYC", "?"},
		{"#other / CYC", "?"},
		{"other", "?"},
		{"other > CYC", "1"},
		{"min(other, unknown)", "?"},
	} {
		u, err := mustParse(t, tt.src).Unit(unitOfName)
		if err != nil {
			t.Errorf("%s: %v", tt.src, err)
		} else if u.String() != tt.want || u.Known() != (tt.want != "?") {
			t.Errorf("%s: got %s, want %s", tt.src, u, tt.want)
		}
	}
}

func TestUnitError(t *testing.T) {
	for _, tt := range []struct{ src, op, left, right, expr string }{
		{"CYC + INST", "+", "cycles", "instructions", "CYC + INST"},
		{"100 * (CYC - UOPS) / INST", "-", "cycles", "uops", "CYC - UOPS"},
		{"CYC + 1", "+", "cycles", "1", "CYC + 1"},
		{"1 - CYC", "-", "1", "cycles", "1 - CYC"},
		{"max(CYC, 0.001)", "max", "cycles", "1", "max(CYC, 0.001)"},
		{"min(UOPS, SLOTS) / 2", "min", "uops", "slots", "min(UOPS, SLOTS)"},
		{"CYC % 2", "%", "cycles", "1", "CYC % 2"},
		{"CYC > 100 & UOPS", ">", "cycles", "1", "CYC > 100"},
		{"INST & (CYC == UOPS)", "==", "cycles", "uops", "CYC == UOPS"},
		{"CYC if UOPS else INST", "if", "cycles", "instructions", "CYC if UOPS else INST"},
		{"CYC if UOPS > SLOTS else CYC", ">", "uops", "slots", "UOPS > SLOTS"},
		{"(CYC + UOPS) + INST", "+", "cycles", "uops", "CYC + UOPS"},
		{"CYC * (CYC + UOPS)", "+", "cycles", "uops", "CYC + UOPS"},
		{"CYC + (CYC + UOPS)", "+", "cycles", "uops", "CYC + UOPS"},
		{"-(CYC + UOPS)", "+", "cycles", "uops", "CYC + UOPS"},
	} {
		_, err := mustParse(t, tt.src).Unit(unitOfName)
		var unit *UnitError
		if !errors.As(err, &unit) {
			t.Errorf("%s: got %v, want a UnitError", tt.src, err)
			continue
		}
		if unit.Op != tt.op || unit.Left.String() != tt.left || unit.Right.String() != tt.right || unit.Expr != tt.expr {
			t.Errorf("%s: got %+v, want %+v", tt.src, unit, tt)
		}
		if !strings.Contains(err.Error(), tt.expr) || !strings.Contains(err.Error(), tt.left) {
			t.Errorf("%s: the message does not say what and where: %v", tt.src, err)
		}
	}
}
