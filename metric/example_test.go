package metric_test

import (
	"fmt"
	"log"
	"math"
	"slices"

	"github.com/cyclestack/cyclestack/metric"
)

func Example() {
	e, err := metric.Parse("100 * STALLS / (CYCLES if #smt_on else 2 * CYCLES)")
	if err != nil {
		log.Fatal(err)
	}
	e = e.Fold(metric.Constants{Literal: func(name string) (float64, bool) { return 1, name == "#smt_on" }})
	p, err := metric.Compile(e, func(name string) int { return slices.Index(e.Names(), name) })
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(e, "=", p.Eval([]float64{30, 120}))
	fmt.Println(p.Eval([]float64{30, 0}), p.Why([]float64{30, 0}).Kind)
	// Output:
	// 100 * STALLS / CYCLES = 25
	// NaN division by zero
}

func ExampleExpr_Unit() {
	units := func(name string) (metric.Unit, bool) {
		u, err := metric.ParseUnit(map[string]string{"CYCLES": "cycles", "INSTRUCTIONS": "instructions"}[name])
		return u, err == nil
	}
	for _, src := range []string{"CYCLES / INSTRUCTIONS", "CYCLES - INSTRUCTIONS / 4"} {
		e, err := metric.Parse(src)
		if err != nil {
			log.Fatal(err)
		}
		if u, err := e.Unit(units); err != nil {
			fmt.Println(err)
		} else {
			fmt.Println(u)
		}
	}
	// Output:
	// cycles/instruction
	// formula: the operands of - have different units, cycles and instructions, in "CYCLES - INSTRUCTIONS / 4"
}

func ExampleProgram_Why() {
	e, err := metric.Parse("max(0, UOPS / (CYCLES - IDLE)) + LOADS")
	if err != nil {
		log.Fatal(err)
	}
	names := e.Names()
	p, err := metric.Compile(e, func(name string) int { return slices.Index(names, name) })
	if err != nil {
		log.Fatal(err)
	}
	why := p.Why([]float64{9, 5, 5, math.NaN()})
	for _, slot := range why.Slots {
		fmt.Println(why.Kind, names[slot])
	}
	fmt.Println("divides by 0:", why.Text)
	// Output:
	// missing input LOADS
	// divides by 0: UOPS / (CYCLES - IDLE)
}
