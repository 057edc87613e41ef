package export

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"
	"strconv"
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

// Collapsed writes collapsed stacks, as Brendan Gregg's flamegraph.pl reads them. A line has a
// stack: the thread and the frames from the outermost on, separated by semicolons, then a space
// and a rounded value. Semicolons in names become colons, as in stackcollapse-perf.pl.
func Collapsed(w io.Writer, p *Profile, typ int) (Omission, error) {
	var left Omission
	c := collapser{out: bufio.NewWriterSize(w, 1<<16)}
	for s := range p.Stacks {
		c.known = min(c.known, s.Same)
		if left.add(s.Values[typ]) {
			c.add(s, s.Values[typ])
		}
	}
	c.flush()
	return left, c.out.Flush()
}

// A collapser writes collapsed stacks. Stacks of the same names that follow each other are
// one line.
type collapser struct {
	out    *bufio.Writer
	thread string
	line   []byte // the names of the stack at hand
	ends   []int  // in the line: of the thread's name, and of each frame's
	known  int    // how many frames of the line the next stack has as well
	sum    float64
	rest   []byte // of a stack, behind what is known
}

// add adds a value of a stack.
func (c *collapser) add(s *Stack, v float64) {
	if len(c.ends) == 0 || s.Thread != c.thread {
		c.flush()
		c.thread, c.line, c.known = s.Thread, append(c.line[:0], strings.ReplaceAll(clean(s.Thread), ";", ":")...), 0
		c.ends = append(c.ends[:0], len(c.line))
	}
	c.rest = c.rest[:0]
	begin := c.ends[c.known]
	ends := c.ends[:c.known+1]
	for _, f := range s.Frames[c.known:] {
		if begin+len(c.rest) > 0 {
			c.rest = append(c.rest, ';')
		}
		c.rest = append(c.rest, f.collapsed()...)
		ends = append(ends, begin+len(c.rest))
	}
	if !bytes.Equal(c.rest, c.line[begin:]) {
		c.flush()
		c.line = append(c.line[:begin], c.rest...)
	}
	c.ends, c.known = ends, len(s.Frames)
	c.sum += v
}

// flush writes the line with its sum.
func (c *collapser) flush() {
	if v := math.Round(c.sum); v > 0 {
		c.out.Write(c.line) // the error stays, and Flush returns it
		c.out.WriteByte(' ')
		c.out.Write(strconv.AppendFloat(c.out.AvailableBuffer(), v, 'f', 0, 64))
		c.out.WriteByte('\n')
	}
	c.sum = 0
}

// collapsed is a frame's name without semicolons.
func (f *Frame) collapsed() string {
	if f.line == "" {
		f.line = strings.ReplaceAll(f.label(), ";", ":")
	}
	return f.line
}
