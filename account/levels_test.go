package account_test

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
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

// moved is how far a changed count moves a share of the first three levels.
func moved(r *recording, from, to *account.Account) (most float64) {
	nodes := r.binding.Method.Model.Nodes
	for i := range nodes {
		if n := &nodes[i]; n.Level >= 1 && n.Level <= 3 && n.Section == "" && r.binding.Method.Model.Share(i) {
			if by := math.Abs(to.Nodes[i].Value - from.Nodes[i].Value); by > most {
				most = by
			}
		}
	}
	return most
}

// TestLevels triples and halves each count that the first three levels rest on. docs/audit.md
// has the shares that are contradicted, or named as suspect: of all counts, and of those that
// move a share of the account by 5 % of the whole.
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
	b.WriteString("| recordings | events | tripled: contradicted | or suspect | halved: contradicted | or suspect | bounded above | below | named first | of those that matter: tripled | halved |\n|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, of := range []struct {
		name string
		list []*recording
	}{{"synthetic, 20 processors", oracles(t, cat)}, {"the same by definition", repaired}, {"published", publishedRecordings(t, cat)}} {
		var n int
		var first tally // the spoilt count is the first suspect
		var shares [6]tally
		var matter [2]tally
		for _, r := range of.list {
			a := r.audit(r.table).Clone()
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
					after := r.audit(spoilt)
					contradicted, suspect, _ := found(after, event, before)
					if k < 2 && contradicted {
						first.add(after.Suspects()[0] == event)
					}
					if k < 2 && moved(r, a, after) >= 0.05 {
						matter[k].add(suspect)
					}
					if k < 2 {
						caught[2*k], caught[2*k+1] = contradicted, suspect
					} else {
						caught[2+k] = suspect
					}
				}
				for i := range shares {
					shares[i].add(caught[i])
				}
			}
		}
		fmt.Fprintf(&b, "| %s | %d |", of.name, n)
		for _, s := range shares {
			fmt.Fprintf(&b, " %v |", s)
		}
		fmt.Fprintf(&b, " %v | %v | %v |\n", first, matter[0], matter[1])
	}
	golden(t, "../docs/audit.md", "levels", b.String())
}

// author is the beginning of a published recording's name.
func author(file string) string {
	parts := strings.FieldsFunc(file, func(r rune) bool { return r == '-' || r == '_' })
	if parts[0] == "hand" || parts[0] == "lore" {
		return parts[1]
	}
	return parts[0]
}

// making reports whether the plausible ranges may be made from a published recording: half of
// the authors, by their names. The others test the ranges.
func making(file string) bool {
	h := fnv.New32a()
	h.Write([]byte(author(file)))
	return h.Sum32()%2 == 0
}

// TestImprobable checks that no published recording is suspect of an improbable count: neither
// those that the ranges were made from nor the others.
func TestImprobable(t *testing.T) {
	cat, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	list := publishedRecordings(t, cat)
	if len(list) < 60 {
		t.Fatalf("%d recordings", len(list))
	}
	type half struct{ recordings, checks, failing int }
	halves := map[bool]*half{true: {}, false: {}}
	for _, r := range list {
		a, h := r.audit(r.table), halves[making(r.file)]
		before := h.checks
		for i := range a.Checks {
			c := &a.Checks[i]
			if c.Side != account.Measurement || c.Identity || c.Source == "" || c.State == account.Skipped {
				continue
			}
			h.checks++
			if c.State == account.Fails {
				h.failing++
				t.Errorf("%s: %s: %v, %g and %g", r.file, c.Name, c.Events, c.Left, c.Right)
			}
			if testing.Verbose() {
				t.Logf("range\t%v\t%.4g\t%s\t%s", making(r.file), c.Left/c.Right, c.Name, r.file)
			}
		}
		if h.checks > before {
			h.recordings++
		}
	}
	var b strings.Builder
	b.WriteString("| recordings | with a range | checks | improbable |\n|---|---|---|---|\n")
	for _, k := range []bool{true, false} {
		fmt.Fprintf(&b, "| %s | %d | %d | %d |\n", map[bool]string{true: "of the authors that the ranges rest on", false: "of the others"}[k], halves[k].recordings, halves[k].checks, halves[k].failing)
	}
	golden(t, "../docs/audit.md", "ranges", b.String())
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
	recordings, event string
	level, sets       int
	up, down          []float64 // the smallest factor that is noticed in each set
	above, below      []string
}

// factors are tried in this order. A count is free in a direction if none of them is noticed.
var factors = []float64{1.1, 1.25, 1.5, 2, 3, 5, 10, 30, 100, 1000}

// bound finds the smallest factor that is noticed, +Inf if there is none.
func (e *bounded) bound(r *recording, col int, before map[string][]string, down bool) (at float64, by []string) {
	for _, factor := range factors {
		spoilt := r.table.Clone()
		if down {
			spoilt.Cell(0, col).Value /= factor
		} else {
			spoilt.Cell(0, col).Value *= factor
		}
		if _, suspect, checks := found(r.audit(spoilt), e.event, before); suspect {
			return factor, checks
		}
	}
	return math.Inf(1), nil
}

// TestBounds multiplies and divides each count of the first three levels, and lists the
// smallest factors that audit notices. What has none is free: no other count of the recording
// says anything of it.
func TestBounds(t *testing.T) {
	testlong.Only(t)
	cat, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	repaired := oracles(t, cat)
	for _, r := range repaired {
		repair(r)
	}
	events := map[string]*bounded{}
	for kind, list := range map[string][]*recording{"synthetic": repaired, "published": publishedRecordings(t, cat)} {
		for _, r := range list {
			before := suspected(r.audit(r.table))
			needed := levels(r)
			for _, col := range slices.Sorted(maps.Keys(needed)) {
				event, core := eventOf(r, col)
				if c := r.table.Cell(0, col); !core || !c.Ok() || c.Value == 0 {
					continue
				}
				e := events[kind+event]
				if e == nil {
					e = &bounded{recordings: kind, event: event, level: needed[col]}
					events[kind+event] = e
				}
				e.sets++
				e.level = min(e.level, needed[col])
				up, above := e.bound(r, col, before, false)
				down, below := e.bound(r, col, before, true)
				e.up, e.down = append(e.up, up), append(e.down, down)
				if len(e.above) == 0 {
					e.above = above
				}
				if len(e.below) == 0 {
					e.below = below
				}
			}
		}
	}
	compareBounds(t, events)
}

// noticed is the smallest factor that is noticed, in the median of an event's sets.
func noticed(list []float64) string {
	slices.Sort(list)
	if m := list[len(list)/2]; !math.IsInf(m, 1) {
		return fmt.Sprint(m)
	}
	return "free"
}

func compareBounds(t *testing.T, events map[string]*bounded) {
	t.Helper()
	rows := [][]string{{"recordings", "event", "level", "sets", "tripled", "halved", "noticed if multiplied by", "noticed if divided by", "bounded above by", "bounded below by"}}
	list := slices.SortedFunc(maps.Values(events), func(x, y *bounded) int {
		return cmp.Or(cmp.Compare(y.recordings, x.recordings), cmp.Compare(x.level, y.level), cmp.Compare(x.event, y.event))
	})
	within := func(list []float64, factor float64) string {
		n := 0
		for _, f := range list {
			if f <= factor {
				n++
			}
		}
		return fmt.Sprint(n)
	}
	for _, e := range list {
		rows = append(rows, []string{e.recordings, e.event, fmt.Sprint(e.level), fmt.Sprint(e.sets), within(e.up, 3), within(e.down, 2), noticed(e.up), noticed(e.down),
			cmp.Or(strings.Join(slices.Compact(e.above), "; "), "free"), cmp.Or(strings.Join(slices.Compact(e.below), "; "), "free")})
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
