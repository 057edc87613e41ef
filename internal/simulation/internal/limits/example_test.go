package limits_test

import (
	"fmt"

	"github.com/cyclestack/cyclestack/internal/simulation/internal/limits"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/pipeline"
)

// A product of the numbers in an array: each multiplication waits for the one before.
func Example() {
	code := []byte{
		0xf2, 0x0f, 0x59, 0x07, // mulsd (%rdi),%xmm0
		0x48, 0x83, 0xc7, 0x08, // add $8,%rdi
		0x48, 0x39, 0xf7, // cmp %rsi,%rdi
		0x75, 0xf3, // jne
	}
	b, err := pipeline.NewBlock(code, true)
	if err != nil {
		panic(err)
	}
	a := limits.Analyse(pipeline.CoreOf("skylake"), b, limits.Options{})
	fmt.Printf("%.1f cycles, limited by: %s\n", a.Cycles, a.Limits[0].Kind)
	// Output:
	// 4.0 cycles, limited by: chain
}
