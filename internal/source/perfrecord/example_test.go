package perfrecord_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/cyclestack/cyclestack/internal/source/perfrecord"
	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// Samples of a program by the clock, which any machine has, in a file that report
// and perf read.
func Example() {
	sys, err := perfevent.ReadSystem(os.DirFS("/"))
	if err != nil {
		log.Fatal(err)
	}
	groups, err := sys.ResolveSampled("cpu-clock,page-faults/period=1/", 3989, true)
	if err != nil {
		log.Fatal(err)
	}
	file, err := os.Create("perf.data")
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	r, err := perfrecord.Start(context.Background(), sys, perfevent.SampleSpec{
		Groups:     groups,
		Target:     perfevent.Target{Command: []string{"ls", "-R", "/usr"}},
		Callchains: true,
	}, file, perfrecord.Options{Cmdline: os.Args})
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	if err := r.Run(); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d samples, %d lost, %v\n", r.Stats().Samples, r.Stats().Lost, r.State())
}
