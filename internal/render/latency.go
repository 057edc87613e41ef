package render

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/latency"
	"github.com/cyclestack/cyclestack/internal/page"
	"github.com/cyclestack/cyclestack/report"
)

// latencyHang is the indentation of what is said below the table.
const latencyHang = 12

// Latencies is a document: distributions of load latencies, from counts at thresholds.
type Latencies []LatencyReport

// A LatencyReport is one distribution with where it comes from.
type LatencyReport struct {
	Label string
	CPU   string // "" where it does not matter
	Notes []counts.Note
	*latency.Distribution
}

// writeLatencies prints distributions of load latencies.
func writeLatencies(w io.Writer, list Latencies, o report.Options) error {
	t := &latencyPage{page.New(w, o.Width, o.Color), o}
	for i := range list {
		if i > 0 {
			t.Out.WriteByte('\n')
		}
		t.latency(&list[i])
	}
	return t.Flush()
}

// A latencyPage is where latencies are printed.
type latencyPage struct {
	page.Page
	o report.Options
}

func (t *latencyPage) latency(l *LatencyReport) {
	head := "load latency"
	if l.Label != "" {
		head = l.Label + ", " + head
	}
	if l.CPU != "" {
		head += " on " + l.CPU
	}
	t.Paragraph("", head, 0, bold)
	t.Out.WriteByte('\n')
	drop := map[float64]int{}
	for i, d := range l.Drops {
		drop[d.At] = i + 1
	}
	var lines []page.Line
	for i, b := range l.Bins {
		x := page.Line{Name: binName(b), Value: percentOne(b.Share), Bar: page.Bar(b.Share, 1)}
		if i+1 < len(l.Points) {
			if n := drop[l.Points[i+1].Threshold]; n > 0 {
				x.Mark = fmt.Sprintf("drop %d, at threshold %s", n, page.Trim(l.Points[i+1].Threshold))
			}
		}
		lines = append(lines, x)
	}
	t.Table("cycles", lines)
	t.Out.WriteByte('\n')
	t.means(l)
	for _, n := range t.o.Texts(l.Notes) {
		t.Paragraph("note", n, latencyHang, plain)
	}
}

func percentOne(share float64) string { return fmt.Sprintf("%.1f %%", share*100) }

func binName(b latency.Bin) string {
	switch {
	case math.IsInf(b.UpTo, 1):
		return "over " + page.Trim(b.Over)
	case b.UpTo == b.Over+1:
		return page.Trim(b.UpTo)
	}
	return page.Trim(b.Over+1) + " to " + page.Trim(b.UpTo)
}

// means says what the distribution bounds.
func (t *latencyPage) means(l *LatencyReport) {
	if !math.IsNaN(l.First) {
		near := page.Trim(l.First)
		if !l.NearFirst {
			near = page.Trim(l.Floor)
		}
		t.Paragraph("mean", fmt.Sprintf("between %s and %s cycles from load to use, nearer %s: no load takes less than %s, and the first large group of loads ends at the first drop",
			page.Trim(l.Floor), page.Trim(l.First), near, page.Trim(l.Floor)), latencyHang, plain)
	} else {
		t.Paragraph("mean", "no drop: the loads are spread evenly over the thresholds, or are all slower than the last", latencyHang, plain)
	}
	switch {
	case math.IsNaN(l.High):
		t.Paragraph("measured", fmt.Sprintf("at least %s cycles on average: all loads are slower than the last threshold", page.Trim(l.Low)), latencyHang, plain)
	case l.High-l.Low < 0.05:
		t.Paragraph("measured", fmt.Sprintf("%.2f cycles on average%s", l.High, tail(l)), latencyHang, plain)
	default:
		t.Paragraph("measured", fmt.Sprintf("between %.2f and %.2f cycles on average%s", l.Low, l.High, tail(l)), latencyHang, plain)
	}
	t.Paragraph("", "from the first dispatch to the write-back, both cycles and all replays included: more than what a waiting instruction sees", latencyHang, plain)
	if t.o.Lines == 0 || t.o.Notes {
		t.Paragraph("replays", "a load that is dispatched again counts once, from its first dispatch: its wait is in the mean, and no load is added", latencyHang, plain)
	}
	if l.Scatter >= 0.01 {
		t.Paragraph("scatter", fmt.Sprintf("counts rise by up to %s with the threshold, which counts of one sample cannot: they are from separate runs, and were evened out", page.Percent(l.Scatter)), latencyHang, plain)
	}
}

func tail(l *LatencyReport) string {
	if l.Tail == 0 {
		return ""
	}
	return fmt.Sprintf(", without the %.2g %% of the loads over the last threshold", l.Tail*100)
}

// latencyName names the JSON of latencies: of distributions from counts at thresholds,
// and of sampled loads.
const latencyName = "cyclestack.latency/v1"

type jsonLatency struct {
	Schema        string             `json:"schema"`
	Distributions []jsonDistribution `json:"distributions"`
}

type jsonDistribution struct {
	Label     string      `json:"label,omitempty"`
	CPU       string      `json:"cpu,omitempty"`
	Bins      []jsonBin   `json:"bins"`
	Drops     []jsonDrop  `json:"drops"`
	Scatter   page.Number `json:"scatter"`
	Measured  jsonBounds  `json:"measured_mean"`
	LoadToUse *jsonBounds `json:"load_to_use_mean,omitempty"`
	Tail      page.Number `json:"tail"`
	Notes     []string    `json:"notes,omitempty"`
}

type jsonBin struct {
	Over  page.Number  `json:"over"`
	UpTo  *page.Number `json:"up_to"`
	Count page.Number  `json:"count_over"`
	Share page.Number  `json:"share"`
}

type jsonDrop struct {
	At    page.Number `json:"at"`
	Share page.Number `json:"share"`
	Fall  page.Number `json:"fall"`
}

type jsonBounds struct {
	Low    *page.Number `json:"low"`
	High   *page.Number `json:"high"`
	Nearer *page.Number `json:"nearer,omitempty"`
}

// latenciesDocument is distributions for JSON, all latencies in cycles.
func latenciesDocument(list Latencies, o report.Options) any {
	doc := jsonLatency{Schema: latencyName}
	for i := range list {
		l := &list[i]
		d := jsonDistribution{Label: l.Label, CPU: l.CPU, Drops: []jsonDrop{}, Scatter: page.Number(l.Scatter), Tail: page.Number(l.Tail),
			Measured: jsonBounds{Low: page.Known(l.Low), High: page.Known(l.High)}, Notes: o.Texts(l.Notes)}
		for k, b := range l.Bins {
			d.Bins = append(d.Bins, jsonBin{page.Number(b.Over), page.Known(b.UpTo), page.Number(l.Points[k].Count), page.Number(b.Share)})
		}
		for _, x := range l.Drops {
			d.Drops = append(d.Drops, jsonDrop{page.Number(x.At), page.Number(x.Share), page.Number(x.Fall)})
		}
		if !math.IsNaN(l.First) {
			near := l.Floor
			if l.NearFirst {
				near = l.First
			}
			d.LoadToUse = &jsonBounds{page.Known(l.Floor), page.Known(l.First), page.Known(near)}
		}
		doc.Distributions = append(doc.Distributions, d)
	}
	return doc
}

// writeLatenciesCSV prints a line for each part of a distribution: the loads that took more
// cycles than over, and at most up_to. That is empty for those over all thresholds.
func writeLatenciesCSV(w io.Writer, list Latencies, _ report.Options) error {
	out := csv.NewWriter(w)
	rows := [][]string{{"label", "over", "up_to", "count_over", "share"}}
	for i := range list {
		l := &list[i]
		for k, b := range l.Bins {
			rows = append(rows, []string{l.Label, plainFigure(b.Over), plainFigure(b.UpTo), plainFigure(l.Points[k].Count), plainFigure(b.Share)})
		}
	}
	return out.WriteAll(rows)
}
