package perfevent_test

import (
	"context"
	"fmt"
	"os"

	"github.com/cyclestack/cyclestack/source/perfevent"
)

// Counting a command: what it printed comes first, as it has its own output.
func ExampleStart() {
	sys, err := perfevent.ReadSystem(os.DirFS("/"))
	if err != nil {
		fmt.Println(err)
		return
	}
	var group []perfevent.Event
	for _, name := range []string{"page-faults", "context-switches"} {
		e, err := sys.Resolve(name)
		if err != nil {
			fmt.Println(err)
			return
		}
		group = append(group, e)
	}
	run, err := perfevent.Start(context.Background(), sys, perfevent.Spec{
		Groups: [][]perfevent.Event{group},
		Target: perfevent.Target{Command: []string{"ls"}},
	})
	if err != nil {
		fmt.Println(err) // one line, with what to do
		return
	}
	defer run.Close()
	for run.Next() {
		table := run.Table()
		for i, c := range table.Columns {
			fmt.Println(c.Event, table.Cell(0, i).Value)
		}
	}
	fmt.Println(run.State())
}

// An event by what sysfs says of a PMU.
func ExampleSystem_Resolve() {
	sys, err := perfevent.ReadSystem(os.DirFS("testdata")) // or os.DirFS("/")
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = sys.Resolve("cpu/event=0x3c/u")
	fmt.Println(err)
	e, err := sys.Resolve("task-clock:u")
	fmt.Println(e.Attr.Type, e.Attr.Config, e.Attr.ExcludeKernel, e.Unit, err)
	// Output:
	// event "cpu/event=0x3c/u": this machine has no PMU "cpu" (it has none)
	// 1 1 true ns <nil>
}
