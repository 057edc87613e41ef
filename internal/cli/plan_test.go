package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/recorded"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/plan"
	"github.com/cyclestack/cyclestack/report"
	"github.com/cyclestack/cyclestack/source"
)

// TestPlanReachesAccount writes what perf would print for a plan, and reads it. The
// account must find the same events in a group as the plan, and have a value for
// every node.
func TestPlanReachesAccount(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		cpu string
		opt plan.Options
	}{
		{"skylakex", plan.Options{}},
		{"skylakex", plan.Options{SMT: true}},
		{"icelakex", plan.Options{Level: 4}},
		{"sapphirerapids", plan.Options{Level: 3}},
		{"sandybridge", plan.Options{}},
		{"power7", plan.Options{}},
		{"amdzen4", plan.Options{}},
	} {
		p := planOf(t, tt.cpu, tt.opt)
		smt := 0.0
		if tt.opt.SMT {
			smt = 1
		}
		method, err := account.Load(tt.cpu, "", account.Options{Params: map[string]float64{"#smt_on": smt}})
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "perf.csv")
		if err := os.WriteFile(file, []byte(printed(p)), 0o644); err != nil {
			t.Fatal(err)
		}
		rec, err := source.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		tables := rec.Tables(0)
		for tables.Next() {
			table := tables.Table()
			a := method.Bind(table.Layout).Evaluate(table, account.Place{}, nil)
			compareTogether(t, fmt.Sprintf("%s, SMT %t", tt.cpu, tt.opt.SMT), p, a)
		}
		if err := errors.Join(tables.Err(), rec.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// printed is what perf stat -x prints for a plan with multiplexed groups. Each group
// has its own running time.
func printed(p *plan.Plan) string {
	const second = 1_000_000_000
	var b strings.Builder
	fmt.Fprintf(&b, "# cpu: %s\n", p.CPU.Name)
	for g := range p.Groups {
		printGroup(&b, p, g, second*int64(p.Groups[g].Turns)/int64(len(p.Rotation))+int64(g), second)
	}
	printAlways(&b, p, second)
	return b.String()
}

// printGroup writes what perf prints for a group.
func printGroup(b *strings.Builder, p *plan.Plan, g int, running, enabled int64) {
	for k := range p.Groups[g].Events {
		printed := p.Groups[g].Events[k].PerfName()
		if _, name, ok := strings.Cut(printed, "name="); ok { // perf prints the name alone
			printed, _, _ = strings.Cut(name, "/")
		}
		fmt.Fprintf(b, "%d;;%s;%d;%.2f;;\n", 1_000_000+1000*k, printed, running, 100*float64(running)/float64(enabled))
	}
}

// printAlways writes what perf prints for the events that are counted in addition to the groups.
func printAlways(b *strings.Builder, p *plan.Plan, enabled int64) {
	for i := range p.Always {
		fmt.Fprintf(b, "%d;;%s;%d;100.00;;\n", enabled, p.Always[i].PerfName(), enabled)
	}
}

// TestPlanRunsReachAccount does the same with one run for each group, whose files are joined:
// the account has a value for each node, and calls exactly those together whose events were
// counted in one run.
func TestPlanRunsReachAccount(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		cpu string
		opt plan.Options
	}{
		{"skylakex", plan.Options{Level: 4}},
		{"sandybridge", plan.Options{SMT: true}},
		{"power7", plan.Options{}},
		{"amdzen4", plan.Options{}},
	} {
		p := planOf(t, tt.cpu, tt.opt)
		dir := t.TempDir()
		var files []string
		for g := range p.Groups {
			const seconds = 10_000_000_000
			var b strings.Builder
			fmt.Fprintf(&b, "# cpu: %s\n# run %d of %d of cyclestack plan host-1-2\n# started on Mon\n\n", p.CPU.Name, g+1, len(p.Groups))
			printGroup(&b, p, g, seconds+int64(g), seconds+int64(g))
			printAlways(&b, p, seconds+int64(g))
			files = append(files, filepath.Join(dir, fmt.Sprintf("run-%d.csv", g+1)))
			if err := os.WriteFile(files[g], []byte(b.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		c := &common{cpu: tt.cpu}
		if tt.opt.SMT {
			c.smt = "on"
		}
		recs, err := c.recordings(files...)
		if err != nil {
			t.Fatal(err)
		}
		var list accountList
		err = recs.Runs(recorded.Grouping{}, func(int) (report.Writer, error) { return &list, nil })
		if err != nil || len(list) != 1 {
			t.Fatalf("%s: %d accounts, %v", tt.cpu, len(list), err)
		}
		compareTogether(t, tt.cpu, p, list[0])
		for i := range p.Nodes {
			n := &p.Nodes[i]
			if v := &list[0].Nodes[n.Index]; v.Together && !n.Together {
				t.Errorf("%s: %s is together by the account, and not by the plan", tt.cpu, p.Model.Nodes[n.Index].Name)
			}
		}
	}
}

// planOf makes a plan for the default model of a processor.
func planOf(t *testing.T, name string, opt plan.Options) *plan.Plan {
	t.Helper()
	cat, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	cpu, err := cat.CPU(name)
	if err != nil {
		t.Fatal(err)
	}
	m, err := cat.Model("", cpu.Name)
	if err != nil {
		t.Fatal(err)
	}
	events, err := cat.Events(cpu)
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.New(m, events, opt)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func compareTogether(t *testing.T, what string, p *plan.Plan, a *account.Account) {
	t.Helper()
	for i := range p.Nodes {
		n := &p.Nodes[i]
		v := &a.Nodes[n.Index]
		name := p.Model.Nodes[n.Index].Name
		if !v.Known() && strings.Contains(a.Why(n.Index).Text, "was not counted") {
			t.Errorf("%s: %s has no value: %s", what, name, a.Why(n.Index))
			continue
		}
		if v.Known() && n.Together && !v.Together && len(p.Groups) > 1 {
			t.Errorf("%s: %s is together by the plan, and not by the account", what, name)
		}
	}
}

// TestEnough checks that a plan and an account agree on a reliable coverage, with the error
// known as when live. (Otherwise the account demands more.)
func TestEnough(t *testing.T) {
	t.Parallel()
	cat, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	cpu, err := cat.CPU("core2")
	if err != nil {
		t.Fatal(err)
	}
	m, err := cat.Model("core2-cycles", cpu.Name)
	if err != nil {
		t.Fatal(err)
	}
	events, err := cat.Events(cpu)
	if err != nil {
		t.Fatal(err)
	}
	method, err := account.Compile(m, cpu, events, account.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		share, seconds float64
		enough         bool
	}{
		{0.2, plan.EnoughSeconds / 0.2 * 1.05, true},
		{0.2, plan.EnoughSeconds / 0.2 * 0.95, false},
		{plan.EnoughShare * 1.02, 0.1, true},
		{plan.EnoughShare * 0.98, 0.1, false},
	} {
		table := counts.NewTable(&counts.Layout{
			Columns: []counts.Column{{Event: "cycles", Group: 1}, {Event: "instructions", Group: 2}},
			Scopes:  []counts.Scope{counts.RunScope("./app")},
		})
		table.Duration = tt.seconds
		for k, row := 0, table.Row(0); k < len(row); k++ {
			row[k] = counts.Cell{State: counts.Counted, Value: 1e6, Variance: 1e6, Enabled: 1e9 * tt.seconds, Running: 1e9 * tt.seconds * tt.share}
		}
		a := method.Bind(table.Layout).Evaluate(table, account.Place{}, nil)
		i, _ := a.Node("CPI")
		if v := &a.Nodes[i]; !v.Known() || v.Reliable() != tt.enough {
			t.Errorf("counted %.2f of %.2f s: reliable %t, want %t (%s)", tt.share, tt.seconds, v.Reliable(), tt.enough, v.Doubt)
		}
	}
}

// An accountList is a writer that keeps accounts.
type accountList []*account.Account

func (l *accountList) Begin(report.Header) error        { return nil }
func (l *accountList) Account(a *account.Account) error { *l = append(*l, a.Clone()); return nil }
func (l *accountList) End() error                       { return nil }
