package timing_test

import (
	"context"
	"fmt"

	"github.com/cyclestack/cyclestack/internal/simulation/internal/pipeline"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/timing"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/valgrind"
)

// How long does an instruction of a program take on a Zen 4?
func ExampleRun() {
	p, err := timing.Run(context.Background(), valgrind.Command{Args: []string{"./prog"}},
		timing.Options{Core: pipeline.CoreOf("amdzen4"), Limit: 40e6})
	if err != nil {
		fmt.Println(err) // valgrind is not installed, for example
		return
	}
	if rate, ok := p.At("/home/user/prog", 0x1139); ok {
		fmt.Printf("%.2f cycles, mispredicted %.1f %% of the time\n", rate.Cycles, 100*rate.Conditional)
	}
}
