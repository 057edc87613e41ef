package fleet

import (
	"math"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/limits"
)

// TestBeyond: a limit is broken by the largest change beyond it that is no chance.
func TestBeyond(t *testing.T) {
	c := &Comparison{Changes: []Change{
		{By: "search", Node: "Memory_Bound", Old: 0.4, Delta: 0.02, P: 0.001},
		{By: "front", Node: "Memory_Bound", Old: 0.2, Delta: 0.015, P: 0.01},
		{By: "front", Node: "Core_Bound", Old: 0.1, Delta: 0.09, P: 0.2},
		{By: "front", Node: "Retiring", Old: 0.5, Delta: -0.05, P: 0.01},
		{By: "front", Node: "Divider", Old: 0, Delta: 0.01, P: 0.01},
		{By: "front", Node: "Ports", Old: 0.1, Delta: 0.2, P: math.NaN()},
	}}
	for text, want := range map[string]string{
		"Memory_Bound>3%":               "Memory_Bound of search changed by +5.00 %",
		"Memory_Bound>6%":               "Memory_Bound of front changed by +7.50 %",
		"Memory_Bound>8%":               "",
		"Memory_Bound<1%":               "",
		"Core_Bound>3%":                 "", // by chance
		"Ports>3%":                      "", // too few hosts
		"Retiring<3%":                   "Retiring of front changed by -10.00 %",
		"Retiring>3%":                   "",
		"Div*>3%":                       "Divider of front is new",
		"*_Bound>3%,Retiring<20%":       "Memory_Bound of search changed by +5.00 %",
		"Memory_Bound>3%,Retiring<3%":   "Memory_Bound of search changed by +5.00 %; Retiring of front changed by -10.00 %",
		"Nothing>3%":                    "!no such node",
		"Memory_Bound>3%, Nothing > 1%": "!no such node",
	} {
		list, err := limits.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.beyond(list)
		if problem, ok := strings.CutPrefix(want, "!"); ok {
			if err == nil || fault.Of(err) != fault.Usage || !strings.Contains(err.Error(), problem) {
				t.Errorf("%s: %v, want %s", text, err, problem)
			}
			continue
		}
		if err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", text, got, err, want)
		}
	}
}

// TestFailOn: limits that mean nothing are refused before the store is asked.
func TestFailOn(t *testing.T) {
	for text, want := range map[string]string{
		"Memory_Bound":    "NODE>PERCENT%",
		"function:f>3%":   "no places in the code",
		"Memory_[>3%":     "not a pattern",
		"Memory_Bound>3%": "",
	} {
		_, err := (&Options{FailOn: text, Against: "version=canary"}).limits()
		if want == "" && err != nil || want != "" && (err == nil || fault.Of(err) != fault.Usage || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if _, err := (&Options{FailOn: "Memory_Bound>3%"}).limits(); err == nil || !strings.Contains(err.Error(), "against LABEL=VALUE") {
		t.Errorf("without a comparison: %v", err)
	}
}
