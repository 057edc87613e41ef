package report_test

import (
	"fmt"
	"io"
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
	"github.com/cyclestack/cyclestack/report"
)

// BenchmarkPlaces writes the accounts of many lines of code, as a report of samples has
// them, apart from evaluating them.
func BenchmarkPlaces(b *testing.B) {
	method, err := account.Load("skylakex", "tma", account.Options{Params: map[string]float64{"#smt_on": 0}})
	if err != nil {
		b.Fatal(err)
	}
	const places = 500
	l := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("")}}
	for _, e := range []string{"CPU_CLK_UNHALTED.THREAD", "IDQ_UOPS_NOT_DELIVERED.CORE", "UOPS_ISSUED.ANY", "UOPS_RETIRED.RETIRE_SLOTS", "INT_MISC.RECOVERY_CYCLES"} {
		l.Columns = append(l.Columns, counts.Column{Event: e, Skids: true})
	}
	for i := range places {
		s := counts.RunScope(fmt.Sprintf("file.c:%d  (prog)", i))
		s.Kind, s.Code = counts.Line, &counts.Code{Module: "prog", File: "file.c", Line: i}
		l.Scopes = append(l.Scopes, s)
	}
	t := counts.NewTable(l)
	for row := range l.Scopes {
		for col := range l.Columns {
			*t.Cell(row, col) = counts.Cell{State: counts.Counted, Value: 1e6, Variance: 1e10, Samples: 100}
		}
	}
	binding := method.Bind(l)
	var accounts []*account.Account
	for row := range l.Scopes {
		accounts = append(accounts, binding.Evaluate(t, account.Place{Self: row}, nil))
	}
	for _, format := range report.Formats[report.Accounts]() {
		b.Run(format, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				w, err := report.New(format, io.Discard, report.Options{Layout: report.LayoutParts})
				if err != nil {
					b.Fatal(err)
				}
				h := report.Header{CPU: method.CPU, Model: method.Model, Kind: "perf-data",
					Profile: &report.Profile{By: []counts.Kind{counts.Line}, Event: "CPU_CLK_UNHALTED.THREAD", Samples: 100, Places: places}}
				if err := w.Begin(h); err != nil {
					b.Fatal(err)
				}
				for _, a := range accounts {
					if err := w.Account(a); err != nil {
						b.Fatal(err)
					}
				}
				if err := w.End(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
