package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/plan"
	"github.com/cyclestack/cyclestack/source"
)

// TestPlanReachesAccount writes what perf would print for a plan, reads it, and
// checks that the account finds together what the plan says is together, and
// has a value for every node.
func TestPlanReachesAccount(t *testing.T) {
	cat, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
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
		cpu, err := cat.CPU(tt.cpu)
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
		p, err := plan.New(m, events, tt.opt)
		if err != nil {
			t.Fatal(err)
		}
		smt := 0.0
		if tt.opt.SMT {
			smt = 1
		}
		method, err := account.Compile(m, cpu, events, account.Options{Params: map[string]float64{"#smt_on": smt}})
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "perf.csv")
		if err := os.WriteFile(file, []byte(recorded(p)), 0o644); err != nil {
			t.Fatal(err)
		}
		err = eachTable([]string{file}, func(_ source.Reader, table *counts.Table, _ string) error {
			a := method.Bind(table.Layout).Evaluate(table, account.Place{}, nil)
			compareTogether(t, fmt.Sprintf("%s, SMT %t", tt.cpu, tt.opt.SMT), p, a)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// recorded is what perf stat -x prints for a plan whose groups took turns. Each
// group has a running time of its own.
func recorded(p *plan.Plan) string {
	const second = 1_000_000_000
	var b strings.Builder
	fmt.Fprintf(&b, "# cpu: %s\n", p.CPU.Name)
	for g := range p.Groups {
		running := second*int64(p.Groups[g].Turns)/int64(len(p.Rotation)) + int64(g)
		for k := range p.Groups[g].Events {
			printed := p.Groups[g].Events[k].PerfName()
			if _, name, ok := strings.Cut(printed, "name="); ok { // perf prints the name alone
				printed, _, _ = strings.Cut(name, "/")
			}
			fmt.Fprintf(&b, "%d;;%s;%d;%.2f;;\n", 1_000_000+1000*k, printed, running, 100*float64(running)/second)
		}
	}
	for i := range p.Always {
		fmt.Fprintf(&b, "%d;;%s;%d;100.00;;\n", second, p.Always[i].PerfName(), int64(second))
	}
	return b.String()
}

func compareTogether(t *testing.T, what string, p *plan.Plan, a *account.Account) {
	t.Helper()
	for i := range p.Nodes {
		n := &p.Nodes[i]
		v := &a.Nodes[n.Index]
		name := p.Model.Nodes[n.Index].Name
		if !v.Known() && strings.Contains(a.Why(n.Index), "was not counted") {
			t.Errorf("%s: %s has no value: %s", what, name, a.Why(n.Index))
			continue
		}
		if v.Known() && n.Together && !v.Together && len(p.Groups) > 1 {
			t.Errorf("%s: %s is together by the plan, and not by the account", what, name)
		}
	}
}

// TestEnough checks that what a plan takes for enough is what an account relies
// upon where it knows the error, as when it counted itself. (Where it does not it
// wants more.)
func TestEnough(t *testing.T) {
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
