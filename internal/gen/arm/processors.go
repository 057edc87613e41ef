package main

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/internal/gen"
)

//go:embed processors.toml
var processorsTOML []byte

// Own are the generator's own facts, of processors.toml.
type own struct {
	Section   []heading         // in the order of printing
	Units     map[string]string // by the vendor's unit, of values that are no percentages
	Texts     map[string]string
	Relation  []relation
	Processor []processor
}

// A heading stands over the metrics of one of the vendor's groups.
type heading struct{ Group, Text string }

// A relation is a table [[relation]] of the models; Slots says that it is one of those
// that count slots.
type relation struct {
	Name, Left, Op, Right, Holds, Fails string
	Slots                               bool
}

// A processor is one model file; processors.toml explains the fields.
type processor struct {
	Stem     string
	Title    string
	CPUs     []string
	Files    []string
	Extends  string
	About    []string
	Cycles   bool
	Spurious bool
}

var facts = readOwn()

func readOwn() (o own) {
	if err := gen.ParseTOML("processors.toml", processorsTOML, &o); err != nil {
		panic(err) // a fault of the generator itself
	}
	return o
}

// about is what the model says of itself.
func (p *processor) about() string {
	var texts []string
	for _, name := range p.About {
		texts = append(texts, facts.Texts[name])
	}
	return strings.Join(texts, "\n\n")
}

// unitOf returns a metric's unit in the models, and whether the vendor's value is
// a percentage.
func unitOf(vendor string) (unit string, percent bool, err error) {
	if strings.HasPrefix(vendor, "percent of ") {
		return "", true, nil
	}
	unit, ok := facts.Units[vendor]
	if !ok {
		return "", false, fmt.Errorf("the unit %q is not known", vendor)
	}
	return unit, false, nil
}

// headingOf returns the heading of a group.
func headingOf(group string) (string, error) {
	i := slices.IndexFunc(facts.Section, func(h heading) bool { return h.Group == group })
	if i < 0 {
		return "", fmt.Errorf("the group %q has no heading", group)
	}
	return facts.Section[i].Text, nil
}
