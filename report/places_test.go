package report_test

import (
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/report"
)

// TestJudgedByPlace writes two functions of a Core 2. One of them starves the front end. The table
// names it. Where none starves, nothing is said of it.
func TestJudgedByPlace(t *testing.T) {
	method, err := account.Load("core2", "core2-cycles", account.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		full float64 // cycles with full buffers in the second function
		by   counts.Kind
		want bool
	}{{0.05e9, counts.Function, true}, {0.05e9, counts.Line, true}, {0.05e9, counts.Thread, false}, {0.55e9, counts.Function, false}} {
		scopes := []counts.Scope{counts.RunScope("all")}
		for i, name := range []string{"waits", "starves"} {
			code := &counts.Code{Function: name, File: name, Line: i, Module: "prog"}
			scopes = append(scopes, counts.Scope{Kind: tt.by, Label: name + "  (prog)", Thread: name, Code: code})
		}
		columns := []counts.Column{{Event: "CPU_CLK_UNHALTED.CORE"}, {Event: "RS_UOPS_DISPATCHED.CYCLES_NONE"}, {Event: "RESOURCE_STALLS.ANY"}}
		table := counts.NewTable(&counts.Layout{Columns: columns, Scopes: scopes})
		for row, values := range [][]float64{{2e9, 1.3e9, 0.75e9 + tt.full}, {1e9, 0.7e9, 0.75e9}, {1e9, 0.6e9, tt.full}} {
			for col, v := range values {
				*table.Cell(row, col) = counts.Cell{State: counts.Counted, Value: v, Samples: int64(v / 1e6)}
			}
		}
		var out strings.Builder
		w, err := report.New("tree", &out, report.Options{Layout: report.LayoutParts, Width: 100})
		if err != nil {
			t.Fatal(err)
		}
		err = w.Begin(report.Header{CPU: method.CPU, Model: method.Model, Kind: "perf-data",
			Profile: &report.Profile{By: []counts.Kind{tt.by}, Event: "CPU_CLK_UNHALTED.CORE", Samples: 2000, Places: 2}})
		b := method.Bind(table.Layout)
		for row := 0; err == nil && row < len(scopes); row++ {
			err = w.Account(b.Evaluate(table, account.Place{Self: row}, nil))
		}
		if err == nil {
			err = w.End()
		}
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Contains(out.String(), "high      Starvation_Hint of starves: ") && strings.Contains(out.String(), "  0.55\n")
		if said := strings.Contains(out.String(), "Starvation"); got != tt.want || said != tt.want {
			t.Errorf("%v: want %v\n%s", tt, tt.want, out.String())
		}
	}
}

// TestManyIntervals writes more intervals than a screen has columns, one of them with all that was
// counted. Its bar is the only one, whatever stands for its neighbours.
func TestManyIntervals(t *testing.T) {
	method, err := account.Load("generic", "generic", account.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		intervals, lines int
		of               string
	}{{100, 2, " each\n"}, {5000, 4, "18.00 s each, the largest of 18 intervals\n"}, {100000, 4, "358.0 s each, the largest of 358 intervals\n"}} {
		scopes := []counts.Scope{counts.RunScope("all")}
		for range tt.intervals {
			scopes = append(scopes, counts.Scope{Kind: counts.Interval})
		}
		table := counts.NewTable(&counts.Layout{Columns: []counts.Column{{Event: "task-clock"}}, Scopes: scopes})
		for row := range scopes {
			c := counts.Cell{State: counts.Counted}
			if row == 0 || row == tt.intervals/2 {
				c.Value, c.Samples = 1e9, 1000
			}
			*table.Cell(row, 0) = c
		}
		var out strings.Builder
		w, err := report.New("tree", &out, report.Options{Layout: report.LayoutParts, Width: 100})
		if err != nil {
			t.Fatal(err)
		}
		err = w.Begin(report.Header{CPU: method.CPU, Model: method.Model, Kind: "perf-data",
			Profile: &report.Profile{By: []counts.Kind{counts.Interval}, Event: "task-clock", Samples: 1000, Places: tt.intervals}})
		b := method.Bind(table.Layout)
		for row := 0; err == nil && row <= tt.intervals; row++ {
			a := b.Evaluate(table, account.Place{Self: row}, nil)
			a.Start, a.Duration = float64(max(0, row-1)), 1
			err = w.Account(a)
		}
		if err == nil {
			err = w.End()
		}
		if err != nil {
			t.Fatal(err)
		}
		text := out.String()
		if n := strings.Count(text, " each"); n != tt.lines || strings.Count(text, tt.of) != n || strings.Count(text, "█") != 1 {
			t.Errorf("%d intervals: %d lines, want %d\n%s", tt.intervals, n, tt.lines, text)
		}
	}
}
