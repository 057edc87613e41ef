package page

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestNumbers: figures are never cut, unknown ones are no numbers.
func TestNumbers(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct{ got, want string }{
		{Percent(nan), "–"}, {Percent(1), "100 %"}, {Percent(0.9994), "100 %"}, {Percent(0.123), "12 %"}, {Percent(0.0123), "1.23 %"}, {Percent(-0.5), "-50 %"},
		{PercentOf(nan), "–"}, {PercentOf(0.1234), "12.3 %"}, {PercentOf(-0.00001), "0.0 %"}, {Coverage(0.99996), "100 %"}, {Coverage(0.25), "25.00 %"},
		{Rounded(-0.001, 2), "0.00"}, {Rounded(-0.006, 2), "-0.01"},
		{Trim(nan), "–"}, {Trim(0), "0"}, {Trim(1.5), "1.5"}, {Trim(12345), "12345"}, {Trim(123456), "123.5 k"}, {Trim(1e16), "10 P"}, {Trim(0.00001234), "1.23e-05"},
		{Group("-1234567"), "-1,234,567"}, {Group("123"), "123"},
		{Duration(123.45), "123.5 s"}, {Duration(1.5), "1.50 s"}, {Duration(0.0025), "2.50 ms"}, {Duration(0.0000025), "2.5 µs"},
		{Several(1, "run"), "1 run"}, {Several(2, "run"), "2 runs"}, {Decimal(math.Inf(1)), ""},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
	for _, v := range []float64{0, 1.0 / 3, 1e300, -7.25, math.MaxFloat64, math.SmallestNonzeroFloat64} {
		if back, err := strconv.ParseFloat(Decimal(v), 64); err != nil || back != v {
			t.Errorf("%v reads back as %v, %v", v, back, err)
		}
	}
	var out bytes.Buffer
	if err := JSON(&out, []any{Number(nan), Known(nan), Known(1.5), Share(1.0 / 3)}); err != nil || strings.Join(strings.Fields(out.String()), "") != "[null,null,1.5,0.333333]" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

// TestWidths: texts fit their columns, whatever is in them.
func TestWidths(t *testing.T) {
	const text = "größer als die Spalte: a_word_that_is_longer_than_any_line and\nmore"
	lines := Wrap(text, 12)
	if got := strings.Join(strings.Fields(strings.Join(lines, " ")), " "); got != strings.Join(strings.Fields(text), " ") {
		t.Errorf("wrapping loses words: %q", got)
	}
	for _, line := range lines {
		if Runes(line) > 12 && strings.Contains(line, " ") {
			t.Errorf("%q is wider than 12", line)
		}
	}
	for _, c := range []struct{ got, want string }{
		{Cut("größer", 4), "grö…"}, {Cut("größer", 6), "größer"}, {CutLeft("/a/long/path.c:12", 10), "…path.c:12"}, {Padded("ö", 3), "ö  "}, {Padded("long", 2), "long"},
		{Bare("\x1b[1mbold\x1b[0m text"), "bold text"}, {Bare("\x1b[unfinished"), "\x1b[unfinished"}, {Printable("a\x1b[31m\tb\xff"), "a?[31m?b?"},
		{Shorter("short", 10), "short"}, {Shorter("github.com/a/b.(*T).Do", 12), "b.(*T).Do"},
		{Shorter("JS:*run /srv/lib/app.js:1:13", 12), "JS:*run app.js:1:13"}, {Shorter("py::run:/srv/app.py", 12), "py::run:app.py"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
	for _, line := range Heading("Memory_Bound.L1_Latency_Dependency", 6, 8) {
		if Runes(line) > 8 {
			t.Errorf("the heading %q is wider than 8", line)
		}
	}
}

// TestBar: the length is the share, and what is outside 0…1 is not drawn as inside.
func TestBar(t *testing.T) {
	for _, c := range []struct {
		share float64
		want  string
	}{{0, ""}, {-0.5, ""}, {math.NaN(), ""}, {1, strings.Repeat("█", barWidth)}, {0.5, strings.Repeat("█", barWidth/2)}, {1.0 / (8 * barWidth), "▏"}} {
		if got := Bar(c.share, 1); got != c.want {
			t.Errorf("%v: %q, want %q", c.share, got, c.want)
		}
	}
	if over := Bar(2, 1); !strings.HasSuffix(over, "▶") || Runes(over) != barWidth {
		t.Errorf("beyond the scale: %q", over)
	}
}

// TestTable: parts are aligned, and columns that no line uses are left out.
func TestTable(t *testing.T) {
	var out bytes.Buffer
	p := New(&out, 60, false)
	p.Table("heading", []Line{{Name: "one", Value: "1.5", Unit: "%"}, {Name: "  another", Value: "12.25", Unit: "%"}})
	if err := p.Flush(); err != nil {
		t.Fatal(err)
	}
	var ends []int
	for line := range strings.Lines(out.String()) {
		if i := strings.IndexByte(line, '%'); i >= 0 {
			ends = append(ends, i)
		}
		if Runes(strings.TrimRight(line, "\n")) > 60 {
			t.Errorf("%q is wider than the page", line)
		}
	}
	if len(ends) != 2 || ends[0] != ends[1] || !slices.ContainsFunc(strings.Split(out.String(), "\n"), func(l string) bool { return strings.Contains(l, "another") }) {
		t.Errorf("not aligned:\n%s", out.String())
	}
}
