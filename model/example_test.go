package model_test

import (
	"fmt"
	"testing/fstest"

	"github.com/cyclestack/cyclestack/model"
)

// A processor is found by the identification that perf prints, and its events
// by any spelling.
func Example() {
	cat, err := model.Embedded()
	if err != nil {
		fmt.Println(err)
		return
	}
	cpu, err := cat.CPU("0x003f0203")
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := cat.Model("", cpu.Name)
	if err != nil {
		fmt.Println(err)
		return
	}
	events, err := cat.Events(cpu)
	if err != nil {
		fmt.Println(err)
		return
	}
	root := m.Nodes[0]
	fmt.Println(cpu.Name, m.Name, root.Name, "=", root.Formula)
	for _, spelling := range []string{"r600f4", "raw 0x500fa", "PM_RUN_CYC:u"} {
		if e, ok := events.Lookup(spelling); ok {
			fmt.Println(spelling, "is", e.Name)
		}
	}
	// Output:
	// power7 power7-cpi RUN_CPI = PM_RUN_CYC / PM_RUN_INST_CMPL
	// r600f4 is PM_RUN_CYC
	// raw 0x500fa is PM_RUN_INST_CMPL
	// PM_RUN_CYC:u is PM_RUN_CYC
}

func ExampleCatalogue_CPU() {
	cat, err := model.Embedded()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, query := range []string{"GenuineIntel-6-55-4", "GenuineIntel-6-55-7", "410fd0c0", "adl:atom", "alderlake", "skylakx"} {
		cpu, err := cat.CPU(query)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(query, "is", cpu.Name)
	}
	// Output:
	// GenuineIntel-6-55-4 is skylakex
	// GenuineIntel-6-55-7 is cascadelakex
	// 410fd0c0 is neoverse-n1
	// adl:atom is alderlake:atom
	// "alderlake" is a hybrid processor with an account for each core type: write alderlake:core or alderlake:atom
	// unknown processor "skylakx"; did you mean skylake or skylakex?
}

// Spellings of one event have one identity.
func ExampleEventTable_Resolve() {
	cat, err := model.Embedded()
	if err != nil {
		fmt.Println(err)
		return
	}
	cpu, err := cat.CPU("core2")
	if err != nil {
		fmt.Println(err)
		return
	}
	events, err := cat.Events(cpu)
	if err != nil {
		fmt.Println(err)
		return
	}
	want, err := model.ParseEvent("RS_UOPS_DISPATCHED.CYCLES_NONE")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, spelling := range []string{"cpu/event=0xa0,cmask=1,inv/", "RS_UOPS_DISPATCHED:c1:i1", "r1d300a0:u", "cycles"} {
		got, err := model.ParseEvent(spelling)
		if err != nil {
			fmt.Println(err)
			continue
		}
		id := events.Resolve(got)
		fmt.Printf("%s: %t, restricted to %q\n", spelling, id.Event() == events.Resolve(want), id.Privilege)
	}
	// Output:
	// cpu/event=0xa0,cmask=1,inv/: true, restricted to ""
	// RS_UOPS_DISPATCHED:c1:i1: true, restricted to ""
	// r1d300a0:u: true, restricted to "u"
	// cycles: false, restricted to ""
}

// HostID reads what the machine says about its processor.
func ExampleHostID() {
	root := fstest.MapFS{"proc/cpuinfo": {Data: []byte("vendor_id : AuthenticAMD\ncpu family : 25\nmodel : 17\nstepping : 1\n")}}
	fmt.Println(model.HostID(root)) // a program gives os.DirFS("/")
	// Output: AuthenticAMD-25-11-1 <nil>
}
