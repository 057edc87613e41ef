package recorded

import (
	"math"
	"slices"
	"testing"

	"github.com/cyclestack/cyclestack/internal/source/samples"
)

func TestSplitNames(t *testing.T) {
	for text, want := range map[string][]string{
		"a":                        {"a"},
		"a, b":                     {"a", "b"},
		"f(int, char),g":           {"f(int, char)", "g"},
		"map<int, char>::at,[a,b]": {"map<int, char>::at", "[a,b]"},
		"operator>(x),b":           {"operator>(x)", "b"},
		"a,":                       {"a", ""},
	} {
		if got := splitNames(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestAddressRange(t *testing.T) {
	for text, want := range map[string]samples.Range{"0x10": {From: 0x10, To: 0x10}, " 0x10-0x20": {From: 0x10, To: 0x20}, "16-16": {From: 16, To: 16}} {
		if got, err := addressRange(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "x", "0x20-0x10", "0x10-", "-0x10", "0x10-0x20-0x30"} {
		if got, err := addressRange(text); err == nil {
			t.Errorf("%q is taken for %+v", text, got)
		}
	}
}

func TestWindow(t *testing.T) {
	for text, want := range map[string]samples.Window{
		"1,2": {From: 1, To: 2}, ",2": {To: 2}, "1.5,": {From: 1.5, To: math.Inf(1)}, " 3 , 3 ": {From: 3, To: 3},
	} {
		if got, err := window(text); err != nil || *got != want {
			t.Errorf("%q: %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "1", ",", "2,1", "-1,2", "nan,2", "1,inf", "a,b"} {
		if got, err := window(text); err == nil {
			t.Errorf("%q is taken for %+v", text, got)
		}
	}
}
