package valgrind_test

import (
	"fmt"
	"os"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/valgrind"
)

// The functions of a callgrind file, with the instructions that they executed
// themselves.
func ExampleReader() {
	f, err := os.Open("testdata/calls.callgrind")
	if err != nil {
		panic(err)
	}
	defer f.Close()
	r := valgrind.NewReader(f, f.Name(), valgrind.Options{By: counts.Function})
	for r.Next() {
		t := r.Table()
		for i, s := range t.Scopes[1:] {
			fmt.Println(t.Cell(1+i, 0).Value, s.Label)
		}
	}
	if err := r.Err(); err != nil {
		panic(err)
	}
	// Output:
	// 151 main  (app)
	// 700 work  (app)
	// 300 strlen  (libc.so.6)
}
