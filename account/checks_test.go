package account_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/testlong"
	"github.com/cyclestack/cyclestack/model"
)

// outcomes are the checks that were made, and whether each of them failed once.
type outcomes map[string]bool

func (of outcomes) note(what string, failed bool) { of[what] = of[what] || failed }

// TestChecksCanFail doctors recordings of all events of each method. A check that is made must
// fail in one of them, or audit may not count it among what holds. Each relation must be made
// for some method.
func TestChecksCanFail(t *testing.T) {
	testlong.Alone(t)
	cat, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	made, written := outcomes{}, map[string]string{}
	for n, cpu := range cat.CPUs() {
		events, err := cat.Events(cpu)
		if err != nil {
			t.Fatal(err)
		}
		_, relations, err := events.Relations()
		if err != nil {
			t.Fatal(err)
		}
		for _, info := range cat.Models(cpu.Name) {
			if n%testlong.Size(8, 1) != 0 {
				continue
			}
			m, err := cat.Model(info.Name, cpu.Name)
			if err != nil {
				t.Fatal(err)
			}
			relations = append(relations, m.Relations...)
			o := account.Options{}
			if slices.ContainsFunc(m.Parameters, func(p model.Parameter) bool { return p.Name == "ITERATIONS" }) {
				o.Params = map[string]float64{"ITERATIONS": 1e6}
			}
			method, err := account.Compile(m, cpu, events, o)
			if err != nil {
				t.Fatal(err)
			}
			of := doctorAll(method, made)
			for _, what := range slices.Sorted(maps.Keys(of)) {
				if !of[what] {
					t.Errorf("%s, %s: nothing makes this check fail: %s", cpu.Name, info.Name, what)
				}
			}
		}
		for i := range relations {
			written[lineOf(&relations[i])] = relations[i].Name
		}
	}
	for _, line := range slices.Sorted(maps.Keys(written)) {
		if _, ok := made[line]; !ok && testlong.Enabled() {
			t.Errorf("%s: no recording has all events of %q", line, written[line])
		}
	}
	if len(made) < 150 {
		t.Errorf("%d relations were made", len(made))
	}
}

func lineOf(r *model.Relation) string { return fmt.Sprintf("%s:%d", r.File, r.Line) }

// doctorAll evaluates recordings of a method, with counts drawn at random, until all checks that
// were made have failed.
func doctorAll(method *account.Method, made outcomes) outcomes {
	l := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("test"), counts.RunScope("CPU0"), counts.RunScope("CPU1")}}
	for _, event := range method.AllEvents() {
		l.Columns = append(l.Columns, counts.Column{Event: event})
	}
	b, of, random := method.Bind(l), outcomes{}, rand.New(rand.NewPCG(3, 4))
	var a *account.Account
	doctored := func() {
		least, none := 10*random.Float64(), random.IntN(10)
		table := counts.NewTable(l)
		table.Duration = math.Exp(6 * random.Float64())
		for col := range l.Columns {
			for row := range l.Scopes {
				v := math.Floor(1e3 * math.Exp(least+(math.Log(1e7)-least)*random.Float64()))
				if random.IntN(10) < none {
					v = 0
				}
				*table.Cell(row, col) = all(v)
			}
		}
		for _, place := range []account.Place{{}, {LP: []int{1, 2}}} {
			if place.LP != nil && !strings.HasPrefix(method.Model.Name, "smt") {
				continue
			}
			a = b.Evaluate(table, place, nil)
			for i := range a.Checks {
				c, what := &a.Checks[i], a.Checks[i].Name
				if c.State == account.Skipped {
					continue
				}
				if r := a.Relation(c); r != nil {
					what = fmt.Sprintf("%s (%s, %s)", c.Name, lineOf(r), strings.Join(c.Events, ", "))
					made.note(lineOf(r), c.State == account.Fails)
				}
				of.note(what, c.State == account.Fails)
			}
		}
	}
	for range 30 {
		doctored()
	}
	for n := 0; n < 2000 && slices.Contains(slices.Collect(maps.Values(of)), false); n++ {
		doctored()
	}
	return of
}

// inTime makes a recording of cycles and instructions in intervals, or in runs.
func inTime(runs bool, of func(i int) float64) *counts.Table {
	l := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("test")}, Columns: []counts.Column{{Event: "cycles"}, {Event: "instructions"}}}
	random, total := rand.New(rand.NewPCG(7, 8)), counts.NewTotal(0)
	var apart counts.Runs
	for i := range 30 {
		one := counts.NewTable(l)
		one.Start, one.Duration, one.Interval = float64(i), 1, !runs
		*one.Cell(0, 0), *one.Cell(0, 1) = all(4e8*(1+0.05*random.Float64())), all(of(i))
		if runs {
			apart.Add(one)
		} else if err := total.Add(one); err != nil {
			panic(err)
		}
	}
	if !runs {
		return total.Table()
	}
	mean := counts.NewTable(l)
	mean.Duration = 1
	*mean.Cell(0, 0), *mean.Cell(0, 1) = all(4e8), all(2e8)
	apart.Put(mean)
	return mean
}

// counted makes a recording of Skylake's cycles and replaced lines.
func counted(seconds, cycles float64, lines counts.Cell, more ...readout) *counts.Table {
	l := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("test")}}
	list := append([]readout{{"cycles", 1, all(cycles)}, {"l1d.replacement", 1, lines}}, more...)
	for _, r := range list {
		l.Columns = append(l.Columns, counts.Column{Event: r.event, Group: r.group})
	}
	table := counts.NewTable(l)
	table.Duration = seconds
	for col, r := range list {
		*table.Cell(0, col) = r.cell
	}
	return table
}

// TestBuiltInChecksCanFail doctors a recording for each check that is in the code, and not in a
// relation. A check without a case fails the test.
func TestBuiltInChecksCanFail(t *testing.T) {
	cat, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	rising := func(i int) float64 { return 2e8 * (1 + 0.02*float64(i)) }
	peak := func(i int) float64 { return map[bool]float64{true: 9e9, false: 2e8 + float64(i)}[i == 7] }
	varied := counted(1, 4e8, all(1e6))
	varied.Cell(0, 0).Repeats, varied.Cell(0, 0).Variance = 5, 4e14*4
	cases := map[string]*counts.Table{
		"counts are numbers from 0 up":                  counted(1, 3e9, all(-5)),
		"counts fit into the time":                      counted(1e-6, 3e9, all(1e6)),
		"counts are of one run":                         counted(100, 3e10, all(1<<48-5)),
		"counts fit into the cycles":                    counted(1, 3e6, all(3e9)),
		"each event had a counter":                      counted(1, 3e9, counts.Cell{State: counts.NotCounted, Enabled: 1e9}),
		"readings of one event agree":                   counted(1, 3e9, all(1e6), readout{"cycles", 2, all(9e9)}),
		"repeats agree":                                 varied,
		"counts change from interval to interval":       inTime(false, func(int) float64 { return 2e8 }),
		"counters count to the end":                     inTime(false, func(i int) float64 { return max(0, 2e8-1e7*float64(i)) }),
		"the rates stay the same over the recording":    inTime(false, rising),
		"no interval stands out":                        inTime(false, peak),
		"later runs count at the rates of earlier ones": inTime(true, rising),
		"no run stands out":                             inTime(true, peak),
		"counts without documented errata":              counted(1, 3e9, all(1e6), readout{"br_inst_retired.conditional", 1, all(1e5)}),
	}
	for name, table := range cases {
		failed := false
		a := bindBest(t, cat, name, "skylake", table).audit(table)
		for i := range a.Checks {
			failed = failed || a.Checks[i].Name == name && a.Checks[i].State == account.Fails
		}
		if !failed {
			t.Errorf("%s: it does not fail", name)
		}
	}
	for _, name := range append(findings(t), account.WrongCounts()...) {
		if cases[name] == nil {
			t.Errorf("no recording makes %q fail", name)
		}
	}
}

// findings are the names of findings in the code of the package.
func findings(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if f, ok := call.Fun.(*ast.SelectorExpr); !ok || f.Sel.Name != "found" {
				return true
			}
			if lit, ok := call.Args[0].(*ast.BasicLit); ok {
				name, _ := strconv.Unquote(lit.Value)
				names = append(names, name)
			}
			return true
		})
	}
	if len(names) < 5 {
		t.Errorf("%d findings: %q", len(names), names)
	}
	return names
}
