package account_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/testlong"
	"github.com/cyclestack/cyclestack/internal/testshared"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/source/perfstat"
)

// A recording is one table of a file, and how it is accounted for.
type recording struct {
	file    string
	table   *counts.Table
	binding *account.Binding
}

func (r *recording) audit(t *counts.Table) *account.Account {
	return r.binding.Evaluate(t, account.Place{}, nil)
}

// readRecordings reads the tables of a file, intervals summed, and binds each to
// the method that cyclestack audit takes: the first whose first level is known,
// or else the one that checks most.
func readRecordings(t *testing.T, cat *model.Catalogue, file, cpu string) []*recording {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var list []*recording
	total := counts.NewTotal(0)
	flush := func() {
		if total.Table() != nil {
			list = append(list, bindBest(t, cat, filepath.Base(file), cpu, total.Table()))
		}
		total = counts.NewTotal(0)
	}
	r := perfstat.NewReader(f, file, perfstat.Options{})
	for r.Next() {
		if total.Begins(r.Table()) {
			flush()
		}
		if err := total.Add(r.Table()); err != nil {
			t.Fatal(err)
		}
	}
	flush()
	if r.Err() != nil {
		return nil // such as a file with derived figures only
	}
	return list
}

func bindBest(t *testing.T, cat *model.Catalogue, file, name string, table *counts.Table) *recording {
	t.Helper()
	if name == "" {
		name = table.CPU
	}
	if name == "" {
		name = "generic"
	}
	cpu, err := cat.CPU(name)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	events, err := cat.Events(cpu)
	if err != nil {
		t.Fatal(err)
	}
	best, most := &recording{file: file, table: table}, -1
	for _, info := range cat.Models(cpu.Name) {
		m, err := cat.Model(info.Name, cpu.Name)
		if err != nil {
			t.Fatal(err)
		}
		method, err := account.Compile(m, cpu, events, account.Options{})
		if err != nil {
			t.Fatal(err)
		}
		b := method.Bind(table.Layout)
		a := b.Evaluate(table, account.Place{}, nil)
		if a.Completeness() >= 1 {
			best.binding = b
			break
		}
		made := 0
		for i := range a.Checks {
			if a.Checks[i].State != account.Skipped {
				made++
			}
		}
		if made > most {
			best.binding, most = b, made
		}
	}
	return best
}

// oracles are the consistent sets of counts of 20 processors.
func oracles(t *testing.T, cat *model.Catalogue) []*recording {
	t.Helper()
	dir := testshared.Dir(t, "oracle", "tma")
	files, err := filepath.Glob(filepath.Join(dir, "*.csv"))
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	var list []*recording
	for _, file := range files {
		text, err := os.ReadFile(strings.TrimSuffix(file, ".csv") + ".expected.json")
		if err != nil {
			t.Fatal(err)
		}
		var expected struct{ CPU string }
		if err := json.Unmarshal(text, &expected); err != nil {
			t.Fatal(err)
		}
		list = append(list, readRecordings(t, cat, file, expected.CPU)...)
	}
	return list
}

// A fault is one way to spoil one count. It reports whether there was something
// to spoil.
type fault struct {
	name  string
	spoil func(c *counts.Cell, elsewhere float64) bool
}

var faults = []fault{
	{"tripled", func(c *counts.Cell, _ float64) bool { c.Value *= 3; return true }},
	{"halved", func(c *counts.Cell, _ float64) bool { c.Value /= 2; return true }},
	{"stuck at zero", func(c *counts.Cell, _ float64) bool { c.Value = 0; return true }},
	{"wrapped at 48 bits", func(c *counts.Cell, _ float64) bool { c.Value = 1<<48 - c.Value; return true }},
	{"from another run", func(c *counts.Cell, elsewhere float64) bool {
		if math.IsNaN(elsewhere) || math.Abs(elsewhere-c.Value) < 0.2*c.Value {
			return false
		}
		c.Value = elsewhere
		return true
	}},
	{"never ran", func(c *counts.Cell, _ float64) bool {
		*c = counts.Cell{State: counts.NotCounted, Enabled: c.Enabled}
		return true
	}},
}

// classes are the kinds of events that the detection is counted by.
var classes = []struct {
	name    string
	matches *regexp.Regexp
}{
	{"cycles, instructions, slots", regexp.MustCompile(`^(CPU_CLK_UNHALTED\.(THREAD|CORE|REF_TSC)|INST_RETIRED\.ANY|TOPDOWN\.SLOTS|tsc|cycles|instructions|ref-cycles|CPU_CYCLES|INST_RETIRED|ls_not_halted_cyc|PM_CYC|PM_INST_CMPL)(:[uk])?$`)},
	{"uops", regexp.MustCompile(`^(UOPS_(ISSUED|EXECUTED|RETIRED)\.|OP_|ex_ret_(ops|instr)|de_src_op)`)},
	{"top-down, levels 1 and 2", regexp.MustCompile(`^(PERF_METRICS\.|TOPDOWN_|IDQ_UOPS_NOT_DELIVERED\.|IDQ_BUBBLES\.|INT_MISC\.RECOVERY|STALL_SLOT|de_no_dispatch|CYCLE_ACTIVITY\.STALLS_(TOTAL|MEM_ANY)|EXE_ACTIVITY\.BOUND_ON_LOADS)`)},
	{"stalls, cycles of memory", regexp.MustCompile(`^(CYCLE_ACTIVITY|MEMORY_ACTIVITY|EXE_ACTIVITY|MEMORY_STALLS|STALL_|stalled-)`)},
	{"branches", regexp.MustCompile(`^(BR_|branch|ex_ret_brn)`)},
	{"loads, stores, caches", regexp.MustCompile(`^(MEM_|L1D|L2_|LONGEST|L1-|LLC|cache-|L2D|LL_|dTLB|iTLB)`)},
	{"dispatch ports", regexp.MustCompile(`^UOPS_DISPATCHED`)},
	{"delivery of uops", regexp.MustCompile(`^(IDQ\.|LSD)`)},
	{"the kernel's own", regexp.MustCompile(`^(task-clock|cpu-clock|page-faults|minor-faults|major-faults|context-switches|cpu-migrations|user_time|system_time)$`)},
	{"others", regexp.MustCompile(``)},
}

func classOf(event string) int {
	return slices.IndexFunc(classes, func(c struct {
		name    string
		matches *regexp.Regexp
	}) bool {
		return c.matches.MatchString(event)
	})
}

// tally is how many faults were caught.
type tally struct{ caught, of int }

func (t *tally) add(caught bool) {
	t.of++
	if caught {
		t.caught++
	}
}

func (t tally) String() string {
	if t.of == 0 {
		return "–"
	}
	return fmt.Sprintf("%d %%", int(math.Floor(100*float64(t.caught)/float64(t.of))))
}

// TestDoctored spoils one count after the other in each of six ways: of 20 processors'
// recordings and of published ones. The audit must contradict them as often as docs/audit.md
// says, and name the event.
func TestDoctored(t *testing.T) {
	testlong.Alone(t)
	cat, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	doctor(t, "detection", oracles(t, cat))
	doctor(t, "published", publishedRecordings(t, cat))
}

// publishedRecordings are those of perf stat that hold enough to be checked.
func publishedRecordings(t *testing.T, cat *model.Catalogue) []*recording {
	t.Helper()
	var list []*recording
	for _, row := range verdicts(t) {
		if row[2] != "sound" {
			continue
		}
		for _, r := range readRecordings(t, cat, filepath.Join(testshared.Dir(t, "corpus", "perfstat"), row[0]), row[1]) {
			if made(r.audit(r.table)) > 0 {
				list = append(list, r)
			}
		}
	}
	return list
}

// doctor spoils recordings and compares what was found with a table in the
// documentation.
func doctor(t *testing.T, name string, list []*recording) {
	t.Helper()
	matrix := make([][]tally, len(classes))
	for i := range matrix {
		matrix[i] = make([]tally, len(faults))
	}
	all := make([]tally, len(faults))
	for n, r := range list {
		if a := r.audit(r.table); a.Contradicted() {
			t.Errorf("%s: contradicted as it is: %v", r.file, a.Suspects())
			continue
		}
		other := list[(n+len(list)/2)%len(list)]
		for col := range r.table.Columns {
			event, core := eventOf(r, col)
			if c := r.table.Cell(0, col); !core || !c.Ok() || c.Value == 0 {
				continue
			}
			class := classOf(event)
			for f := range faults {
				spoilt := r.table.Clone()
				if !faults[f].spoil(spoilt.Cell(0, col), valueOf(other, event)) {
					continue
				}
				a := r.audit(spoilt)
				caught := a.Contradicted()
				if caught && !slices.Contains(a.Suspects(), event) {
					t.Errorf("%s: %s %s: found in %v", r.file, event, faults[f].name, a.Suspects())
				}
				matrix[class][f].add(caught)
				all[f].add(caught)
				if !caught && testing.Verbose() {
					t.Logf("missed\t%s\t%s\t%s\t%s", classes[class].name, faults[f].name, event, r.file)
				}
			}
		}
	}
	checkTable(t, name, matrix, all)
}

// eventOf is the processor's name of a column, and whether the core counts it.
func eventOf(r *recording, col int) (name string, core bool) {
	ref, err := model.ParseEvent(r.table.Columns[col].Event)
	if err != nil || ref.PMU != "" && ref.PMU != "cpu" && ref.PMU != "msr" || ref.Name == "duration_time" {
		return "", false
	}
	name = r.binding.Name(col)
	return name, true
}

// valueOf is what a recording counted of an event, NaN if nothing.
func valueOf(r *recording, event string) float64 {
	for col := range r.table.Columns {
		if r.binding.Name(col) == event {
			return r.table.Cell(0, col).Value
		}
	}
	return math.NaN()
}

// checkTable compares the shares of faults that were caught with the table in
// the documentation.
func checkTable(t *testing.T, name string, matrix [][]tally, all []tally) {
	t.Helper()
	var b strings.Builder
	b.WriteString("| events |")
	for _, f := range faults {
		b.WriteString(" " + f.name + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(faults)) + "\n")
	row := func(name string, of []tally) {
		fmt.Fprintf(&b, "| %s |", name)
		for _, cell := range of {
			fmt.Fprintf(&b, " %v |", cell)
		}
		b.WriteString("\n")
	}
	for i, c := range classes {
		if matrix[i][0].of > 0 {
			row(c.name, matrix[i])
		}
	}
	row("all", all)
	golden(t, "../docs/audit.md", name, b.String())
}

// golden compares a part of a document, between two comments that name it, with
// what a test has found out.
func golden(t *testing.T, file, name, got string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->"
	head, rest, ok := strings.Cut(string(text), begin)
	want, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no part %q", file, name)
	}
	if want == got {
		return
	}
	if !*update {
		t.Errorf("%s: %s is\n%s\nbut it says\n%s", file, name, got, want)
		return
	}
	if err := os.WriteFile(file, []byte(head+begin+got+end+tail), 0o644); err != nil {
		t.Fatal(err)
	}
}
