package report_test

import (
	"os"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/report"
	"github.com/cyclestack/cyclestack/source"
)

// The account of a recorded perf stat, as comma-separated values of its first level.
func Example() {
	f, err := source.Open("../examples/power7-cpi.txt")
	if err != nil {
		panic(err)
	}
	defer f.Close()
	tables := f.Tables(0)
	if !tables.Next() {
		panic(tables.Err())
	}
	table := tables.Table()
	method, err := account.Load("power7", "power7-cpi", account.Options{})
	if err != nil {
		panic(err)
	}
	a := method.Bind(table.Layout).Evaluate(table, account.Place{}, nil)
	header := report.Header{CPU: method.CPU, Model: method.Model, Kind: tables.Kind()}
	document := report.Accounts{Header: header, List: []*account.Account{a}}
	if err := report.Write(os.Stdout, "csv", document, report.Options{Level: 1}); err != nil {
		panic(err)
	}
	// Output:
	// scope,label,start_s,duration_s,node,level,value,unit,error,coverage,together,reliable,flagged,standing,why
	// run,sleep 1d,0,1677.714054029,RUN_CPI,0,16.770309645976813,cycles/instruction,,0.1604,false,true,false,,
	// run,sleep 1d,0,1677.714054029,RUN_CPI.STALL_CPI,1,15.036120773720407,cycles/instruction,,0.0839,false,true,true,,
	// run,sleep 1d,0,1677.714054029,RUN_CPI.GCT_EMPTY_CPI,1,1.3474349453890986,cycles/instruction,,0.0808,false,true,false,,
	// run,sleep 1d,0,1677.714054029,RUN_CPI.COMPLETION_CPI,1,0.30737896098335177,cycles/instruction,,0.1611,false,true,false,,
	// run,sleep 1d,0,1677.714054029,RUN_CPI.OTHER_CPI,1,0.07937496588395504,cycles/instruction,,0.0808,false,true,false,,
}
