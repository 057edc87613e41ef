package fleet

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/fleet/series"
)

// ofWorkloads are the labels that series about a host as a whole do not have.
func ofWorkloads(label string) bool {
	return slices.Contains([]string{series.Service, series.Namespace, series.Pod, series.Container, series.Socket}, label)
}

// coverage asks for how much of the time the counters ran. It is that of the hosts, as all
// scopes share their counters.
func (g *asking) coverage() error {
	by := "sum by (" + series.Processor + ", " + series.Method + ") "
	expr := func(metric string) string {
		return by + "(increase(" + metric + g.selector(ofWorkloads) + "[" + duration(g.a.Range) + "]))"
	}
	if g.a.Rules {
		expr = func(metric string) string {
			name := strings.Replace(strings.TrimSuffix(metric, "_total"), "cyclestack_", "cyclestack:", 1) + ":sum_increase5m"
			return by + "(avg_over_time(" + name + g.selector(ofWorkloads) + "[" + duration(g.a.Range) + "]))"
		}
	}
	type of struct{ cpu, method string }
	enabled, running := map[of]float64{}, map[of]float64{}
	into := func(m map[of]float64) func(Sample) {
		return func(s Sample) { m[of{s.Labels[series.Processor], s.Labels[series.Method]}] += s.Value }
	}
	g.ask([]wanted{{expr(series.Enabled), into(enabled)}, {expr(series.Running), into(running)}})
	for _, r := range g.rows {
		k := of{r.CPU, r.Method}
		if e := enabled[k]; e > 0 && running[k] > 0 && !math.IsInf(e, 0) {
			r.Cover = min(running[k]/e, 1)
		}
	}
	return g.err
}

// hosts asks how many hosts were seen, and how many the store was to scrape. Recording rules
// have no hosts. Then hosts that name their model are counted. A condition may be on a label
// that these series lack, and then nothing is known.
func (g *asking) hosts() error {
	if len(g.rows) == 0 {
		return nil
	}
	window := "[" + duration(g.a.Range) + "])"
	own := func(label string) bool {
		return slices.Contains([]string{series.Processor, series.CoreType, series.Model, series.ModelVersion, series.Method}, label)
	}
	known := !slices.ContainsFunc(g.a.Where, func(m Match) bool {
		return !own(m.Label) && m.Label != series.Scope && m.Label != instance && m.Label != "job"
	})
	info := "last_over_time(" + series.ModelInfo + g.selector(ofWorkloads) + window
	up := "max_over_time(up" + g.selector(func(l string) bool { return ofWorkloads(l) || own(l) }) + window
	var list []wanted
	if g.a.Rules {
		list = append(list, wanted{"max(count_over_time({__name__=~\"cyclestack:(slots|cycles|whole_cpu_seconds):hosts\", scope=\"" + g.a.scope() + "\"}" + window + ")",
			func(s Sample) { g.a.Windows = int(s.Value) }})
		if known {
			list = append(list, wanted{"count(count by (" + instance + ") (" + info + "))", func(s Sample) { g.a.Seen = int(s.Value) }})
		}
	} else {
		expr := "increase({__name__=~\"" + series.Slots.Whole + "|" + series.Cycles.Whole + "|" + series.CPUSeconds.Whole + "\", " + g.inScope()[1:] + window
		list = append(list, wanted{"count(count by (" + instance + ") (" + expr + " > 0))", func(s Sample) { g.a.Seen = int(s.Value) }})
	}
	if known {
		list = append(list, wanted{"count(" + up + " and on (job) group by (job) (" + info + "))", func(s Sample) { g.a.Expected = int(s.Value) }})
	}
	g.ask(list)
	return g.err
}

// versions sees that no account is a sum over versions of a model. Exporters name the
// version in each series. Where one does not, all hosts must have the same.
func (g *asking) versions() error {
	type model struct{ name, cpu, method string }
	found := map[model][]string{}
	need := false
	for _, r := range g.a.Rows {
		need = need || r.Version == ""
	}
	if !need {
		return nil
	}
	info := "count by (" + strings.Join([]string{series.Model, series.ModelVersion, series.Processor, series.Method}, ", ") + ") (last_over_time(" +
		series.ModelInfo + g.selector(ofWorkloads) + "[" + duration(g.a.Range) + "]))"
	g.ask([]wanted{{info, func(s Sample) {
		m := model{s.Labels[series.Model], s.Labels[series.Processor], s.Labels[series.Method]}
		found[m] = append(found[m], s.Labels[series.ModelVersion])
	}}})
	if g.err != nil {
		return g.err
	}
	for _, r := range g.a.Rows {
		list := found[model{r.Model, r.CPU, r.Method}]
		switch {
		case r.Version != "":
		case len(list) == 1:
			r.Version = list[0]
		case len(list) > 1:
			slices.Sort(list)
			return fault.Inputf("%s: hosts count by versions %s of %s, whose nodes are not the same: choose hosts with %s",
				g.store, strings.Join(list, " and "), cut(r.Model), fault.Name("where"))
		}
	}
	return nil
}

// String says where the sums are from.
func (a *Answer) String() string {
	if a.Rules {
		return fmt.Sprintf("recording rules, %d windows", a.Windows)
	}
	return "counters of hosts"
}
