package perfstat

import (
	"math"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

func TestScanGrouped(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want float64
		rest string // what is left
	}{
		{"0 x", 0, " x"},
		{"1234567", 1234567, ""},
		{"1,234,567 cycles", 1234567, " cycles"},
		{"1.234.567 cycles", 1234567, " cycles"},
		{"1'234'567", 1234567, ""},
		{"1’234’567", 1234567, ""},
		{"1\u202f234\u202f567", 1234567, ""},
		{"1\u00a0234\u00a0567", 1234567, ""},
		{"1\xa0234\xa0567 ns", 1234567, " ns"}, // ISO 8859-1
		{"1 234 567 ns", 1234567, " ns"},
		{"22,81,52,044 ns", 228152044, " ns"}, // India
		{"1,234", 1234, ""},
		{"1.234", 1234, ""},
		{"0.123", 0.123, ""},
		{"1,27 msec", 1.27, " msec"},
		{"4.240,50 msec", 4240.5, " msec"},
		{"27,817,487.14", 27817487.14, ""},
		{"1 234,56 msec", 1234.56, " msec"},
		{"1\u202f234\u202f567,89", 1234567.89, ""},
		{"25086.43", 25086.43, ""},
		{"73063.166128 task-clock", 73063.166128, " task-clock"},
		{"1.584872", 1.584872, ""},
		{"12345.678", 12345.678, ""},
		{"2   395 072 x", 2, "   395 072 x"},        // two numbers
		{"2 39 072 x", 2, " 39 072 x"},              // two numbers
		{"1234 567 x", 1234, " 567 x"},              // no group has four digits
		{"18,446,744,073,709,551,615", 1 << 64, ""}, // rounded as float64 must
		{"91,713,983,302,759", 91713983302759, ""},
	} {
		v, n, _, ok := scanGrouped([]byte(tt.in))
		if !ok || v != tt.want || tt.in[n:] != tt.rest {
			t.Errorf("%q: got %v, rest %q, %v; want %v, rest %q", tt.in, v, tt.in[n:], ok, tt.want, tt.rest)
		}
	}
}

func TestScanGroupedRefuses(t *testing.T) {
	for _, in := range []string{
		"", "x", ",1", "-1", "1.2.3", "1,23,4", "1,234.567.890", "1,2345,678", "1.234,567,8", "1,234,56",
		"1'23", "12'34", "123456789012345678901234567890123456789012345678901234567890",
	} {
		if v, _, _, ok := scanGrouped([]byte(in)); ok {
			t.Errorf("%q: got %v, want none", in, v)
		}
	}
}

func TestParsePlain(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want float64
		ok   bool
	}{
		{"0", 0, true}, {"3969592418", 3969592418, true}, {"16167.76", 16167.76, true}, {"16167,76", 16167.76, true},
		{"225904.823297", 225904.823297, true}, {"1.234", 1.234, true}, {"18446744073709551615", 1 << 64, true},
		{"9007199254740993", 9007199254740992, true},
		{"1234567890123456789012345678901234567890", 1234567890123456789012345678901234567890, true},
		{"", 0, false}, {".5", 0, false}, {"5.", 0, false}, {"1,234,567", 0, false}, {"1e9", 0, false}, {"-1", 0, false}, {"0x10", 0, false},
	} {
		v, ok := parsePlain([]byte(tt.in))
		if ok != tt.ok || ok && v != tt.want {
			t.Errorf("%q: got %v, %v; want %v, %v", tt.in, v, ok, tt.want, tt.ok)
		}
	}
}

// The quick ways must give what strconv gives, to the last bit.
func TestNumbersRoundAsStrconv(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strconv.FormatUint(rapid.Uint64().Draw(t, "whole")>>rapid.IntRange(0, 63).Draw(t, "shift"), 10)
		if frac := rapid.StringMatching(`[0-9]{0,9}`).Draw(t, "frac"); frac != "" {
			text += "." + frac
		}
		want, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := parsePlain([]byte(text)); !ok || got != want {
			t.Errorf("parsePlain(%q) = %v, %v, want %v", text, got, ok, want)
		}
		if got, n, ok := quickNumber([]byte(text)); ok && (got != want || n != len(text)) {
			t.Errorf("quickNumber(%q) = %v, %d, want %v", text, got, n, want)
		}
	})
}

func TestTimestamp(t *testing.T) {
	for in, want := range map[string]int{
		"1.000142994": 11, "86400.000000001 x": 15, "1.00014299": 0, "1.0001429940": 0, "1,000142994": 0, "x": 0, "": 0, "1": 0,
	} {
		if got := timestamp([]byte(in)); got != want {
			t.Errorf("timestamp(%q) = %d, want %d", in, got, want)
		}
	}
	for in, want := range map[string]int64{"1.000142994": 1000142994, "0.5": 500000000, "12": 12e9, "": 0, "1.0000000019": 1000000001} {
		if got := nanoseconds([]byte(in)); got != want {
			t.Errorf("nanoseconds(%q) = %d, want %d", in, got, want)
		}
	}
}

func TestImplausible(t *testing.T) {
	for _, v := range []float64{0, 1, 1e15, 1e19} {
		if why := implausible(v); why != "" {
			t.Errorf("%v %s", v, why)
		}
	}
	for _, v := range []float64{math.NaN(), math.Inf(1), -1, 18446744073709551000, 1e20} {
		if implausible(v) == "" {
			t.Errorf("%v is taken for a count", v)
		}
	}
}
