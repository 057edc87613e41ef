package profile_test

import (
	"fmt"

	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
	"github.com/cyclestack/cyclestack/profile"
)

// A program is mapped by process 7 at another address than it was linked for.
// Samples at an address are of a place in the file, which is of a function.
func Example() {
	spaces := profile.NewSpaces()
	spaces.SetComm(100, 7, 7, "tiny", true)
	spaces.Map(101, profile.Mapping{PID: 7, Start: 0x555000, Len: 0x1000, PgOff: 0x1000, File: "/tiny.elf"})
	spaces.Settle()
	place := spaces.Find(200, 7, 0x555010, profile.User)

	symbolizer := profile.NewSymbolizer(profile.Config{Root: "../internal/object/testdata"})
	defer symbolizer.Close()
	function := symbolizer.Function(place)
	fmt.Printf("%s in %s of %s\n", function.Name, place.File.Base(), spaces.Comm(200, 7))
	for _, f := range symbolizer.Frames(place) {
		fmt.Printf("  %s %s:%d\n", f.Func, f.File, f.Line)
	}
	// Output:
	// sum in tiny.elf of tiny
	//   square /src/tiny.c:6
	//   sum /src/tiny.c:12
}
