package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/cyclestack/cyclestack/internal/gen"
	"github.com/cyclestack/cyclestack/model"
)

// Costs are what costs.toml says about the latencies in the vendor's formulas.
type costs struct {
	Latency []struct{ Name, About string }
	Metric  []struct {
		Models    []string // stems; empty for all that have the metric and are in no other table
		Name      string
		Latencies []string // in the order of the formula
	}
}

func parseCosts(data []byte) (*costs, error) {
	all := new(costs)
	if err := gen.ParseTOML("costs.toml", data, all); err != nil {
		return nil, err
	}
	for _, m := range all.Metric {
		if err := knownStems(m.Models); err != nil {
			return nil, fmt.Errorf("costs.toml: %s: %w", m.Name, err)
		}
		for _, name := range m.Latencies {
			if all.about(name) == "" {
				return nil, fmt.Errorf("costs.toml: %s: there is no latency %q, or no text about it", m.Name, name)
			}
		}
	}
	return all, nil
}

// about returns the explanation of a latency, "" if there is none of that name.
func (all *costs) about(name string) string {
	for _, l := range all.Latency {
		if l.Name == name {
			return l.About
		}
	}
	return ""
}

// of returns the latencies in the formula of a metric.
func (all *costs) of(stem, metric string) []string {
	var general []string
	for _, m := range all.Metric {
		switch {
		case m.Name != metric:
		case slices.Contains(m.Models, stem):
			return m.Latencies
		case len(m.Models) == 0:
			general = m.Latencies
		}
	}
	return general
}

// nanoseconds is a latency in a formula in canonical form: a number of
// nanoseconds times the clock, or the difference of two of them.
var nanoseconds = regexp.MustCompile(`([\d.]+) \* Info_System_Core_Frequency(?: - ([\d.]+) \* Info_System_Core_Frequency)?`)

// nameLatencies replaces the latencies in a metric's formula by parameters, so
// that "22.5 * clock - 5 * clock" becomes "(Latency_L3 - Latency_L2) * clock".
func (c *converter) nameLatencies(metric, formula string) (string, error) {
	names := c.costs.of(c.p.stem, metric)
	next := 0
	name := func(number string) (string, error) {
		if next == len(names) {
			return "", fmt.Errorf("costs.toml does not say what %s ns are", number)
		}
		next++
		return names[next-1], c.addLatency(names[next-1], number)
	}
	var failed error
	formula = nanoseconds.ReplaceAllStringFunc(formula, func(s string) string {
		f := nanoseconds.FindStringSubmatch(s)
		from, err := name(f[1])
		text := from
		if err == nil && f[2] != "" {
			var less string
			less, err = name(f[2])
			text = "(" + from + " - " + less + ")"
		}
		if failed == nil {
			failed = err
		}
		return "(" + text + " * Info_System_Core_Frequency)"
	})
	if failed == nil && next > 0 && next < len(names) {
		failed = fmt.Errorf("its formula has %d latencies, costs.toml %d", next, len(names))
	}
	if failed != nil || next == 0 {
		return formula, failed
	}
	return canonical(formula)
}

// addLatency notes the parameter for a latency, which must be the same in all
// formulas of a file.
func (c *converter) addLatency(name, number string) error {
	ns, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return err
	}
	for _, have := range c.params {
		if have.Name == name {
			if *have.Value != ns {
				return fmt.Errorf("%s is %v ns here and %v ns in another formula", name, ns, *have.Value)
			}
			return nil
		}
	}
	c.params = append(c.params, parameter{known: true, Parameter: model.Parameter{
		Name: name, Value: &ns, Unit: "ns", About: c.costs.about(name), Min: new(float64),
		Source: "Intel perfmon, top-down metrics " + c.version + "; measure your own",
	}})
	return nil
}
