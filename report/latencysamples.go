package report

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/latency"
)

// A SampledLatency is the latencies of loads that were sampled, of one event, with where
// they come from.
type SampledLatency struct {
	Label     string // the command that was recorded
	CPU       string // "" if it is not known
	Event     string
	Threshold uint64  // loads that took no more cycles were not sampled; 0 for none, or if it is not known
	Duration  float64 // seconds; NaN if it is not known
	Facility  latency.Facility
	Known     bool // whether the facility is
	By        string
	Top       int // groups shown; 0 is those with a share worth a line
	All       *latency.Group
	Groups    []*latency.Group // in the order in which they are shown
	Notes     []counts.Note
}

// SampledLatencies prints distributions of latencies of loads that were sampled.
func SampledLatencies(w io.Writer, list []SampledLatency, o Options) error {
	t := listing(w, o)
	for i := range list {
		if i > 0 {
			t.out.WriteByte('\n')
		}
		t.sampledLatency(&list[i])
	}
	return t.flush()
}

func (t *tree) sampledLatency(l *SampledLatency) {
	m := l.All.Measured()
	head := fmt.Sprintf("load latency from %s samples of %s", trim(float64(m.Samples)), l.Event)
	if l.Label != "" {
		head = l.Label + ", " + head
	}
	if l.CPU != "" {
		head += " on " + l.CPU
	}
	t.paragraph("", head, 0, bold)
	t.out.WriteByte('\n')
	var lines []line
	for _, b := range m.Bins {
		lines = append(lines, line{name: logBinName(b), value: percentOne(b.Share.Value), bar: bar(b.Share.Value, 1), err: halfWidth(100*b.Share.Error, 1)})
	}
	t.table("cycles", lines)
	t.out.WriteByte('\n')
	t.latencyGroups(l, m)
	t.out.WriteByte('\n')
	t.latencyMeaning(l, m)
}

func logBinName(b latency.LogBin) string {
	switch {
	case b.To-b.From <= 1:
		return trim(b.From)
	case math.IsInf(b.To, 1):
		return "from " + trim(b.From)
	}
	return trim(b.From) + " to " + trim(b.To-1)
}

// halfWidth is a half-width with so many decimals, "" if it is not known.
func halfWidth(v float64, decimals int) string {
	if math.IsNaN(v) {
		return ""
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}

// groupWorth is the share of the cycles from which on a group has a line.
const groupWorth = 0.005

// shownGroups divides the groups into those with a line and the others' sum.
func (l *SampledLatency) shownGroups() (shown []*latency.Group, left int, cycles float64) {
	total := l.All.Measured().Cycles
	for i, g := range l.Groups {
		m := g.Measured()
		if l.Top > 0 && i >= l.Top || l.Top == 0 && l.By != "level" && m.Cycles < groupWorth*total {
			left++
			cycles += m.Cycles
			continue
		}
		shown = append(shown, g)
	}
	return shown, left, cycles / total
}

// latencyGroups prints a line for each group: its shares of the loads and of their
// cycles, the mean and the quantiles.
func (t *tree) latencyGroups(l *SampledLatency, all *latency.Measured) {
	shown, left, share := l.shownGroups()
	rows := [][]string{{"loads", "cycles", "samples", "mean", "±", "p50", "p90", "p99", "p99.9", l.By}}
	rows = append(rows, groupRow("all", all, all))
	for _, g := range shown {
		rows = append(rows, groupRow(g.Name, g.Measured(), all))
	}
	widths := make([]int, len(rows[0]))
	for _, r := range rows {
		for i, c := range r[:len(r)-1] {
			widths[i] = max(widths[i], runes(c))
		}
	}
	used := 0
	for _, w := range widths {
		used += w + gap
	}
	for k, r := range rows {
		out := ""
		for i, c := range r[:len(r)-1] {
			out += fmt.Sprintf("%*s", widths[i]+gap, c)
		}
		out += "  " + cut(shorter(r[len(r)-1], t.o.Width-used-gap), max(nameLeast, t.o.Width-used-gap))
		st := plain
		if k == 0 {
			st = faint
		}
		t.out.WriteString(t.paint(out, st) + "\n")
	}
	if left > 0 {
		t.out.WriteByte('\n')
		t.paragraph("left out", fmt.Sprintf("%s more of %s, %s of the cycles together (--top %d shows all)", trim(float64(left)), trim(float64(len(l.Groups))), percentOne(share), len(l.Groups)), latencyHang, plain)
	}
}

// groupRow is the line of a group. A quantile that the samples do not bound from above
// has a ">": so rare a load may not have been sampled.
func groupRow(name string, m, all *latency.Measured) []string {
	row := []string{percentOne(m.Loads / all.Loads), percentOne(m.Cycles / all.Cycles), trim(float64(m.Samples)),
		strconv.FormatFloat(m.Mean.Value, 'f', 1, 64), halfWidth(m.Mean.Error, 1)}
	for _, q := range m.Quantile {
		text := trim(q.Value)
		if math.IsInf(q.High, 1) {
			text = ">" + text
		}
		row = append(row, text)
	}
	return append(row, name)
}

// latencyMeaning says what the figures are, and how far to trust them.
func (t *tree) latencyMeaning(l *SampledLatency, m *latency.Measured) {
	loads := fmt.Sprintf("about %s in all, as many as the samples' periods say; latencies from %d to %d cycles, %s together", trim(m.Loads), m.Least, m.Most, trim(m.Cycles))
	t.paragraph("loads", loads, latencyHang, plain)
	if q := m.Quantile[0]; !math.IsNaN(q.Low) && !math.IsInf(q.High, 1) {
		text := ""
		for i, q := range m.Quantile {
			if i > 0 {
				text += ", "
			}
			text += fmt.Sprintf("p%s %s", trim(q.Of*100), between(q))
		}
		t.paragraph("95 % sure", text, latencyHang, plain)
	}
	if x := l.All.Instruction.Measured(); x != nil && l.Facility.Instruction != "" {
		t.paragraph("whole", fmt.Sprintf("%.1f cycles on average, half of them up to %s: %s", x.Mean.Value, trim(x.Quantile[0].Value), l.Facility.Instruction), latencyHang, plain)
	}
	t.paragraph("besides", fmt.Sprintf("%s missed the TLB, %s were locked, %s waited for an earlier store", percentOne(l.All.TLBMisses/m.Loads),
		percentOne(l.All.Locked/m.Loads), percentOne(l.All.Blocked/m.Loads)), latencyHang, plain)
	if l.Threshold > 0 {
		t.paragraph("threshold", fmt.Sprintf("loads that took %d cycles or less were not sampled: shares and quantiles are of the slower ones", l.Threshold), latencyHang, plain)
	}
	if l.Known {
		t.paragraph("measured", l.Facility.Name+": "+l.Facility.Meaning, latencyHang, plain)
		t.paragraph("", l.Facility.Chosen, latencyHang, plain)
	} else {
		t.paragraph("measured", "what the latency covers is not known for this processor", latencyHang, plain)
	}
	for _, n := range t.o.notes(l.Notes) {
		t.paragraph("note", n, latencyHang, plain)
	}
}

// between is a quantile's interval.
func between(q latency.Quantile) string {
	low, high := trim(q.Low), trim(q.High)
	switch {
	case math.IsInf(q.High, 1) && math.IsNaN(q.Low):
		return "unknown"
	case math.IsInf(q.High, 1):
		return low + " or more"
	case math.IsNaN(q.Low):
		return "up to " + high
	case low == high:
		return low
	}
	return low + "–" + high
}

type jsonSampledLoads struct {
	Label     string      `json:"label,omitempty"`
	CPU       string      `json:"cpu,omitempty"`
	Event     string      `json:"event"`
	Threshold uint64      `json:"threshold,omitempty"`
	Duration  *number     `json:"duration_s"`
	By        string      `json:"by"`
	Facility  string      `json:"facility,omitempty"`
	Meaning   string      `json:"meaning,omitempty"`
	Chosen    string      `json:"chosen,omitempty"`
	All       jsonLoads   `json:"all"`
	Groups    []jsonLoads `json:"groups"`
	Notes     []string    `json:"notes,omitempty"`
}

type jsonLoads struct {
	Name        string         `json:"name"`
	Samples     int64          `json:"samples"`
	Loads       number         `json:"loads"`
	Cycles      number         `json:"cycles"`
	LoadShare   number         `json:"load_share"`
	CycleShare  number         `json:"cycle_share"`
	Least       uint64         `json:"least"`
	Most        uint64         `json:"most"`
	Mean        number         `json:"mean"`
	MeanError   *number        `json:"mean_error"`
	Quantiles   []jsonQuantile `json:"quantiles"`
	Bins        []jsonLogBin   `json:"bins"`
	TLBMisses   number         `json:"tlb_misses"`
	Locked      number         `json:"locked"`
	Blocked     number         `json:"blocked"`
	Instruction *number        `json:"instruction_mean,omitempty"`
}

type jsonQuantile struct {
	Of    number  `json:"of"`
	Value number  `json:"value"`
	Low   *number `json:"low"`
	High  *number `json:"high"`
}

type jsonLogBin struct {
	From    number  `json:"from"`
	Below   number  `json:"below"`
	Samples int64   `json:"samples"`
	Share   number  `json:"share"`
	Error   *number `json:"error"`
}

// SampledLatenciesJSON prints them as one JSON document, all latencies in cycles, and
// everything that is a part of the loads as a share of 0…1.
func SampledLatenciesJSON(w io.Writer, list []SampledLatency, o Options) error {
	doc := struct {
		Schema  string             `json:"schema"`
		Sampled []jsonSampledLoads `json:"sampled"`
	}{Schema: latencySchema, Sampled: []jsonSampledLoads{}}
	for i := range list {
		l := &list[i]
		all := l.All.Measured()
		x := jsonSampledLoads{Label: l.Label, CPU: l.CPU, Event: l.Event, Threshold: l.Threshold, Duration: known(l.Duration), By: l.By,
			All: groupJSON("all", l.All, all), Groups: []jsonLoads{}, Notes: o.notes(l.Notes)}
		if l.Known {
			x.Facility, x.Meaning, x.Chosen = l.Facility.Name, l.Facility.Meaning, l.Facility.Chosen
		}
		for k, g := range l.Groups {
			if l.Top == 0 || k < l.Top {
				x.Groups = append(x.Groups, groupJSON(g.Name, g, all))
			}
		}
		doc.Sampled = append(doc.Sampled, x)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(doc)
}

func groupJSON(name string, g *latency.Group, all *latency.Measured) jsonLoads {
	m := g.Measured()
	x := jsonLoads{Name: name, Samples: m.Samples, Loads: number(m.Loads), Cycles: number(m.Cycles), LoadShare: number(m.Loads / all.Loads),
		CycleShare: number(m.Cycles / all.Cycles), Least: m.Least, Most: m.Most, Mean: number(m.Mean.Value), MeanError: known(m.Mean.Error),
		TLBMisses: number(g.TLBMisses / m.Loads), Locked: number(g.Locked / m.Loads), Blocked: number(g.Blocked / m.Loads)}
	for _, q := range m.Quantile {
		x.Quantiles = append(x.Quantiles, jsonQuantile{number(q.Of), number(q.Value), known(q.Low), known(q.High)})
	}
	for _, b := range m.Bins {
		x.Bins = append(x.Bins, jsonLogBin{number(b.From), number(b.To), b.Samples, number(b.Share.Value), known(b.Share.Error)})
	}
	if i := g.Instruction.Measured(); i != nil {
		x.Instruction = known(i.Mean.Value)
	}
	return x
}

// SampledLatenciesCSV prints a line for each group, all of the loads first. What is not
// known is empty.
func SampledLatenciesCSV(w io.Writer, list []SampledLatency) error {
	out := csv.NewWriter(w)
	head := []string{"label", "event", "by", "group", "samples", "loads", "cycles", "load_share", "cycle_share", "mean", "mean_error"}
	for _, q := range latency.Quantiles {
		name := "p" + trim(q*100)
		head = append(head, name, name+"_low", name+"_high")
	}
	if err := out.Write(append(head, "tlb_misses", "locked", "blocked")); err != nil {
		return err
	}
	for i := range list {
		l := &list[i]
		all := l.All.Measured()
		rows := [][]string{groupCSV(l, "all", l.All, all)}
		for k, g := range l.Groups {
			if l.Top == 0 || k < l.Top {
				rows = append(rows, groupCSV(l, g.Name, g, all))
			}
		}
		if err := out.WriteAll(rows); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func groupCSV(l *SampledLatency, name string, g *latency.Group, all *latency.Measured) []string {
	m := g.Measured()
	row := []string{l.Label, l.Event, l.By, name, strconv.FormatInt(m.Samples, 10)}
	for _, v := range []float64{m.Loads, m.Cycles, m.Loads / all.Loads, m.Cycles / all.Cycles, m.Mean.Value, m.Mean.Error} {
		row = append(row, plainFigure(v))
	}
	for _, q := range m.Quantile {
		row = append(row, plainFigure(q.Value), plainFigure(q.Low), plainFigure(q.High))
	}
	return append(row, plainFigure(g.TLBMisses/m.Loads), plainFigure(g.Locked/m.Loads), plainFigure(g.Blocked/m.Loads))
}

// plainFigure is a number with all its digits, "" if it is not known or has no bound.
func plainFigure(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return ""
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}
