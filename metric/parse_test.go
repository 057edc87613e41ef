package metric

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		src  string
		want string // canonical form
	}{
		// Precedence and grouping.
		{"a+b*c", "a + b * c"},
		{"(a+b)*c", "(a + b) * c"},
		{"a-b-c", "a - b - c"},
		{"a-(b-c)", "a - (b - c)"},
		{"a+(b+c)", "a + (b + c)"},
		{"a/b*c%d", "a / b * c % d"},
		{"a/(b*c)", "a / (b * c)"},
		{"-a*b", "-a * b"},
		{"-(a*b)", "-(a * b)"},
		{"a - -b", "a - -b"},
		{"--a", "--a"},
		{"a | b ^ c & d < e + f * -g", "a | b ^ c & d < e + f * -g"},
		{"((((a | b) ^ c) & d) < e) + f", "((((a | b) ^ c) & d) < e) + f"},
		{"a < b > c", "a < b > c"},
		{"a < (b > c)", "a < (b > c)"},
		{"((a))", "a"},
		{" \t\r\n a\n", "a"},

		// Choices.
		{"a if b else c if d else e", "a if b else c if d else e"},
		{"a if b else (c if d else e)", "a if b else c if d else e"},
		{"(a if b else c) if d else e", "(a if b else c) if d else e"},
		{"a if (b if c else d) else e", "a if (b if c else d) else e"},
		{"a + b if c > d | e else f * g", "a + b if c > d | e else f * g"},
		{"a * ( b if #SMT_on else c )", "a * (b if #smt_on else c)"},
		{"max( a if b else c , d )", "max(a if b else c, d)"},

		// Spellings of Intel's, Arm's and Linux's files.
		{"x if b > = 0 else y", "x if b >= 0 else y"},
		{"b <\t= 0", "b <= 0"},
		{"a >= b == c != d <= e", "a >= b == c != d <= e"},
		{"a >0.15 && b >0.2 || c", "a > 0.15 & b > 0.2 | c"},
		{"(a + b << 12) / c", "(a + b) * 4096 / c"},
		{"a << 1 << 2 > b", "a * 2 * 4 > b"},
		{"d_ratio(a, b)", "d_ratio(a, b)"},
		{"a if has_event(topdown\\-fe\\-bound) else 0", `a if has_event(topdown\-fe\-bound) else 0`},
		{"source_count(UNC_CHA_CLOCKTICKS) * #num_packages", "source_count(UNC_CHA_CLOCKTICKS) * #num_packages"},
		{"strcmp_cpuid_str(0x410fd493) | strcmp_cpuid_str(0x410fd490) ^ 1", "strcmp_cpuid_str(0x410fd493) | strcmp_cpuid_str(0x410fd490) ^ 1"},
		{`strcmp_cpuid_str("GenuineIntel-6-55-[01234]")`, `strcmp_cpuid_str(GenuineIntel\-6\-55\-\[01234\])`},
		{"metric_TMA_..Fetch_Latency(%) > 10", `metric_TMA_..Fetch_Latency\(\%\) > 10`},
		{"b / a[0]", `b / a\[0\]`},
		{"UNC_H_REQUESTS:opc=0x182:c1 / 2", `UNC_H_REQUESTS:opc\=0x182:c1 / 2`},
		{`msr@tsc\,cpu=cpu_core@ / 1e9`, `msr@tsc\,cpu\=cpu_core@ / 1000000000`},
		{"a % b(%)", `a % b\(\%\)`},

		// Numbers.
		{"1e9 + 1e-06 + 1E+3 + .5 + 2. + 100e3", "1000000000 + 0.000001 + 1000 + 0.5 + 2 + 100000"},
		{"0x10 + 0XfF", "16 + 255"},
		{"1e300 * 1e-300", "1e+300 * 1e-300"},
		{"- 5", "-5"},
		{"a - 5", "a - 5"},
		{"a * -5", "a * -5"},
		{"--5", "5"},
		{"-0", "0"},
		{"0e999 + 0.000e-999", "0 + 0"},

		// Names.
		{"4K_Aliasing", "4K_Aliasing"},
		{"FP_ARITH_INST_RETIRED.4_FLOPS", "FP_ARITH_INST_RETIRED.4_FLOPS"},
		{"iffy + elsewhere", "iffy + elsewhere"},
		{"min + max", "min + max"},
		{`\if + \e\l\s\e + \1e9`, `\if + \else + \1e9`},
		{`a\/b`, "a@b"},
		{`a\@b + \\`, `a\@b + \\`},
		{`raw\ 0x400fa`, `raw\ 0x400fa`},
		{"hv_24x7@PM_PB_CYC\\,chip\\=?@", `hv_24x7@PM_PB_CYC\,chip\=?@`},
	} {
		e, err := Parse(tt.src)
		if err != nil {
			t.Errorf("Parse(%q): %v", tt.src, err)
			continue
		}
		if got := e.String(); got != tt.want {
			t.Errorf("Parse(%q) = %q, want %q", tt.src, got, tt.want)
		}
		checkRoundTrip(t, tt.src, tt.src)
	}
}

// checkRoundTrip checks that the canonical form of a formula parses to the same
// tree.
func checkRoundTrip(t *testing.T, label, src string) {
	t.Helper()
	e, err := Parse(src)
	if err != nil {
		t.Errorf("%s: %v", label, err)
		return
	}
	again, err := Parse(e.String())
	if err != nil {
		t.Errorf("%s: canonical form: %v", label, err)
	} else if !equal(e, again) {
		t.Errorf("%s: %q parses to another tree: %q", label, e, again)
	}
}

// equal reports whether two expressions are the same tree.
func equal(a, b *Expr) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.op == b.op && a.num == b.num && a.text == b.text && a.terms == b.terms && a.spills == b.spills &&
		equal(a.x, b.x) && equal(a.y, b.y) && equal(a.z, b.z)
}

func TestNames(t *testing.T) {
	for _, tt := range []struct {
		src             string
		names, literals []string
	}{
		{"1 + 2", nil, nil},
		{"b + a * b", []string{"b", "a"}, nil},
		{"x if c else y", []string{"x", "c", "y"}, nil},
		{`cpu@event\=0xa8\,umask\=0x1@k`, []string{"cpu/event=0xa8,umask=0x1/k"}, nil},
		{`topdown\-retiring / (cpu_core@topdown\-fe\-bound@ + slots)`, []string{"topdown-retiring", "cpu_core/topdown-fe-bound/", "slots"}, nil},
		{"UNC_CHA_CLOCKTICKS:u0xff", []string{"UNC_CHA_CLOCKTICKS:u0xff"}, nil},
		{"metric_TMA_Retiring(%)", []string{"metric_TMA_Retiring(%)"}, nil},
		{"uops_retired.ms:c1:e1", []string{"uops_retired.ms:c1:e1"}, nil},
		{"a if #SMT_on else b if #core_wide < 1 else #smt_on", []string{"a", "b"}, []string{"#smt_on", "#core_wide"}},
		{"has_event(x) & strcmp_cpuid_str(y) & source_count(arb@event\\=0x81@)", nil, []string{`source_count(arb@event\=0x81@)`}},
	} {
		e := mustParse(t, tt.src)
		if diff := cmp.Diff(tt.names, e.Names()); diff != "" {
			t.Errorf("%s: names (-want +got):\n%s", tt.src, diff)
		}
		if diff := cmp.Diff(tt.literals, e.Literals()); diff != "" {
			t.Errorf("%s: literals (-want +got):\n%s", tt.src, diff)
		}
	}
}

func TestSyntaxError(t *testing.T) {
	for _, tt := range []struct {
		src  string
		pos  int
		want string // part of the message
	}{
		{"", 0, "expected a number, a name or an expression, found the end"},
		{"a +", 3, "found the end"},
		{"a + * b", 4, `found "*"`},
		{"a b", 2, `expected an operator, found "b"`},
		{"(a + b", 6, `expected ")", found the end`},
		{"a + b)", 5, `expected an operator, found ")"`},
		{"a if b", 6, `expected "else"`},
		{"if 0 > 2 else b", 0, `found "if"`},
		{"a if b else", 11, "found the end"},
		{"a else b", 2, `expected an operator, found "else"`},
		{"a = b", 2, `write "=="`},
		{"a=b", 1, `write "=="`},
		{"a ! b", 2, "unexpected character '!'"},
		{"a; b", 1, "unexpected character ';'"},
		{"µops + 1", 0, "unexpected character 'µ'"},
		{"a\x00b", 1, `unexpected character '\x00'`},
		{"a\\\x07b", 1, "a backslash needs a printable character"},
		{"a\\", 1, "a backslash needs a printable character"},
		{"a\xff", 1, "unexpected character"},
		{"#", 0, `"#" without a name`},
		{"# smt_on", 0, `"#" without a name`},
		{"min(a)", 5, `expected ","`},
		{"min(a, b, c)", 8, `expected ")"`},
		{"min()", 4, `found ")"`},
		{"abs(a)", 0, `unknown function "abs"`},
		{"5(a)", 1, `expected an operator, found "("`},
		{"has_event(1 + 2)", 10, "expected the name of an event"},
		{"has_event()", 10, "expected the name of an event"},
		{"has_event(a + b)", 12, `expected ")"`},
		{`has_event("a")`, 10, "expected the name of an event"},
		{`strcmp_cpuid_str("")`, 17, "expected an identification"},
		{`strcmp_cpuid_str("a`, 17, "the string has no end"},
		{"strcmp_cpuid_str(\"a\n\")", 19, "unexpected character"},
		{`"a"`, 0, `found "a"`},
		{"1e400", 0, "number out of range: 1e400"},
		{"a * 1e-400", 4, "number too small: 1e-400"},
		{"0x20000000000001", 0, "hexadecimal number above 2^53"},
		{"0xfffffffffffffffff", 0, "hexadecimal number above 2^53"},
		{"0x", 0, `"0x" is neither a number nor a name`},
		{"0xg", 0, `"0xg" is neither`},
		{"1.2.3", 0, `"1.2.3" is neither`},
		{"1e", 0, `"1e" is neither`},
		{"@", 0, `"@" is neither`},
		{"a << b", 2, `"<<" needs a whole number`},
		{"a << 64", 2, `"<<" needs a whole number up to 63`},
		{"a << 1.5", 2, `"<<" needs a whole number`},
		{"a << -1", 2, `"<<" needs a whole number`},
	} {
		_, err := Parse(tt.src)
		var syntax *SyntaxError
		if !errors.As(err, &syntax) {
			t.Errorf("Parse(%q): got %v, want a SyntaxError", tt.src, err)
			continue
		}
		if syntax.Pos != tt.pos || !strings.Contains(syntax.Msg, tt.want) || syntax.Src != tt.src {
			t.Errorf("Parse(%q): got offset %d of %q: %s; want offset %d: %s", tt.src, syntax.Pos, syntax.Src, syntax.Msg, tt.pos, tt.want)
		}
		if strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' }) {
			t.Errorf("Parse(%q): the message has control characters: %q", tt.src, err)
		}
	}
}

// TestHostile parses what a file can hold that means harm.
func TestHostile(t *testing.T) {
	const million = 1 << 20
	for _, tt := range []struct {
		name, src string
		want      string // part of the message; "" for none
	}{
		{"parentheses", strings.Repeat("(", 1000), "nested more than 200 deep"},
		{"signs", strings.Repeat("-", 1000) + "a", "nested more than 200 deep"},
		{"calls", strings.Repeat("min(", 1000), "nested more than 200 deep"},
		{"choices", strings.Repeat("a if b else ", 1000) + "c", "nested more than 200 deep"},
		{"deepest", strings.Repeat("(", maxDepth-1) + "a" + strings.Repeat(")", maxDepth-1), ""},
		{"longest sum", strings.Repeat("a+", maxLength/2-1) + "a", ""},
		{"longest product", strings.Repeat("a*", maxLength/2-1) + "-1", ""},
		{"too long", strings.Repeat("a+", maxLength/2) + "a", "longer than 131072 bytes"},
		{"number of a million digits", strings.Repeat("7", million), "longer than"},
		{"long number", strings.Repeat("7", 1000), "number out of range: 777"},
		{"name of a million letters", strings.Repeat("x", million), "longer than"},
		{"long name", strings.Repeat("x", 1000) + "(", "unknown function"},
		{"long bad word", "0x" + strings.Repeat("z", 1000), "neither a number nor a name"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, err := Parse(tt.src)
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want == "":
				mustCompile(t, e.Fold(Constants{}))
				checkCanonical(t, e)
			case err == nil:
				t.Error("no error")
			case !strings.Contains(err.Error(), tt.want) || len(err.Error()) > 300:
				t.Errorf("got %q, want at most 300 bytes with %q", err, tt.want)
			}
		})
	}
}
