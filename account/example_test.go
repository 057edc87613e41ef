package account_test

import (
	"fmt"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/source"
)

// The account of a recorded perf stat.
func Example() {
	f, err := source.Open("../examples/power7-cpi.txt")
	if err != nil {
		panic(err)
	}
	defer f.Close()
	method, err := account.Load("power7", "power7-cpi", account.Options{})
	if err != nil {
		panic(err)
	}

	total := counts.NewTotal(0) // sums intervals and CPUs, if there are any
	tables := f.Tables(0)
	for tables.Next() {
		if err := total.Add(tables.Table()); err != nil {
			panic(err)
		}
	}
	t := total.Table()
	a := method.Bind(t.Layout).Evaluate(t, account.Place{}, nil)
	fmt.Printf("%.4f cycles per instruction, %.4f of them stalled\n", a.Value("RUN_CPI"), a.Value("STALL_CPI"))
	for _, i := range a.Bottleneck {
		fmt.Println(method.Model.Nodes[i].Name)
	}
	// Output:
	// 16.7703 cycles per instruction, 15.0361 of them stalled
	// STALL_CPI
	// LSU_STALL_CPI
	// LSU_STALL_DCACHE_MISS_CPI
}
