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
// A file states only its differences from the file that it extends, which
// processors.go names. Titles, explanations and advice are in metrics.toml. Anything that
// the generator does not know (a unit, a metric without a text, revisions of one
// processor that differ) ends the run.
//
// The model for cores without data of their own, armv8.toml, is written by hand.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

//go:generate go run . -vendor $CYCLESTACK_VENDOR_DATA -o ../../../model/data/models/arm

func main() {
	vendor := flag.String("vendor", "", "folder of the vendors' files")
	out := flag.String("o", "", "folder to write the models to")
	flag.Parse()
	if *vendor == "" || *out == "" || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "usage: arm -vendor DIR -o DIR (go generate takes the first from CYCLESTACK_VENDOR_DATA)")
		os.Exit(2)
	}
	if err := run(*vendor, *out); err != nil {
		fmt.Fprintln(os.Stderr, "arm:", err)
		os.Exit(1)
	}
}

// run writes all models, or none if one cannot be made.
func run(vendor, out string) error {
	files, err := generate(filepath.Join(vendor, "arm-telemetry"))
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(out, f.name), f.data, 0o666); err != nil {
			return err
		}
	}
	return nil
}

// A file is a generated model.
type file struct {
	name string
	data []byte
}

// generate makes the models from a copy of the telemetry data.
func generate(dir string) ([]file, error) {
	texts, err := readTexts()
	if err != nil {
		return nil, err
	}
	models := map[string]*armModel{}
	var files []file
	for i := range processors {
		p := &processors[i]
		spec, err := readRevisions(dir, p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.stem, err)
		}
		m, err := newModel(p, spec, texts)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.stem, err)
		}
		models[p.stem] = m
		files = append(files, file{p.stem + ".toml", m.write(models[p.extends])})
	}
	return files, texts.unused()
}
