package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/cyclestack/cyclestack/model"
)

// A style is how a piece of text looks on a terminal that has colours.
type style int

const (
	plain style = iota
	bold
	faint // labels, titles
	dim   // values not to be relied upon
	hot   // the bottleneck
)

// sgr are the terminal's codes (ECMA-48, select graphic rendition).
var sgr = [...]string{plain: "", bold: "1", faint: "2", dim: "90", hot: "1;31"}

// paint gives text a style where the report has colours.
func (t *tree) paint(s string, st style) string {
	if !t.o.Color || st == plain || s == "" {
		return s
	}
	return "\x1b[" + sgr[st] + "m" + s + "\x1b[0m"
}

func runes(s string) int { return utf8.RuneCountInString(s) }

// cut shortens text to a number of columns.
func cut(s string, width int) string {
	if runes(s) <= width {
		return s
	}
	r := []rune(s)
	return strings.TrimRight(string(r[:width-1]), " ") + "…"
}

// wrap breaks text at blanks into lines of at most width columns. A word that
// is longer stands alone.
func wrap(s string, width int) []string {
	var lines []string
	for _, para := range strings.Split(s, "\n") {
		line := ""
		for _, word := range strings.Fields(para) {
			switch {
			case line == "":
				line = word
			case runes(line)+1+runes(word) <= width:
				line += " " + word
			default:
				lines = append(lines, line)
				line = word
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// percent is a share in words: one decimal below 10 %, and "100 %" only for
// all of it.
func percent(share float64) string {
	p := share * 100
	switch {
	case math.IsNaN(p):
		return "–"
	case p >= 99.95 && p <= 100.005:
		return "100 %"
	case math.Abs(p) >= 10:
		return strconv.FormatFloat(p, 'f', 0, 64) + " %"
	}
	return strconv.FormatFloat(p, 'f', 2, 64) + " %"
}

// coverage is a share of time as perf prints it, with two decimals; all of it
// is 100 %.
func coverage(share float64) string {
	if share >= 0.99995 {
		return "100 %"
	}
	return strconv.FormatFloat(share*100, 'f', 2, 64) + " %"
}

// figure is a node's value as a person reads it: shares in percent, others
// with five significant digits or as many as a whole number has.
func figure(m *model.Model, i int, v float64) string {
	if m.Share(i) {
		return strconv.FormatFloat(v*100, 'f', 1, 64) + " %"
	}
	if unit(m, i) == "cycles/instruction" {
		return strconv.FormatFloat(v, 'f', 4, 64)
	}
	return trim(v)
}

// trim is a number with five significant digits, without trailing zeros; large
// ones in groups of three.
func trim(v float64) string {
	switch abs := math.Abs(v); {
	case math.IsNaN(v):
		return "–"
	case abs >= 1e15:
		return fmt.Sprintf("%.4e", v)
	case abs >= 1e5:
		return group(strconv.FormatFloat(v, 'f', 0, 64))
	case abs != 0 && abs < 1e-4:
		return strconv.FormatFloat(v, 'g', 3, 64)
	default:
		digits := 5
		for x := abs; x >= 1 && digits > 0; x /= 10 {
			digits--
		}
		s := strconv.FormatFloat(v, 'f', digits, 64)
		if strings.Contains(s, ".") {
			s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
		}
		return s
	}
}

// group separates the digits of a whole number in threes.
func group(s string) string {
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// duration is a time in seconds as a person reads it.
func duration(s float64) string {
	switch {
	case s >= 100:
		return strconv.FormatFloat(s, 'f', 1, 64) + " s"
	case s >= 1:
		return strconv.FormatFloat(s, 'f', 2, 64) + " s"
	case s >= 1e-3:
		return strconv.FormatFloat(s*1e3, 'f', 2, 64) + " ms"
	}
	return strconv.FormatFloat(s*1e6, 'f', 1, 64) + " µs"
}
