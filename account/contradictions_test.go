package account_test

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/testlong"
	"github.com/cyclestack/cyclestack/internal/testshared"
	"github.com/cyclestack/cyclestack/model"
)

// column finds the column of an event by the processor's name, -1 if there is
// none.
func (r *recording) column(event string) int {
	for col := range r.table.Columns {
		if r.binding.Name(col) == event {
			return col
		}
	}
	return -1
}

// TestImpossible changes recordings of 20 processors: what must hold between two events does
// not. The audit must name both.
func TestImpossible(t *testing.T) {
	cat, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name        string
		event, than string
		times       float64
		most        int // of the 20 recordings have both events
	}{
		{"retired above issued", "UOPS_RETIRED.RETIRE_SLOTS", "UOPS_ISSUED.ANY", 1.1, 11},
		{"retired above issued", "UOPS_RETIRED.SLOTS", "UOPS_ISSUED.ANY", 1.1, 7},
		{"slots above width × cycles", "TOPDOWN.SLOTS", "CPU_CLK_UNHALTED.THREAD", 1.1 * 8, 8},
		{"slots above width × cycles", "IDQ_UOPS_NOT_DELIVERED.CORE", "CPU_CLK_UNHALTED.THREAD", 1.1 * 4, 11},
		{"children above their parent", "PERF_METRICS.MEMORY_BOUND", "PERF_METRICS.BACKEND_BOUND", 1.1, 5},
		{"children above their parent", "PERF_METRICS.FETCH_LATENCY", "PERF_METRICS.FRONTEND_BOUND", 1.1, 5},
		{"children above their parent", "PERF_METRICS.BRANCH_MISPREDICTS", "PERF_METRICS.BAD_SPECULATION", 2, 5},
		{"children above their parent", "PERF_METRICS.HEAVY_OPERATIONS", "PERF_METRICS.RETIRING", 1.1, 5},
		{"children above their parent", "IDQ_UOPS_NOT_DELIVERED.CYCLES_0_UOPS_DELIV.CORE", "IDQ_UOPS_NOT_DELIVERED.CORE", 1.1 / 4, 11},
		{"children above their parent", "CYCLE_ACTIVITY.STALLS_MEM_ANY", "CYCLE_ACTIVITY.STALLS_TOTAL", 1.1, 9},
		{"children above their parent", "CYCLE_ACTIVITY.STALLS_L1D_MISS", "CYCLE_ACTIVITY.STALLS_MEM_ANY", 1.1, 9},
		{"children above their parent", "MEMORY_ACTIVITY.STALLS_L2_MISS", "MEMORY_ACTIVITY.STALLS_L1D_MISS", 1.1, 4},
		{"children above their parent", "TOPDOWN_FE_BOUND.FRONTEND_LATENCY", "TOPDOWN_FE_BOUND.ALL", 1.1, 1},
		{"misses above accesses", "MEM_LOAD_RETIRED.L2_MISS", "MEM_LOAD_RETIRED.L1_MISS", 1.2, 11},
		{"misses above accesses", "MEM_LOAD_RETIRED.L3_MISS", "MEM_LOAD_RETIRED.L2_MISS", 1.2, 11},
		{"mispredicted above branches", "BR_MISP_RETIRED.ALL_BRANCHES", "BR_INST_RETIRED.ALL_BRANCHES", 1.1, 18},
		{"branches above instructions", "BR_INST_RETIRED.ALL_BRANCHES", "INST_RETIRED.ANY", 1.1, 18},
	}
	list := oracles(t, cat)
	for _, tt := range tests {
		n := 0
		for _, r := range list {
			col, of := r.column(tt.event), r.column(tt.than)
			if col < 0 || of < 0 {
				continue
			}
			n++
			spoilt := r.table.Clone()
			spoilt.Cell(0, col).Value = tt.times * spoilt.Cell(0, of).Value
			a := r.audit(spoilt)
			if s := a.Suspects(); !a.Contradicted() || !slices.Contains(s, tt.event) || !slices.Contains(s, tt.than) {
				t.Errorf("%s: %s: %s set to %v times %s: contradicted %v, by %v", r.file, tt.name, tt.event, tt.times, tt.than, a.Contradicted(), s)
			}
		}
		if n < tt.most {
			t.Errorf("%s: %s and %s are in %d recordings, want %d", tt.name, tt.event, tt.than, n, tt.most)
		}
	}
}

// TestSwapped swaps two of the events that decide the account, each with each
// other: where they differ by more than a half this must be found.
func TestSwapped(t *testing.T) {
	testlong.Alone(t)
	cat, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	events := []string{"CPU_CLK_UNHALTED.THREAD", "INST_RETIRED.ANY", "CPU_CLK_UNHALTED.REF_TSC", "UOPS_ISSUED.ANY", "UOPS_RETIRED.RETIRE_SLOTS", "UOPS_RETIRED.SLOTS",
		"UOPS_EXECUTED.THREAD", "TOPDOWN.SLOTS", "IDQ_UOPS_NOT_DELIVERED.CORE", "INT_MISC.RECOVERY_CYCLES", "PERF_METRICS.RETIRING", "PERF_METRICS.BAD_SPECULATION",
		"PERF_METRICS.FRONTEND_BOUND", "PERF_METRICS.BACKEND_BOUND", "PERF_METRICS.MEMORY_BOUND", "PERF_METRICS.FETCH_LATENCY", "CYCLE_ACTIVITY.STALLS_TOTAL",
		"CYCLE_ACTIVITY.STALLS_MEM_ANY", "BR_INST_RETIRED.ALL_BRANCHES", "BR_MISP_RETIRED.ALL_BRANCHES", "MEM_INST_RETIRED.ALL_LOADS", "MEM_INST_RETIRED.ALL_STORES",
		"MEM_LOAD_RETIRED.L1_MISS", "MEM_LOAD_RETIRED.L2_MISS", "MEM_LOAD_RETIRED.L3_MISS"}
	var total tally
	missed := map[string]int{}
	for _, r := range oracles(t, cat) {
		for i, x := range events {
			for _, y := range events[:i] {
				cx, cy := r.column(x), r.column(y)
				if cx < 0 || cy < 0 {
					continue
				}
				spoilt := r.table.Clone()
				p, q := spoilt.Cell(0, cx), spoilt.Cell(0, cy)
				if max(p.Value, q.Value) < 1.5*min(p.Value, q.Value) {
					continue
				}
				p.Value, q.Value = q.Value, p.Value
				total.of++
				if a := r.audit(spoilt); a.Contradicted() {
					total.caught++
				} else {
					missed[x+" and "+y]++
				}
			}
		}
	}
	t.Logf("%d of %d swaps found (%v); missed: %v", total.caught, total.of, total, missed)
	if float64(total.caught) < 0.9*float64(total.of) {
		t.Errorf("%d of %d swaps found", total.caught, total.of)
	}
}

// TestMultiplexedPair checks the judgement of two recordings of one program: one
// in two multiplexed groups, one without.
func TestMultiplexedPair(t *testing.T) {
	cat, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	dir := testshared.Dir(t, "corpus", "perfstat")
	read := func(name string) *account.Account {
		list := readRecordings(t, cat, filepath.Join(dir, name), "skylake")
		if len(list) != 1 {
			t.Fatalf("%s holds %d recordings", name, len(list))
		}
		return list[0].audit(list[0].table)
	}
	before, after := read("hand-skl-metrics-before-mux.txt"), read("hand-skl-metrics-after-nomux.txt")
	if before.Contradicted() || after.Contradicted() {
		t.Errorf("contradicted: %v, %v", before.Suspects(), after.Suspects())
	}
	for _, name := range []string{"Frontend_Bound", "Bad_Speculation", "Backend_Bound", "Retiring"} {
		i, _ := before.Node(name)
		j, _ := after.Node(name)
		x, y := before.Nodes[i], after.Nodes[j]
		if !x.Together || x.Coverage > 0.51 || x.Coverage < 0.49 {
			t.Errorf("%s, in turns: counted for %v of the time, together %v; it can be read from one group", name, x.Coverage, x.Together)
		}
		if !y.Together || y.Coverage != 1 || !y.Reliable() {
			t.Errorf("%s, at once: counted for %v of the time, together %v, %v", name, y.Coverage, y.Together, y.Doubt)
		}
	}
}

// TestAcrossGroups makes a node of the recording in two groups whose events are
// in different groups: it must be unreliable, and say why.
func TestAcrossGroups(t *testing.T) {
	cat, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	list := readRecordings(t, cat, filepath.Join(testshared.Dir(t, "corpus", "perfstat"), "hand-skl-metrics-before-mux.txt"), "skylake")
	table := list[0].table
	kept := &counts.Layout{Scopes: table.Scopes}
	var cells []counts.Cell
	for col, c := range table.Columns { // cycles of the first group, the front end of the second
		if c.Event == "cycles" && c.Group == table.Columns[0].Group || strings.HasPrefix(c.Event, "idq") {
			kept.Columns = append(kept.Columns, c)
			cells = append(cells, *table.Cell(0, col))
		}
	}
	across := counts.NewTable(kept)
	across.Duration = table.Duration
	copy(across.Row(0), cells)
	a := bindBest(t, cat, "across", "skylake", across).audit(across)
	i, ok := a.Node("Frontend_Bound")
	if v := a.Nodes[i]; !ok || len(cells) != 2 || !v.Known() || v.Together || v.Reliable() || v.Doubt.String() != "its inputs were not counted together" {
		t.Errorf("of %d events, together %v, reliable %v: %v", len(cells), v.Together, v.Reliable(), v.Doubt)
	}
}

// TestCorpusVerdicts compares the verdict on each published recording with
// testdata/verdicts.csv, where each contradiction has its reason.
func TestCorpusVerdicts(t *testing.T) {
	cat, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(verdictsFile)
	if err != nil {
		t.Fatal(err)
	}
	want := verdicts(t)
	cpus, reasons := map[string]string{}, map[string]string{}
	for _, row := range want {
		cpus[row[0]], reasons[row[0]] = row[1], row[4]
	}
	files, err := filepath.Glob(filepath.Join(testshared.Dir(t, "corpus", "perfstat"), "*"))
	if err != nil || len(files) < 140 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	got := [][]string{{"file", "cpu", "verdict", "checks", "reason"}}
	for _, path := range files {
		name := filepath.Base(path)
		checks, verdict := 0, "no counts"
		var suspects []string
		for _, r := range readRecordings(t, cat, path, cpus[name]) {
			a := r.audit(r.table)
			checks += made(a)
			if verdict == "no counts" {
				verdict = "sound"
			}
			if a.Contradicted() {
				verdict = "contradicted"
				suspects = a.Suspects()
			}
		}
		if verdict == "sound" && checks == 0 {
			verdict = "nothing to check"
		}
		if verdict == "contradicted" && reasons[name] == "" {
			t.Errorf("%s is contradicted, by %v, and nobody says why that is right", name, suspects)
		}
		got = append(got, []string{name, cpus[name], verdict, fmt.Sprint(checks), reasons[name]})
	}
	var b strings.Builder
	b.WriteString(string(text[:strings.Index(string(text), "file,")]))
	w := csv.NewWriter(&b)
	if err := w.WriteAll(got); err != nil {
		t.Fatal(err)
	}
	if b.String() == string(text) {
		return
	}
	if *update {
		if err := os.WriteFile(verdictsFile, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for i, row := range got[1:] {
		if i >= len(want) || !slices.Equal(row, want[i]) {
			t.Errorf("%s: got %v", verdictsFile, row)
		}
	}
}

// verdictsFile has the verdict on each published recording.
const verdictsFile = "testdata/verdicts.csv"

// verdicts reads it: file, processor, verdict, number of checks, reason.
func verdicts(t *testing.T) [][]string {
	t.Helper()
	return readTable(t, verdictsFile)
}

// readTable reads the rows of a table under testdata, without its heading.
func readTable(t *testing.T, file string) [][]string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.Comment = '#'
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows[1:]
}

// made is how many checks of what must hold could be made.
func made(a *account.Account) int {
	n := 0
	for i := range a.Checks {
		if c := &a.Checks[i]; c.Identity && c.State != account.Skipped {
			n += max(c.For, 1)
		}
	}
	return n
}
