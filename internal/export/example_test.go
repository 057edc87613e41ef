package export_test

import (
	"fmt"
	"os"
	"slices"

	"github.com/cyclestack/cyclestack/internal/export"
)

// Stacks with cycles, and with the slots of a node, as collapsed stacks of the node.
func Example() {
	main, wait := &export.Frame{Function: "main"}, &export.Frame{Function: "wait"}
	p := &export.Profile{
		Types: []export.Type{{Name: "cycles", Unit: "count"}, {Name: "Memory_Bound", Unit: "slots"}},
		Stacks: slices.Values([]*export.Stack{
			{Thread: "app", Frames: []*export.Frame{main}, Values: []float64{1000, 200}},
			{Thread: "app", Frames: []*export.Frame{main, wait}, Values: []float64{3000, 9000}},
		}),
	}
	if _, err := export.Collapsed(os.Stdout, p, 1); err != nil {
		fmt.Println(err)
	}
	// Output:
	// app;main 200
	// app;main;wait 9000
}
