package export

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"
	"strconv"
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
	out := bufio.NewWriterSize(w, 1<<16)
	var line, last []byte
	sum := 0.0
	flush := func() {
		if v := math.Round(sum); v > 0 {
			out.Write(last) // the error stays, and Flush returns it
			out.WriteByte(' ')
			out.Write(strconv.AppendFloat(out.AvailableBuffer(), v, 'f', 0, 64))
			out.WriteByte('\n')
		}
	}
	thread, threadName := "", []byte(nil)
	for s := range p.Stacks {
		if !left.add(s.Values[typ]) {
			continue
		}
		if s.Thread != thread {
			thread, threadName = s.Thread, append(threadName[:0], clean(s.Thread)...)
			colons(threadName)
		}
		line = append(line[:0], threadName...)
		for _, f := range s.Frames {
			if len(line) > 0 {
				line = append(line, ';')
			}
			begin := len(line)
			line = append(line, f.label()...)
			colons(line[begin:])
		}
		if !bytes.Equal(line, last) {
			flush()
			last, line, sum = line, last, 0
		}
		sum += s.Values[typ]
	}
	flush()
	return left, out.Flush()
}

// colons replaces semicolons.
func colons(name []byte) {
	for i := bytes.IndexByte(name, ';'); i >= 0; i = bytes.IndexByte(name, ';') {
		name[i] = ':'
	}
}
