// Command topdown writes the models of Intel's top-down analysis,
// model/data/models/tma, from the metric files of Intel's perfmon repository.
//
// It is run by go generate. The environment names the folder that holds the repository as
// intel-perfmon, its commit in the file COMMIT:
//
//	CYCLESTACK_VENDOR_DATA=DIR go generate ./internal/gen/topdown
//
// A metric file states each formula twice: written out down to events, under
// one-letter aliases (Formula), and in terms of events and other metrics
// (BaseFormula). The models are made from the second, which shows the method,
// and checked against the first: for random counts, with SMT on and off, every
// node must have the value of the vendor's own expression. fixes.toml corrects the
// files' faults and gives the reason for each. Any other fault ends the run,
// because nobody has looked at it. additions.toml has what the files leave out for
// a processor. costs.toml names the latencies in them, which become parameters.
//
// Names stay the vendor's, without the prefix "tma_". Values are shares from 0
// to 1 where the vendor has percentages. Sentences of the vendor are not taken
// over; titles and explanations are in model/data/texts/tma.toml.
//
// A processor's file states only what differs from that of the processor it
// extends, which processors.csv names. Some processors have no metric file: Sandy
// Bridge, Ivy Bridge, the efficient cores of hybrid processors. Their files are
// written by hand, in the same directory.
package main

import (
	"fmt"

	"github.com/cyclestack/cyclestack/internal/gen"
)

//go:generate go run . -vendor $CYCLESTACK_VENDOR_DATA -o ../../../model/data/models/tma

func main() { gen.Main("topdown", "intel-perfmon", generate) }

// generate makes the models from a copy of the perfmon repository.
func generate(dir string) ([]gen.File, error) {
	g, err := newGenerator(dir)
	if err != nil {
		return nil, err
	}
	var files []gen.File
	for i := range processors {
		p := &processors[i]
		m, err := g.model(p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.stem, err)
		}
		g.models[p.stem] = m
		files = append(files, gen.File{Name: p.stem + ".toml", Data: m.write(g.models[p.extends], g.commit)})
	}
	return files, g.fixes.unused()
}
