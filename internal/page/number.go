package page

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// Percent is a share in a sentence: without decimals from 10 % on, with two below, and
// "100 %" only for all of it.
func Percent(share float64) string {
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

// PercentOf is a share with one decimal, which lines up in columns.
func PercentOf(share float64) string {
	if math.IsNaN(share) {
		return "–"
	}
	return Rounded(share*100, 1) + " %"
}

// Coverage is a share of time as perf prints it, with two decimals; all of it
// is 100 %.
func Coverage(share float64) string {
	if share >= 0.99995 {
		return "100 %"
	}
	return strconv.FormatFloat(share*100, 'f', 2, 64) + " %"
}

// Rounded is a number with some decimals. What rounds to 0 has no sign.
func Rounded(v float64, decimals int) string {
	text := strconv.FormatFloat(v, 'f', decimals, 64)
	if strings.Trim(text, "-0.") == "" {
		return strings.TrimPrefix(text, "-")
	}
	return text
}

// Trim is a number with five significant digits, without trailing zeros. From 100,000 on
// it has four, and a decimal unit: "1.234 G".
func Trim(v float64) string {
	switch abs := math.Abs(v); {
	case math.IsNaN(v):
		return "–"
	case math.IsInf(v, 0):
		return strconv.FormatFloat(v, 'g', -1, 64)
	case abs >= 1e5:
		return scaled(v)
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

// Exact is a number as by [Trim], but with all of its digits before the point: for numbers
// that are compared.
func Exact(v float64) string {
	if abs := math.Abs(v); abs >= 1e5 && abs < 1e15 {
		return Group(strconv.FormatFloat(v, 'f', 0, 64))
	}
	return Trim(v)
}

// Group separates the digits of an integer in threes.
func Group(s string) string {
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// Duration is a time in seconds as a person reads it.
func Duration(s float64) string {
	switch abs := math.Abs(s); {
	case math.IsNaN(s):
		return "–"
	case s == 0:
		return "0 s"
	case s < 0:
		return "-" + Duration(abs)
	case abs < 1e-6:
		return Trim(s*1e9) + " ns"
	case s >= 100:
		return strconv.FormatFloat(s, 'f', 1, 64) + " s"
	case s >= 1:
		return strconv.FormatFloat(s, 'f', 2, 64) + " s"
	case s >= 1e-3:
		return strconv.FormatFloat(s*1e3, 'f', 2, 64) + " ms"
	}
	return strconv.FormatFloat(s*1e6, 'f', 1, 64) + " µs"
}

// Several is a number of things: "1 run", "2 runs".
func Several(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// AppendDecimal appends the shortest text that reads back as the number, and
// nothing if it is not known.
func AppendDecimal(b []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return b
	}
	return strconv.AppendFloat(b, f, 'g', -1, 64)
}

// Decimal is AppendDecimal's text.
func Decimal(f float64) string { return string(AppendDecimal(nil, f)) }

// A Number is a float that JSON can hold: one that is not known is null, and
// omitted where the field says omitempty.
type Number float64

// MarshalJSON implements json.Marshaler.
func (n Number) MarshalJSON() ([]byte, error) {
	if f := float64(n); !math.IsNaN(f) && !math.IsInf(f, 0) {
		return json.Marshal(f)
	}
	return []byte("null"), nil
}

// Known returns a number for JSON, nil if it is not known.
func Known(f float64) *Number {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil
	}
	n := Number(f)
	return &n
}

// Share is a share of time with as many digits as one can have.
func Share(f float64) *Number { return Known(math.Round(f*1e6) / 1e6) }

// JSON writes a document, indented.
func JSON(w io.Writer, doc any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	e.SetEscapeHTML(false)
	return e.Encode(doc)
}
