package branch_test

import (
	"fmt"

	"github.com/cyclestack/cyclestack/internal/simulation/internal/branch"
)

// A loop of twelve iterations is executed a thousand times. Its end comes as a surprise
// until the path to it is known.
func Example() {
	p := branch.New()
	mispredicted := 0
	for range 1000 {
		for i := range 12 {
			if p.Conditional(0x401136, i < 11) {
				mispredicted++
			}
		}
		p.Jump(0x401140, 0x401100)
	}
	fmt.Println(mispredicted)
	// Output: 6
}
