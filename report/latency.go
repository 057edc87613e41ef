package report

import (
	_ "embed"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/latency"
)

// latencyHang is the indentation of what is said below the table.
const latencyHang = 12

// A LatencyReport is one distribution with where it comes from.
type LatencyReport struct {
	Label string
	CPU   string // "" where it does not matter
	Notes []counts.Note
	*latency.Distribution
}

// Latency prints distributions of load latencies.
func Latency(w io.Writer, list []LatencyReport, o Options) error {
	t := listing(w, o)
	for i := range list {
		if i > 0 {
			t.out.WriteByte('\n')
		}
		t.latency(&list[i])
	}
	return t.flush()
}

func (t *tree) latency(l *LatencyReport) {
	head := "load latency"
	if l.Label != "" {
		head = l.Label + ", " + head
	}
	if l.CPU != "" {
		head += " on " + l.CPU
	}
	t.paragraph("", head, 0, bold)
	t.out.WriteByte('\n')
	drop := map[float64]int{}
	for i, d := range l.Drops {
		drop[d.At] = i + 1
	}
	var lines []line
	for i, b := range l.Bins {
		x := line{name: binName(b), value: percentOne(b.Share), bar: bar(b.Share, 1)}
		if i+1 < len(l.Points) {
			if n := drop[l.Points[i+1].Threshold]; n > 0 {
				x.mark = fmt.Sprintf("drop %d, at threshold %s", n, trim(l.Points[i+1].Threshold))
			}
		}
		lines = append(lines, x)
	}
	t.table("cycles", lines)
	t.out.WriteByte('\n')
	t.means(l)
	for _, n := range t.o.notes(l.Notes) {
		t.paragraph("note", n, latencyHang, plain)
	}
}

func percentOne(share float64) string { return fmt.Sprintf("%.1f %%", share*100) }

func binName(b latency.Bin) string {
	switch {
	case math.IsInf(b.UpTo, 1):
		return "over " + trim(b.Over)
	case b.UpTo == b.Over+1:
		return trim(b.UpTo)
	}
	return trim(b.Over+1) + " to " + trim(b.UpTo)
}

// means says what the distribution bounds.
func (t *tree) means(l *LatencyReport) {
	if !math.IsNaN(l.First) {
		near := trim(l.First)
		if !l.NearFirst {
			near = trim(l.Floor)
		}
		t.paragraph("mean", fmt.Sprintf("between %s and %s cycles from load to use, nearer %s: no load takes less than %s, and the first large group of loads ends at the first drop",
			trim(l.Floor), trim(l.First), near, trim(l.Floor)), latencyHang, plain)
	} else {
		t.paragraph("mean", "no drop: the loads are spread evenly over the thresholds, or are all slower than the last", latencyHang, plain)
	}
	switch {
	case math.IsNaN(l.High):
		t.paragraph("measured", fmt.Sprintf("at least %s cycles on average: all loads are slower than the last threshold", trim(l.Low)), latencyHang, plain)
	case l.High-l.Low < 0.05:
		t.paragraph("measured", fmt.Sprintf("%.2f cycles on average%s", l.High, tail(l)), latencyHang, plain)
	default:
		t.paragraph("measured", fmt.Sprintf("between %.2f and %.2f cycles on average%s", l.Low, l.High, tail(l)), latencyHang, plain)
	}
	t.paragraph("", "from the first dispatch to the write-back, both cycles and all replays included: more than what a waiting instruction sees", latencyHang, plain)
	if l.Scatter >= 0.01 {
		t.paragraph("scatter", fmt.Sprintf("counts rise by up to %s with the threshold, which counts of one sample cannot: they are from separate runs, and were evened out", percent(l.Scatter)), latencyHang, plain)
	}
}

func tail(l *LatencyReport) string {
	if l.Tail == 0 {
		return ""
	}
	return fmt.Sprintf(", without the %.2g %% of the loads over the last threshold", l.Tail*100)
}

// LatencySchema is the JSON Schema of the documents that LatencyJSON and
// SampledLatenciesJSON write.
//
//go:embed schema/latency.v1.json
var LatencySchema []byte

// latencySchema names the JSON of latencies: of distributions from counts at thresholds,
// and of sampled loads.
const latencySchema = "cyclestack.latency/v1"

type jsonLatency struct {
	Schema        string             `json:"schema"`
	Distributions []jsonDistribution `json:"distributions"`
}

type jsonDistribution struct {
	Label     string      `json:"label,omitempty"`
	CPU       string      `json:"cpu,omitempty"`
	Bins      []jsonBin   `json:"bins"`
	Drops     []jsonDrop  `json:"drops"`
	Scatter   number      `json:"scatter"`
	Measured  jsonBounds  `json:"measured_mean"`
	LoadToUse *jsonBounds `json:"load_to_use_mean,omitempty"`
	Tail      number      `json:"tail"`
	Notes     []string    `json:"notes,omitempty"`
}

type jsonBin struct {
	Over  number  `json:"over"`
	UpTo  *number `json:"up_to"`
	Count number  `json:"count_over"`
	Share number  `json:"share"`
}

type jsonDrop struct {
	At    number `json:"at"`
	Share number `json:"share"`
	Fall  number `json:"fall"`
}

type jsonBounds struct {
	Low    *number `json:"low"`
	High   *number `json:"high"`
	Nearer *number `json:"nearer,omitempty"`
}

// LatencyJSON prints distributions as one JSON document, all latencies in
// cycles.
func LatencyJSON(w io.Writer, list []LatencyReport, o Options) error {
	doc := jsonLatency{Schema: latencySchema}
	for i := range list {
		l := &list[i]
		d := jsonDistribution{Label: l.Label, CPU: l.CPU, Drops: []jsonDrop{}, Scatter: number(l.Scatter), Tail: number(l.Tail),
			Measured: jsonBounds{Low: known(l.Low), High: known(l.High)}, Notes: o.notes(l.Notes)}
		for k, b := range l.Bins {
			d.Bins = append(d.Bins, jsonBin{number(b.Over), known(b.UpTo), number(l.Points[k].Count), number(b.Share)})
		}
		for _, x := range l.Drops {
			d.Drops = append(d.Drops, jsonDrop{number(x.At), number(x.Share), number(x.Fall)})
		}
		if !math.IsNaN(l.First) {
			near := l.Floor
			if l.NearFirst {
				near = l.First
			}
			d.LoadToUse = &jsonBounds{known(l.Floor), known(l.First), known(near)}
		}
		doc.Distributions = append(doc.Distributions, d)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(doc)
}

// LatencyCSV prints a line for each part of a distribution: the loads that took more
// cycles than over, and no more than up_to, which is empty for those over all thresholds.
func LatencyCSV(w io.Writer, list []LatencyReport) error {
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
