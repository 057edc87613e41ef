package calibrate_test

import (
	"fmt"
	"log"
	"os"

	"github.com/cyclestack/cyclestack/internal/calibrate"
)

// A program measures with calibrate.Run; this one reads what was measured before.
func Example() {
	f, err := os.Open("../../examples/calibration-zen4.json")
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	result, err := calibrate.Read(f)
	if err != nil {
		log.Fatal(err)
	}
	if l2 := result.Level("L2"); l2 != nil {
		fmt.Printf("L2 takes %.1f cycles, from %s\n", l2.Cycles, calibrate.Size(l2.From))
	}
	for _, p := range result.Penalties() {
		if p.Name == "STORE_OVERLAP_PENALTY" {
			fmt.Printf("%s = %.0f %s\n", p.Name, p.Value, p.Unit)
		}
	}
	// Output:
	// L2 takes 14.0 cycles, from 40 KiB
	// STORE_OVERLAP_PENALTY = 18 cycles/load
}
