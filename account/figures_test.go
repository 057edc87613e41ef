package account_test

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/cyclestack/cyclestack/internal/testshared"
	"github.com/cyclestack/cyclestack/model"
)

// TestErrorOrReason checks the reliable values of multiplexed counts, in published
// recordings and consistent sets. Each has an error, or a reason for none.
func TestErrorOrReason(t *testing.T) {
	cat, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	list := oracles(t, cat)
	for _, row := range verdicts(t) {
		list = append(list, readRecordings(t, cat, filepath.Join(testshared.Dir(t, "corpus", "perfstat"), row[0]), row[1])...)
	}
	values, multiplexed := 0, 0
	for _, r := range list {
		if r.binding == nil {
			continue
		}
		for _, share := range []float64{1, 0.4} { // as it is, and as if groups had been multiplexed
			table := r.table.Clone()
			for col := range table.Columns {
				if c := table.Cell(0, col); c.Ok() && share < 1 {
					c.Enabled, c.Running = 20e9, 20e9*share
				}
			}
			a := r.audit(table)
			for i := range a.Nodes {
				v := &a.Nodes[i]
				if !v.Known() || !v.Reliable() {
					continue
				}
				if values++; !(v.Coverage < 1) {
					continue
				}
				multiplexed++
				if why, _ := a.NoError(i); math.IsNaN(v.Error) && why == "" && v.Coverage < 0.99 {
					t.Errorf("%s: %s has neither an error nor a reason, at a coverage of %.2f", r.file, a.Model().Nodes[i].Name, v.Coverage)
				}
			}
		}
	}
	t.Logf("%d reliable values, %d of them multiplexed", values, multiplexed)
	if multiplexed < 500 {
		t.Errorf("only %d values are multiplexed", multiplexed)
	}
}

// TestPathAvoidsUsefulWork checks the paths of the consistent sets of 20 processors. They
// take useful work only if no other category is flagged.
func TestPathAvoidsUsefulWork(t *testing.T) {
	cat, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	paths, useful := 0, 0
	for _, r := range oracles(t, cat) {
		a := r.audit(r.table)
		path := a.Bottleneck
		if len(path) == 0 {
			continue
		}
		paths++
		first := a.Model().Nodes[path[0]].Name
		if first != "Retiring" && first != "tma_retiring" {
			continue
		}
		useful++
		for i := range a.Nodes {
			if n := &a.Model().Nodes[i]; n.Level == 1 && n.Section == "" && i != path[0] && a.Nodes[i].Flagged {
				t.Errorf("%s: the path takes %s, and %s is flagged", r.file, first, n.Name)
			}
		}
	}
	t.Logf("%d paths, %d of them through useful work", paths, useful)
	if paths == 0 {
		t.Error("no recording has a path")
	}
}
