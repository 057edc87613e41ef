package object_test

import (
	"fmt"

	"github.com/cyclestack/cyclestack/internal/object"
)

// What is at an address of a program, with the calls that were inlined there.
func Example() {
	program, err := object.Open("testdata/tiny.elf", object.Options{Debug: []string{"/usr/lib/debug"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer program.Close()
	symbol, _ := program.Symbol(0x401012)
	fmt.Printf("%s+%#x\n", symbol.Name, 0x401012-symbol.Addr)
	for _, f := range program.Frames(0x401012) {
		fmt.Printf("%s %s:%d inlined %v\n", f.Func, f.File, f.Line, f.Inlined)
	}
	// Output:
	// sum+0x12
	// square /src/tiny.c:6 inlined true
	// sum /src/tiny.c:12 inlined false
}
