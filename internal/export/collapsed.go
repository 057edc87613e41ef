package export

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// An Omission is what a format could not show of a profile: pictures and counts have no
// place for values that are negative or not known.
type Omission struct {
	Negative int     // stacks with values below zero
	Sum      float64 // the sum of these
	Unknown  int     // stacks whose values are not known
}

// add takes a value, and reports whether it is to be written.
func (o *Omission) add(v float64) bool {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		o.Unknown++
		return false
	case v < 0:
		o.Negative++
		o.Sum += v
	}
	return v > 0
}

// Notes says what was left out.
func (o *Omission) Notes() []string {
	var out []string
	if o.Negative > 0 {
		out = append(out, fmt.Sprintf("%d stacks with values below zero are left out, %.4g together", o.Negative, o.Sum))
	}
	if o.Unknown > 0 {
		out = append(out, fmt.Sprintf("%d stacks whose values are not known are left out", o.Unknown))
	}
	return out
}

// Collapsed writes collapsed stacks, as Brendan Gregg's flamegraph.pl reads them. A line
// has a stack: the thread and the frames from the outermost on, separated by semicolons,
// then a space and the value of one type, rounded. Semicolons in names become colons, as in
// stackcollapse-perf.pl.
func Collapsed(w io.Writer, p *Profile, typ int) (Omission, error) {
	var left Omission
	sums := map[string]float64{}
	var line []byte
	for s := range p.Stacks {
		if !left.add(s.Values[typ]) {
			continue
		}
		line = line[:0]
		for i, name := range s.names() {
			if i > 0 {
				line = append(line, ';')
			}
			line = append(line, strings.ReplaceAll(name, ";", ":")...)
		}
		sums[string(line)] += s.Values[typ]
	}
	lines := make([]string, 0, len(sums))
	for l := range sums {
		lines = append(lines, l)
	}
	slices.Sort(lines)
	out := bufio.NewWriter(w)
	for _, l := range lines {
		if v := math.Round(sums[l]); v > 0 {
			fmt.Fprintf(out, "%s %.0f\n", l, v)
		}
	}
	return left, out.Flush()
}
