// Command arm writes the models of Arm's processors, model/data/models/arm, from
// Arm's telemetry data.
//
// It is run by go generate, with the folder that holds the data as arm-telemetry
// in the environment:
//
//	CYCLESTACK_VENDOR_DATA=DIR go generate ./internal/gen/arm
//
// The data has a file for each processor: events, metrics with their formulas,
// groups of metrics, and a decision tree of metrics. The tree becomes the model's
// tree, and the other metrics are listed under the titles of their groups. Names
// and formulas stay the vendor's. Percentages become shares from 0 to 1. The
// number of slots in a cycle becomes a parameter. Recordings without a count of
// mispredicted branches get no correction of slots for them. Each formula and the
// vendor's own must agree for random counts.
//
// A file states only its differences from the file that it extends, which processors.toml
// names. Titles, explanations and advice are in metrics.toml. What the generator does not know
// (a unit, a metric without text, differing revisions of a processor) ends the run.
//
// The model for cores without data of their own, armv8.toml, is written by hand.
package main

import (
	"fmt"

	"github.com/cyclestack/cyclestack/internal/gen"
)

//go:generate go run . -vendor $CYCLESTACK_VENDOR_DATA -o ../../../model/data/models/arm

func main() { gen.Main("arm", "arm-telemetry", generate) }

// generate makes the models from a copy of the telemetry data.
func generate(dir string) ([]gen.File, error) {
	texts, err := readTexts()
	if err != nil {
		return nil, err
	}
	models := map[string]*armModel{}
	var files []gen.File
	for i := range facts.Processor {
		p := &facts.Processor[i]
		spec, err := readRevisions(dir, p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.Stem, err)
		}
		m, err := newModel(p, spec, texts)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.Stem, err)
		}
		models[p.Stem] = m
		files = append(files, gen.File{Name: p.Stem + ".toml", Data: m.write(models[p.Extends])})
	}
	return files, texts.unused()
}
