package render

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/latency"
	"github.com/cyclestack/cyclestack/internal/page"
	"github.com/cyclestack/cyclestack/report"
)

// SampledLatencies is a document: latencies of loads that were sampled.
type SampledLatencies []SampledLatency

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
	Groups    []*latency.Group // as they are shown, in order
	Notes     []counts.Note
}

// writeSampledLatencies prints distributions of latencies of loads that were sampled.
func writeSampledLatencies(w io.Writer, list SampledLatencies, o report.Options) error {
	t := &latencyPage{page.New(w, o.Width, o.Color), o}
	for i := range list {
		if i > 0 {
			t.Out.WriteByte('\n')
		}
		t.sampledLatency(&list[i])
	}
	return t.Flush()
}

func (t *latencyPage) sampledLatency(l *SampledLatency) {
	m := l.All.Measured()
	head := fmt.Sprintf("load latency from %s samples of %s", page.Trim(float64(m.Samples)), l.Event)
	if l.Label != "" {
		head = l.Label + ", " + head
	}
	if l.CPU != "" {
		head += " on " + l.CPU
	}
	t.Paragraph("", head, 0, bold)
	t.Out.WriteByte('\n')
	var lines []page.Line
	for _, b := range m.Bins {
		lines = append(lines, page.Line{Name: logBinName(b), Value: percentOne(b.Share.Value), Bar: page.Bar(b.Share.Value, 1), Error: halfWidth(100*b.Share.Error, 1)})
	}
	t.Table("cycles", lines)
	t.Out.WriteByte('\n')
	t.latencyGroups(l, m)
	t.Out.WriteByte('\n')
	t.latencyMeaning(l, m)
}

func logBinName(b latency.LogBin) string {
	switch {
	case b.To-b.From <= 1:
		return page.Trim(b.From)
	case math.IsInf(b.To, 1):
		return "from " + page.Trim(b.From)
	}
	return page.Trim(b.From) + " to " + page.Trim(b.To-1)
}

// halfWidth is a half-width with so many decimals, "" if it is not known.
func halfWidth(v float64, decimals int) string {
	if math.IsNaN(v) {
		return ""
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}

// groupWorth is the least share of the cycles that a group with a line has.
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
func (t *latencyPage) latencyGroups(l *SampledLatency, all *latency.Measured) {
	shown, left, share := l.shownGroups()
	rows := [][]string{{"loads", "cycles", "samples", "mean", "±", "p50", "p90", "p99", "p99.9", l.By}}
	rows = append(rows, groupRow("all", all, all))
	for _, g := range shown {
		rows = append(rows, groupRow(g.Name, g.Measured(), all))
	}
	t.columns(rows)
	if left > 0 {
		t.Out.WriteByte('\n')
		t.Paragraph("left out", t.o.Hint(fmt.Sprintf("%s more of %s, %s of the cycles together", page.Trim(float64(left)), page.Trim(float64(len(l.Groups))), percentOne(share)), counts.Fix{Action: counts.ShowRows, Number: len(l.Groups)}), latencyHang, plain)
	}
}

// groupRow is the line of a group. A quantile that the samples do not bound from above
// has a ">": so rare a load may not have been sampled.
func groupRow(name string, m, all *latency.Measured) []string {
	row := []string{percentOne(m.Loads / all.Loads), percentOne(m.Cycles / all.Cycles), page.Trim(float64(m.Samples)),
		strconv.FormatFloat(m.Mean.Value, 'f', 1, 64), halfWidth(m.Mean.Error, 1)}
	for _, q := range m.Quantile {
		text := page.Trim(q.Value)
		if math.IsInf(q.High, 1) {
			text = ">" + text
		}
		row = append(row, text)
	}
	return append(row, name)
}

// latencyMeaning says what the figures are, and how far to trust them.
func (t *latencyPage) latencyMeaning(l *SampledLatency, m *latency.Measured) {
	loads := fmt.Sprintf("about %s in all, as many as the samples' periods say; latencies from %d to %d cycles, %s together", page.Trim(m.Loads), m.Least, m.Most, page.Trim(m.Cycles))
	t.Paragraph("loads", loads, latencyHang, plain)
	if q := m.Quantile[0]; !math.IsNaN(q.Low) && !math.IsInf(q.High, 1) {
		text := ""
		for i, q := range m.Quantile {
			if i > 0 {
				text += ", "
			}
			text += fmt.Sprintf("p%s %s", page.Trim(q.Of*100), between(q))
		}
		t.Paragraph("95 % sure", text, latencyHang, plain)
	}
	if x := l.All.Instruction.Measured(); x != nil && l.Facility.Instruction != "" {
		t.Paragraph("whole", fmt.Sprintf("%.1f cycles on average, half of them up to %s: %s", x.Mean.Value, page.Trim(x.Quantile[0].Value), l.Facility.Instruction), latencyHang, plain)
	}
	t.Paragraph("besides", fmt.Sprintf("%s missed the TLB, %s were locked, %s waited for an earlier store", percentOne(l.All.TLBMisses/m.Loads),
		percentOne(l.All.Locked/m.Loads), percentOne(l.All.Blocked/m.Loads)), latencyHang, plain)
	if l.Threshold > 0 && (t.o.Lines == 0 || t.o.Notes) {
		t.Paragraph("threshold", fmt.Sprintf("loads that took %d cycles or less were not sampled: shares and quantiles are of the slower ones", l.Threshold), latencyHang, plain)
	}
	t.fine(l)
}

// fine says what a latency covers, and the notes. Of a screen it is their number.
func (t *latencyPage) fine(l *SampledLatency) {
	meaning := []string{"what the latency covers is not known for this processor"}
	if l.Known {
		meaning = []string{l.Facility.Name + ": " + l.Facility.Meaning, l.Facility.Chosen}
	}
	notes := t.o.Texts(l.Notes)
	if t.o.Lines > 0 && !t.o.Notes {
		t.Paragraph("notes", t.o.Hint(fmt.Sprint(len(meaning)+len(notes)), counts.Fix{Action: counts.ShowNotes}), latencyHang, plain)
		return
	}
	label := "measured"
	for _, text := range meaning {
		t.Paragraph(label, text, latencyHang, plain)
		label = ""
	}
	for _, n := range notes {
		t.Paragraph("note", n, latencyHang, plain)
	}
}

// between is a quantile's interval.
func between(q latency.Quantile) string {
	low, high := page.Trim(q.Low), page.Trim(q.High)
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
	Label     string       `json:"label,omitempty"`
	CPU       string       `json:"cpu,omitempty"`
	Event     string       `json:"event"`
	Threshold uint64       `json:"threshold,omitempty"`
	Duration  *page.Number `json:"duration_s"`
	By        string       `json:"by"`
	Facility  string       `json:"facility,omitempty"`
	Meaning   string       `json:"meaning,omitempty"`
	Chosen    string       `json:"chosen,omitempty"`
	All       jsonLoads    `json:"all"`
	Groups    []jsonLoads  `json:"groups"`
	Notes     []string     `json:"notes,omitempty"`
}

type jsonLoads struct {
	Name        string         `json:"name"`
	Samples     int64          `json:"samples"`
	Loads       page.Number    `json:"loads"`
	Cycles      page.Number    `json:"cycles"`
	LoadShare   page.Number    `json:"load_share"`
	CycleShare  page.Number    `json:"cycle_share"`
	Least       uint64         `json:"least"`
	Most        uint64         `json:"most"`
	Mean        page.Number    `json:"mean"`
	MeanError   *page.Number   `json:"mean_error"`
	Quantiles   []jsonQuantile `json:"quantiles"`
	Bins        []jsonLogBin   `json:"bins"`
	TLBMisses   page.Number    `json:"tlb_misses"`
	Locked      page.Number    `json:"locked"`
	Blocked     page.Number    `json:"blocked"`
	Instruction *page.Number   `json:"instruction_mean,omitempty"`
}

type jsonQuantile struct {
	Of    page.Number  `json:"of"`
	Value page.Number  `json:"value"`
	Low   *page.Number `json:"low"`
	High  *page.Number `json:"high"`
}

type jsonLogBin struct {
	From    page.Number  `json:"from"`
	Below   page.Number  `json:"below"`
	Samples int64        `json:"samples"`
	Share   page.Number  `json:"share"`
	Error   *page.Number `json:"error"`
}

// sampledDocument is them for JSON: latencies in cycles, and parts of the loads as shares of
// 0…1.
func sampledDocument(list SampledLatencies, o report.Options) any {
	doc := struct {
		Schema  string             `json:"schema"`
		Sampled []jsonSampledLoads `json:"sampled"`
	}{Schema: latencyName, Sampled: []jsonSampledLoads{}}
	for i := range list {
		l := &list[i]
		all := l.All.Measured()
		x := jsonSampledLoads{Label: l.Label, CPU: l.CPU, Event: l.Event, Threshold: l.Threshold, Duration: page.Known(l.Duration), By: l.By,
			All: groupJSON("all", l.All, all), Groups: []jsonLoads{}, Notes: o.Texts(l.Notes)}
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
	return doc
}

func groupJSON(name string, g *latency.Group, all *latency.Measured) jsonLoads {
	m := g.Measured()
	x := jsonLoads{Name: name, Samples: m.Samples, Loads: page.Number(m.Loads), Cycles: page.Number(m.Cycles), LoadShare: page.Number(m.Loads / all.Loads),
		CycleShare: page.Number(m.Cycles / all.Cycles), Least: m.Least, Most: m.Most, Mean: page.Number(m.Mean.Value), MeanError: page.Known(m.Mean.Error),
		TLBMisses: page.Number(g.TLBMisses / m.Loads), Locked: page.Number(g.Locked / m.Loads), Blocked: page.Number(g.Blocked / m.Loads)}
	for _, q := range m.Quantile {
		x.Quantiles = append(x.Quantiles, jsonQuantile{page.Number(q.Of), page.Number(q.Value), page.Known(q.Low), page.Known(q.High)})
	}
	for _, b := range m.Bins {
		x.Bins = append(x.Bins, jsonLogBin{page.Number(b.From), page.Number(b.To), b.Samples, page.Number(b.Share.Value), page.Known(b.Share.Error)})
	}
	if i := g.Instruction.Measured(); i != nil {
		x.Instruction = page.Known(i.Mean.Value)
	}
	return x
}

// writeSampledCSV prints a line for each group, all of the loads first. What is not
// known is empty.
func writeSampledCSV(w io.Writer, list SampledLatencies, _ report.Options) error {
	out := csv.NewWriter(w)
	head := []string{"label", "event", "by", "group", "samples", "loads", "cycles", "load_share", "cycle_share", "mean", "mean_error"}
	for _, q := range latency.Quantiles {
		name := "p" + page.Trim(q*100)
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
