package report_test

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/report"
)

// TestDiffPlacesLines: places that have changed have lines however small they are; of the
// others those with a difference of 0.1 % of all, fifteen at the most; or as many of all
// as were asked for.
func TestDiffPlacesLines(t *testing.T) {
	d := &account.PlaceDifference{Runs: [2]int{5, 5}, Basis: account.ByRuns}
	add := func(name string, delta float64, v account.Verdict) {
		c := account.PlaceChange{PlaceName: account.PlaceName{Module: "prog", Name: name},
			Change: account.Change{Old: 1e5, New: 1e5 + delta, Delta: delta, Low: math.NaN(), High: math.NaN(), P: math.NaN(), Effect: math.NaN(), Verdict: v}}
		d.Places = append(d.Places, c)
		d.Total.Old, d.Total.New, d.Total.Delta = d.Total.Old+c.Old, d.Total.New+c.New, d.Total.Delta+delta
	}
	for i := range 20 { // of 24 places
		add(fmt.Sprintf("large%02d", i), 5000-float64(i), account.CannotTell)
	}
	add("enough", 2400, account.CannotTell)
	add("small", 2300, account.CannotTell)
	add("changed", 7, account.More)
	add("less", -7, account.Less)
	print := func(top int) string {
		var out bytes.Buffer
		h := report.DiffHeader{Old: "old", New: "new", What: "cycles", Per: "run", By: counts.Function}
		if err := report.Write(&out, "tree", report.PlaceComparison{Header: h, PlaceDifference: d, Top: top}, report.Options{}); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	text := print(0)
	for name, want := range map[string]bool{"large00": true, "large14": true, "large15": false, "enough": false, "small": false, "changed": true, "less": true, "(7 others)": true} {
		if strings.Contains(text, "  "+name+" ") != want {
			t.Errorf("a line of %s: %v, want %v in\n%s", name, !want, want, text)
		}
	}
	d.Places = d.Places[14:]
	text = print(0)
	for name, want := range map[string]bool{"large19": true, "enough": true, "small": false} {
		if strings.Contains(text, "  "+name+" ") != want {
			t.Errorf("a line of %s: %v, want %v in\n%s", name, !want, want, text)
		}
	}
	if text := print(2); strings.Count(text, "large") != 2 || strings.Contains(text, "  changed ") {
		t.Errorf("not two lines of the first in\n%s", text)
	}
	d.Basis = account.ByExactCounts // with "changed" and "less" two are shown however small they are
	for i := range 5 {
		add(fmt.Sprint("exact", i), 6-float64(i), account.More)
	}
	d.Places = d.Places[8:]
	text = print(0)
	for name, want := range map[string]bool{"changed": true, "less": true, "exact0": true, "exact1": false} {
		if strings.Contains(text, "  "+name+" ") != want {
			t.Errorf("exact: a line of %s: %v, want %v in\n%s", name, !want, want, text)
		}
	}
}
