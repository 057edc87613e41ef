package account_test

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/testlong"
	"github.com/cyclestack/cyclestack/model"
)

// suspected lists the checks that an audit finds improbable or contradictory.
func suspected(a *account.Account) map[string][]string {
	failing := map[string][]string{}
	for i := range a.Checks {
		if c := &a.Checks[i]; c.State == account.Fails && c.Side == account.Measurement {
			failing[c.Name] = append(failing[c.Name], c.Events...)
		}
	}
	return failing
}

// found reports whether a changed count is contradicted, or newly suspect, and the checks that say so.
func found(a *account.Account, event string, before map[string][]string) (contradicted, suspect bool, by []string) {
	for i := range a.Checks {
		c := &a.Checks[i]
		if c.State != account.Fails || c.Side != account.Measurement || !slices.Contains(c.Events, event) {
			continue
		}
		if c.Identity {
			contradicted = true
		} else if slices.Contains(before[c.Name], event) {
			continue
		}
		suspect = true
		by = append(by, c.Name)
	}
	return contradicted, suspect, by
}

// levels are the columns that nodes of the first three levels rest on. Each has the first
// level that needs it.
func levels(r *recording) map[int]int {
	needed := map[int]int{}
	nodes := r.binding.Method.Model.Nodes
	for i, columns := range r.binding.NodeColumns() {
		if l := nodes[i].Level; l >= 1 && l <= 3 && nodes[i].Section == "" {
			for _, col := range columns {
				if needed[col] == 0 || l < needed[col] {
					needed[col] = l
				}
			}
		}
	}
	return needed
}

// repair changes the counts of a synthetic set that break the definitions of their events.
func repair(r *recording) {
	value := func(names ...string) (total float64) {
		for col := range r.table.Columns {
			if slices.Contains(names, r.binding.Name(col)) {
				total += r.table.Cell(0, col).Value
			}
		}
		return total
	}
	set := func(v float64, names ...string) {
		for col := range r.table.Columns {
			if v > 0 && slices.Contains(names, r.binding.Name(col)) {
				r.table.Cell(0, col).Value = v
			}
		}
	}
	for col := range r.table.Columns {
		if name := r.binding.Name(col); strings.HasPrefix(name, "BR_MISP_RETIRED.") || strings.HasPrefix(name, "MACHINE_CLEARS.") || name == "INT_MISC.CLEAR_RESTEER_CYCLES" {
			r.table.Cell(0, col).Value /= 10
		}
	}
	set(1.5*(value("BR_MISP_RETIRED.ALL_BRANCHES")+value("MACHINE_CLEARS.COUNT")), "INT_MISC.CLEARS_COUNT")
	cycles := value("CPU_CLK_UNHALTED.THREAD")
	idle := cmp.Or(value("CYCLE_ACTIVITY.STALLS_TOTAL"), value("CYCLE_ACTIVITY.CYCLES_NO_EXECUTE"))
	for name, share := range map[string]float64{"GE_1": 1, "GE_1_UOP_EXEC": 1, "GE_2_UOPS_EXEC": 0.7, "GE_3": 0.4, "GE_3_UOPS_EXEC": 0.4} {
		set(share*(cycles-idle), "UOPS_EXECUTED.CYCLES_"+name)
	}
	set(0.2*min(value("IDQ.MS_UOPS"), cycles), "IDQ.MS_SWITCHES")
	set(0.4*value("BR_INST_RETIRED.ALL_BRANCHES"), "UOPS_RETIRED.MACRO_FUSED", "INST_RETIRED.MACRO_FUSED")
	set(0.5*value("PERF_METRICS.HEAVY_OPERATIONS"), "UOPS_RETIRED.MS")
	set(value("MEM_LOAD_UOPS_RETIRED.L3_HIT", "MEM_LOAD_UOPS_RETIRED.L3_MISS", "MEM_LOAD_UOPS_RETIRED.LLC_HIT", "MEM_LOAD_UOPS_RETIRED.LLC_MISS"), "MEM_LOAD_UOPS_RETIRED.L2_MISS")
	set(value("MEM_LOAD_UOPS_RETIRED.L2_HIT", "MEM_LOAD_UOPS_RETIRED.L2_MISS"), "MEM_LOAD_UOPS_RETIRED.L1_MISS")
}

// TestLevels triples and halves each count that the first three levels rest on. docs/audit.md
// has the shares that are contradicted, or named as suspect.
func TestLevels(t *testing.T) {
	testlong.Only(t)
	cat, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	repaired := oracles(t, cat)
	for _, r := range repaired {
		repair(r)
	}
	var b strings.Builder
	b.WriteString("| recordings | events | tripled: contradicted | or suspect | halved: contradicted | or suspect | bounded above | below | named first |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, of := range []struct {
		name string
		list []*recording
	}{{"synthetic, 20 processors", oracles(t, cat)}, {"the same by definition", repaired}, {"published", publishedRecordings(t, cat)}} {
		var n int
		var first tally // the spoilt count is the first suspect
		var shares [6]tally
		for _, r := range of.list {
			a := r.audit(r.table)
			if a.Contradicted() {
				t.Errorf("%s, %s: contradicted as it is: %v", of.name, r.file, suspected(a))
			}
			before := suspected(a)
			for col := range levels(r) {
				event, core := eventOf(r, col)
				if c := r.table.Cell(0, col); !core || !c.Ok() || c.Value == 0 {
					continue
				}
				n++
				var caught [6]bool
				for k, by := range []float64{3, 0.5, 1000, 0.001} {
					spoilt := r.table.Clone()
					spoilt.Cell(0, col).Value *= by
					a := r.audit(spoilt)
					contradicted, suspect, _ := found(a, event, before)
					if k < 2 && contradicted {
						first.of++
						if a.Suspects()[0] == event {
							first.caught++
						}
					}
					if k < 2 {
						caught[2*k], caught[2*k+1] = contradicted, suspect
					} else {
						caught[2+k] = suspect
					}
				}
				for i := range shares {
					shares[i].of++
					if caught[i] {
						shares[i].caught++
					}
				}
			}
		}
		fmt.Fprintf(&b, "| %s | %d |", of.name, n)
		for _, s := range shares {
			fmt.Fprintf(&b, " %v |", s)
		}
		fmt.Fprintf(&b, " %v |\n", first)
	}
	golden(t, "../docs/audit.md", "levels", b.String())
}

// TestImprobable checks that no published recording is suspect of an improbable count.
func TestImprobable(t *testing.T) {
	cat, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	list := publishedRecordings(t, cat)
	if len(list) < 60 {
		t.Fatalf("%d recordings", len(list))
	}
	for _, r := range list {
		a := r.audit(r.table)
		for i := range a.Checks {
			if c := &a.Checks[i]; c.State == account.Fails && c.Side == account.Measurement && !c.Identity && c.Source != "" {
				t.Errorf("%s: %s: %v, %g and %g", r.file, c.Name, c.Events, c.Left, c.Right)
			}
		}
	}
}

// TestSuspect checks that a count outside its plausible range is suspect, and contradicts
// nothing.
func TestSuspect(t *testing.T) {
	cat, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		branches float64
		want     string
	}{{1.5e8, ""}, {6e8, "programs have at most two branches in five instructions"}, {1e6, "programs have a branch in two hundred instructions"}} {
		l := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("test")}, Columns: []counts.Column{{Event: "cycles"}, {Event: "instructions"}, {Event: "branches"}}}
		table := counts.NewTable(l)
		table.Duration = 1
		for col, v := range []float64{1e9, 1e9, tt.branches} {
			*table.Cell(0, col) = all(v)
		}
		a := bindBest(t, cat, "suspect", "skylake", table).audit(table)
		var got []string
		for name := range suspected(a) {
			if !strings.Contains(name, "errata") {
				got = append(got, name)
			}
		}
		if a.Contradicted() || strings.Join(got, "; ") != tt.want {
			t.Errorf("%g branches: contradicted %v, suspect %q, want %q", tt.branches, a.Contradicted(), got, tt.want)
		}
	}
}

const boundsFile = "testdata/bounds.csv"

// A bounded is an event of the first three levels and what bounds it.
type bounded struct {
	event           string
	level, sets     int
	tripled, halved int
	above, below    []string
}

// TestBounds lists for each event of the first three levels which checks bound it from above
// and from below: those that fail first if it is multiplied or divided. What has none is free:
// no other count of the recording says anything of it.
func TestBounds(t *testing.T) {
	testlong.Only(t)
	cat, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	events := map[string]*bounded{}
	for _, r := range oracles(t, cat) {
		repair(r)
		before := suspected(r.audit(r.table))
		for col, level := range levels(r) {
			event, core := eventOf(r, col)
			if c := r.table.Cell(0, col); !core || !c.Ok() || c.Value == 0 {
				continue
			}
			e := events[event]
			if e == nil {
				e = &bounded{event: event, level: level}
				events[event] = e
			}
			e.sets++
			e.level = min(e.level, level)
			for _, by := range []float64{3, 10, 100, 0.5, 0.1, 0.01} {
				spoilt := r.table.Clone()
				spoilt.Cell(0, col).Value *= by
				_, suspect, checks := found(r.audit(spoilt), event, before)
				switch {
				case !suspect:
					continue
				case by == 3:
					e.tripled++
				case by == 0.5:
					e.halved++
				}
				into := &e.above
				if by < 1 {
					into = &e.below
				}
				if len(*into) == 0 {
					*into = checks
				}
			}
		}
	}
	compareBounds(t, events)
}

func compareBounds(t *testing.T, events map[string]*bounded) {
	t.Helper()
	rows := [][]string{{"event", "level", "sets", "tripled", "halved", "bounded above by", "bounded below by"}}
	list := make([]*bounded, 0, len(events))
	for _, e := range events {
		list = append(list, e)
	}
	slices.SortFunc(list, func(x, y *bounded) int {
		return cmp.Or(cmp.Compare(x.level, y.level), cmp.Compare(x.event, y.event))
	})
	for _, e := range list {
		rows = append(rows, []string{e.event, fmt.Sprint(e.level), fmt.Sprint(e.sets), fmt.Sprint(e.tripled), fmt.Sprint(e.halved),
			cmp.Or(strings.Join(e.above, "; "), "free"), cmp.Or(strings.Join(e.below, "; "), "free")})
	}
	var b bytes.Buffer
	if err := csv.NewWriter(&b).WriteAll(rows); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(boundsFile, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if old, err := os.ReadFile(boundsFile); err != nil || !bytes.Equal(old, b.Bytes()) {
		t.Errorf("%s differs (%v): -update writes it", boundsFile, err)
	}
}
