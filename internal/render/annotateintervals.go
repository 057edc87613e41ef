package render

import (
	"io"
	"math"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/annotate"
	"github.com/cyclestack/cyclestack/internal/page"
)

// A CodeInterval is a function's code in a part of the time.
type CodeInterval struct {
	Start, Duration float64
	Code            *annotate.Code
}

// The code of a function by interval, for pages: what can be added up. Parts are told by their
// index in the document of the whole recording.
type (
	jsonByInterval struct {
		Schema   string             `json:"schema"`
		Function string             `json:"function"`
		Module   string             `json:"module"`
		Nodes    []string           `json:"nodes"` // those whose amounts add up
		Events   []string           `json:"events"`
		List     []jsonCodeInterval `json:"intervals"`
	}
	jsonCodeInterval struct {
		Start    float64     `json:"start_s"`
		Duration float64     `json:"duration_s"`
		Base     page.Number `json:"base"` // see summer
		Function jsonSum     `json:"function"`
		Lines    []jsonSum   `json:"lines"`
		Insts    []jsonSum   `json:"instructions"`
		Loops    []jsonSum   `json:"loops"`
	}
	jsonSum struct {
		At      int             `json:"i"`
		Samples int64           `json:"n"`           // of the clock
		Error   page.Number     `json:"e"`           // of the clock's count
		Counts  [][3]float64    `json:"c"`           // index of the event, count, samples
		Nodes   [][]any         `json:"f,omitempty"` // index of the node, amount, its error, samples, verdict
		Loop    *[4]page.Number `json:"l,omitempty"` // iterations, their samples, entries, their samples
	}
)

// A sourceLine names a line of the code.
type sourceLine struct {
	file string
	line int
}

// ByInterval writes the code of intervals as JSON.
func (d *Annotation) ByInterval(w io.Writer) error {
	c := d.Code
	out := jsonByInterval{Schema: "cyclestack.annotation_intervals/v1", Function: c.Function, Module: c.Module, Nodes: []string{}, Events: []string{}, List: []jsonCodeInterval{}}
	shown := map[int]int{} // index of a node's name
	for _, node := range d.additive() {
		shown[node] = len(out.Nodes)
		out.Nodes = append(out.Nodes, c.Account.Model().Nodes[node].Path)
	}
	for i := range c.Table.Columns {
		out.Events = append(out.Events, c.Table.Columns[i].Event)
	}
	lines, insts := map[sourceLine]int{}, map[uint64]int{}
	for i := range c.Lines {
		lines[sourceLine{c.Lines[i].File, c.Lines[i].Line}] = i
	}
	for i := range c.Insts {
		insts[c.Insts[i].Addr] = i
	}
	for k := range d.Intervals {
		in := &d.Intervals[k]
		s := newSummer(in.Code, shown)
		j := jsonCodeInterval{Start: in.Start, Duration: in.Duration, Base: page.Number(s.base), Function: s.sum(0, &in.Code.Whole), Lines: []jsonSum{}, Insts: []jsonSum{}, Loops: []jsonSum{}}
		for i := range in.Code.Lines {
			if l := &in.Code.Lines[i]; l.Row > 0 {
				j.Lines = append(j.Lines, s.sum(lines[sourceLine{l.File, l.Line}], &l.Part))
			}
		}
		for i := range in.Code.Parts {
			if in.Code.Parts[i].Row > 0 {
				j.Insts = append(j.Insts, s.sum(insts[in.Code.Insts[i].Addr], &in.Code.Parts[i]))
			}
		}
		for i := range in.Code.Loops {
			if l := &in.Code.Loops[i]; l.Row > 0 {
				sum := s.sum(i, &l.Part)
				if it, en := l.Executed.Iterations, l.Executed.Entries; in.Code.Executions != "" {
					sum.Loop = &[4]page.Number{page.Number(it.Value), page.Number(it.Samples), page.Number(en.Value), page.Number(en.Samples)}
				}
				j.Loops = append(j.Loops, sum)
			}
		}
		out.List = append(out.List, j)
	}
	return page.JSON(w, out)
}

// additive are the nodes whose amounts in the intervals add up to that of the whole: in the
// function, and in each line. Ratios of events do not.
func (d *Annotation) additive() (nodes []int) {
	c := d.Code
	if c.Account == nil {
		return nil
	}
	m := c.Account.Model()
	all := newSummer(c, nil)
	var sums []summer
	var lines []map[sourceLine]*annotate.Part
	for k := range d.Intervals {
		in := d.Intervals[k].Code
		sums = append(sums, newSummer(in, nil))
		at := map[sourceLine]*annotate.Part{}
		for i := range in.Lines {
			at[sourceLine{in.Lines[i].File, in.Lines[i].Line}] = &in.Lines[i].Part
		}
		lines = append(lines, at)
	}
	adds := func(node int, whole *annotate.Part, part func(k int) *annotate.Part) bool {
		want, sum := all.amount(whole, node), 0.0
		for k := range sums {
			p := part(k)
			if p == nil {
				continue
			}
			if amount := sums[k].amount(p, node); !math.IsNaN(amount) { // an interval may have none of its events
				sum += amount
			}
		}
		return math.IsNaN(want) || math.Abs(sum-want) <= 1e-9*all.base
	}
	for i := range m.Nodes {
		if unit := page.Unit(m, i); !m.Share(i) || unit != "cycles" && unit != "slots" {
			continue
		}
		ok := adds(i, &c.Whole, func(k int) *annotate.Part { return &d.Intervals[k].Code.Whole })
		for n := range c.Lines {
			l := &c.Lines[n]
			ok = ok && adds(i, &l.Part, func(k int) *annotate.Part { return lines[k][sourceLine{l.File, l.Line}] })
		}
		if ok {
			nodes = append(nodes, i)
		}
	}
	return nodes
}

// A summer makes the sums of an interval.
type summer struct {
	c     *annotate.Code
	shown map[int]int
	clock float64 // of the function
	base  float64 // the function's whole: what its shares of nodes are of
}

func newSummer(c *annotate.Code, shown map[int]int) summer {
	s := summer{c: c, shown: shown, clock: c.Table.Cell(c.Whole.Row, c.Clock).Value}
	s.base = s.clock
	if c.Account != nil {
		for node := range c.Whole.Figures {
			if f := &c.Whole.Figures[node]; c.Account.Model().Share(node) && f.Amount > 0 && f.Value > 0 {
				s.base = f.Amount / f.Value
				break
			}
		}
	}
	return s
}

// amount is the amount of a node at a part; NaN if it is not known.
func (s *summer) amount(p *annotate.Part, node int) float64 {
	if p.Figures == nil {
		return math.NaN()
	}
	if f := &p.Figures[node]; math.IsNaN(f.Amount) {
		return f.Value * s.base
	}
	return p.Figures[node].Amount
}

func (s *summer) sum(at int, p *annotate.Part) jsonSum {
	out := jsonSum{At: at, Samples: p.Samples, Error: page.Number(p.Error * s.clock), Counts: [][3]float64{}}
	for col, c := range s.c.Table.Row(p.Row) {
		if c.State == counts.Counted && (c.Samples > 0 || c.Value != 0) {
			out.Counts = append(out.Counts, [3]float64{float64(col), c.Value, float64(c.Samples)})
		}
	}
	for node := range p.Figures {
		f, amount := &p.Figures[node], s.amount(p, node)
		at, ok := s.shown[node]
		if !ok || math.IsNaN(amount) {
			continue
		}
		row := []any{at, page.Number(amount), page.Number(f.Error * s.base), f.Samples}
		for k := range p.Hidden {
			if s.c.Costs[k].Node == node && p.Hidden[k] != annotate.None {
				row = append(row, p.Hidden[k].String())
			}
		}
		out.Nodes = append(out.Nodes, row)
	}
	return out
}
