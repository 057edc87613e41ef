package main

import (
	"embed"
	"fmt"
	"slices"
	"strconv"

	"github.com/cyclestack/cyclestack/internal/gen"
)

//go:embed *.csv *.toml *.txt
var data embed.FS

// own returns a file of the generator's own.
func own(name string) []byte {
	b, err := data.ReadFile(name)
	if err != nil {
		panic(err) // it is embedded
	}
	return b
}

// eachRow calls f for each row of one of the generator's own tables.
func eachRow(name, header string, f func(row []string) error) error {
	return gen.EachRow(name, own(name), header, func(_ int, row []string) error { return f(row) })
}

// A processor is one generated model.
type processor struct {
	stem    string // of the model's file
	extends string // stem of the model it states the differences from; "" for none
	cpus    string // names in cpus.toml, separated by blanks
	width   int    // slots per cycle
	title   string // of the processor
	metrics string // files in the perfmon repository
	events  string
	latency string // of retire latencies, "" if the vendor publishes none
	atom    bool   // an efficient core: its own tree, of slots throughout
}

// processors are the models of processors.csv, each after the one that it extends.
var processors = readProcessors()

func readProcessors() (all []processor) {
	err := eachRow("processors.csv", "model,extends,cpus,width,title,metrics,events,latency,atom", func(r []string) error {
		width, err := strconv.Atoi(r[3])
		all = append(all, processor{r[0], r[1], r[2], width, r[4], r[5], r[6], r[7], r[8] != ""})
		return err
	})
	if err != nil {
		panic(err) // a fault of the generator itself
	}
	return all
}

// knownStems returns an error if one of the stems is of no generated model.
func knownStems(stems []string) error {
	for _, stem := range stems {
		if !slices.ContainsFunc(processors, func(p processor) bool { return p.stem == stem }) {
			return fmt.Errorf("there is no model %q", stem)
		}
	}
	return nil
}
