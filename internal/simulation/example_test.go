package simulation_test

import (
	"fmt"
	"os"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/simulation"
	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
)

// The functions of a callgrind file, with the instructions that they executed themselves.
func ExampleNewReader() {
	f, err := os.Open("internal/valgrind/testdata/calls.callgrind")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()
	r := simulation.NewReader(f, f.Name(), simulation.ReaderOptions{By: counts.Function})
	defer r.Close()
	for r.Next() {
		t := r.Table()
		for i, s := range t.Scopes[1:] {
			fmt.Println(t.Cell(1+i, 0).Value, s.Label)
		}
	}
	if err := r.Err(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 151 main  (app)
	// 700 work  (app)
	// 300 strlen  (libc.so.6)
}
