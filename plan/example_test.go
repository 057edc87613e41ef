package plan_test

import (
	"fmt"
	"log"
	"strings"

	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/plan"
)

// Two levels of top-down analysis on a Sandy Bridge: which events are counted together?
// What is proved about their number?
func Example() {
	cat, err := model.Embedded()
	if err != nil {
		log.Fatal(err)
	}
	cpu, err := cat.CPU("sandybridge")
	if err != nil {
		log.Fatal(err)
	}
	m, err := cat.Model("tma", cpu.Name)
	if err != nil {
		log.Fatal(err)
	}
	events, err := cat.Events(cpu)
	if err != nil {
		log.Fatal(err)
	}
	p, err := plan.New(m, events, plan.Options{Level: 2})
	if err != nil {
		log.Fatal(err)
	}
	together, of := p.Together()
	fmt.Printf("%d groups, at least %d needed, %d of %d nodes together\n", len(p.Groups), p.LowerBound, together, of)
	for _, n := range p.Nodes {
		if !n.Together {
			fmt.Printf("%s is read from %d groups\n", m.Nodes[n.Index].Name, len(n.Groups))
		}
	}
	fmt.Println(strings.HasPrefix(p.Groups[0].Perf(), "{cpu/event="))
	// Output:
	// 2 groups, at least 2 needed, 10 of 12 nodes together
	// Memory_Bound is read from 2 groups
	// Core_Bound is read from 2 groups
	// true
}
