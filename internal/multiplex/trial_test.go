package multiplex

import (
	"fmt"
	"math"
	"strings"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
)

// A Result is how the stated errors of a node did in many runs.
type Result struct {
	Node     string
	Together bool // its events are of one group
	Runs     int
	None     int     // runs without an error
	Finer    int     // runs whose account recommends shorter intervals
	Covered  float64 // share of the runs with an error whose interval holds the truth
	Width    float64 // of the interval, against the ideal
	Ideal    float64 // counts.Confidence times the root mean square of the real error
}

// Try counts programs of a kind and returns the results of the first two levels' nodes.
func (c *Counting) Try(k Kind, runs int) ([]Result, error) {
	nodes := c.Method.Model.Nodes
	list := make([]Result, len(nodes))
	for range runs {
		counted, truth, err := c.Run(k)
		if err != nil {
			return nil, err
		}
		for i := range nodes {
			if nodes[i].Section == "" && nodes[i].Level <= 2 {
				list[i].add(&counted.Nodes[i], truth.Nodes[i].Value)
				if counted.Finer > 0 {
					list[i].Finer++
				}
			}
		}
	}
	var out []Result
	for i := range list {
		r := &list[i]
		if r.Runs == 0 || r.Ideal == 0 {
			continue
		}
		n := float64(r.Runs - r.None)
		r.Node, r.Ideal = nodes[i].Name, counts.Confidence*math.Sqrt(r.Ideal/float64(r.Runs))
		r.Covered, r.Width = r.Covered/n, r.Width/n/r.Ideal
		out = append(out, *r)
	}
	return out, nil
}

// add adds a run: until the end Covered, Width and Ideal are sums.
func (r *Result) add(v *account.Value, truth float64) {
	if !v.Known() || math.IsNaN(truth) {
		return
	}
	r.Runs++
	r.Together = v.Together
	off := v.Value - truth
	r.Ideal += off * off
	if math.IsNaN(v.Error) {
		r.None++
		return
	}
	r.Width += v.Error
	if math.Abs(off) <= v.Error {
		r.Covered++
	}
}

// Mean is the mean of the results of all nodes.
func Mean(list []Result) (covered, width float64) {
	for i := range list {
		covered += list[i].Covered / float64(len(list))
		width += list[i].Width / float64(len(list))
	}
	return covered, width
}

// Recordings are the intervals of the table, in seconds, and how many of each are
// recorded.
var Recordings = []struct {
	Interval  float64
	Intervals int
}{{0.016, 300}, {0.1, 60}, {1, 30}}

// Turns are the lengths of a turn in the table, in seconds: of kernels with 1000 and
// with 250 ticks a second.
var Turns = []float64{0.001, 0.004}

// A Row is a line of the table: the results of one program and turn, by interval.
type Row struct {
	Kind  Kind
	Turn  float64
	Cells [][]Result // parallel to Recordings
}

// Rows tries all kinds of programs with all recordings and some time slices.
func Rows(cpu string, level, runs int, turns []float64) ([]Row, error) {
	var rows []Row
	for _, k := range Kinds {
		for _, turn := range turns {
			row := Row{Kind: k, Turn: turn}
			for _, r := range Recordings {
				c, err := NewCounting(Setting{CPU: cpu, Level: level, Turn: turn, Interval: r.Interval, Intervals: r.Intervals}, 7)
				if err != nil {
					return nil, err
				}
				list, err := c.Try(k, runs)
				if err != nil {
					return nil, err
				}
				row.Cells = append(row.Cells, list)
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// Table lays rows out: coverage and width, as means over the nodes.
func Table(rows []Row) string {
	var b strings.Builder
	b.WriteString("| program | length of a turn |")
	for _, r := range Recordings {
		fmt.Fprintf(&b, " `-I %.0f` |", r.Interval*1000)
	}
	b.WriteString("\n|---|---|---|---|---|\n")
	for _, row := range rows {
		fmt.Fprintf(&b, "| %s | %.0f ms |", row.Kind.Name, row.Turn*1000)
		for _, list := range row.Cells {
			covered, width := Mean(list)
			fmt.Fprintf(&b, " %.0f %%, %.1f |", 100*covered, width)
		}
		b.WriteString("\n")
	}
	return b.String()
}
