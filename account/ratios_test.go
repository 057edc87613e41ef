package account_test

import (
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/testlong"
	"github.com/cyclestack/cyclestack/model"
)

// anyVendor are events that mean the same on processors of several vendors.
var anyVendor = map[string]string{
	"CPU_CLK_UNHALTED.THREAD": "cycles", "ls_not_halted_cyc": "cycles", "CPU_CYCLES": "cycles", "PM_CYC": "cycles",
	"INST_RETIRED.ANY": "instructions", "ex_ret_instr": "instructions", "INST_RETIRED": "instructions", "PM_INST_CMPL": "instructions",
	"BR_INST_RETIRED.ALL_BRANCHES": "branches", "ex_ret_brn": "branches", "BR_RETIRED": "branches",
	"BR_MISP_RETIRED.ALL_BRANCHES": "branch-misses", "ex_ret_brn_misp": "branch-misses", "BR_MIS_PRED_RETIRED": "branch-misses", "PM_BR_MPRED_CMPL": "branch-misses",
}

// A pair is two events whose ratio programs keep within a range, or do not.
type pair struct{ a, b string }

// ratios are the ranges of the logarithms of ratios, by pair and author.
type ratios map[pair]map[string][2]float64

// amounts are the counts of a recording by event.
func amounts(r *recording) map[string]float64 {
	list := map[string]float64{}
	for col := range r.table.Columns {
		if c := r.table.Cell(0, col); c.Ok() && c.Estimate() > 0 {
			list[commonName(r, col)] = c.Estimate()
		}
	}
	delete(list, "")
	return list
}

func commonName(r *recording, col int) string {
	name, _ := eventOf(r, col)
	name = strings.TrimSuffix(name, ":u")
	if common := anyVendor[name]; common != "" {
		return common
	}
	return name
}

func (of ratios) add(author string, list map[string]float64) {
	for a, x := range list {
		for b, y := range list {
			if a >= b {
				continue
			}
			by := of[pair{a, b}]
			if by == nil {
				by = map[string][2]float64{}
				of[pair{a, b}] = by
			}
			at, ok := by[author]
			if z := math.Log(x / y); !ok {
				by[author] = [2]float64{z, z}
			} else {
				by[author] = [2]float64{min(at[0], z), max(at[1], z)}
			}
		}
	}
}

// outside reports whether a ratio of an event is outside of the other authors' range, with a
// margin. That range needs three authors. "" is any event.
func (of ratios) outside(author string, list map[string]float64, event string, margin float64) bool {
	const least = 3
	for a, x := range list {
		for b, y := range list {
			if a >= b || event != "" && a != event && b != event {
				continue
			}
			low, high, authors := math.Inf(1), math.Inf(-1), 0
			for who, ends := range of[pair{a, b}] {
				if who != author {
					low, high, authors = min(low, ends[0]), max(high, ends[1]), authors+1
				}
			}
			if z := math.Log(x / y); authors >= least && (z < low-math.Log(margin) || z > high+math.Log(margin)) {
				return true
			}
		}
	}
	return false
}

// TestRatios tries ranges of ratios between all pairs of events, from the published recordings of
// all other authors. docs/audit.md has what they would add, and how many recordings they would
// wrongly call improbable: the product has no such ranges.
func TestRatios(t *testing.T) {
	testlong.Only(t)
	cat, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	list, all := publishedRecordings(t, cat), ratios{}
	for _, r := range list {
		all.add(author(r.file), amounts(r))
	}
	var b strings.Builder
	b.WriteString("| margin | recordings that are wrongly improbable | tripled: noticed now | and by ranges | halved: noticed now | and by ranges |\n|---|---|---|---|---|---|\n")
	for _, margin := range []float64{1, 1.5, 2, 3} {
		var wrong tally
		var noticed [4]tally
		for _, r := range list {
			own, who := amounts(r), author(r.file)
			wrong.add(all.outside(who, own, "", margin))
			before := suspected(r.audit(r.table))
			for col := range levels(r) {
				event, core := eventOf(r, col)
				if c := r.table.Cell(0, col); !core || !c.Ok() || c.Value == 0 {
					continue
				}
				for k, by := range []float64{3, 0.5} {
					spoilt := r.table.Clone()
					spoilt.Cell(0, col).Value *= by
					_, now, _ := found(r.audit(spoilt), event, before)
					changed, name := maps.Clone(own), commonName(r, col)
					changed[name] *= by
					noticed[2*k].add(now)
					noticed[2*k+1].add(now || !all.outside(who, own, name, margin) && all.outside(who, changed, name, margin))
				}
			}
		}
		fmt.Fprintf(&b, "| %g | %d of %d | %v | %v | %v | %v |\n", margin, wrong.caught, wrong.of, noticed[0], noticed[1], noticed[2], noticed[3])
	}
	golden(t, "../docs/audit.md", "ratios", b.String())
}
