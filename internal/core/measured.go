package core

import (
	"bufio"
	"cmp"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/internal/fault"
)

// measuredMost bounds the functions of a file of measurements.
const measuredMost = 1000

// A measurement is the cycles of an iteration of a function's loop, as another program has
// measured them.
type measurement struct {
	function string
	cycles   float64
}

// readMeasured reads lines with the name of a function and its cycles.
func readMeasured(in io.Reader, name string) ([]measurement, error) {
	var list []measurement
	s := bufio.NewScanner(in)
	for line := 1; s.Scan(); line++ {
		fields := strings.Fields(s.Text())
		if len(fields) == 0 || fields[0][0] == '#' {
			continue
		}
		if len(fields) != 2 {
			return nil, fault.Inputf("%s:%d: not a function and its cycles", name, line)
		}
		cycles, err := strconv.ParseFloat(fields[1], 64)
		if err != nil || !(cycles > 0) || math.IsInf(cycles, 0) {
			return nil, fault.Inputf("%s:%d: %q is not a number of cycles", name, line, fields[1])
		}
		if len(list) == measuredMost {
			return nil, fault.Inputf("%s:%d: more than %d functions", name, line, measuredMost)
		}
		list = append(list, measurement{fields[0], cycles})
	}
	if err := s.Err(); err != nil {
		return nil, fault.Inputf("%s: %w", name, err)
	}
	if len(list) == 0 {
		return nil, fault.Inputf("%s has no measurement", name)
	}
	return list, nil
}

// compare analyses functions with the cycles that were measured of them.
func (r *Request) compare(p *Program) (*Document, error) {
	in, name := r.In, "standard input"
	if r.Measured != "-" {
		f, err := os.Open(r.Measured)
		if err != nil {
			return nil, unopened(r.Measured, err)
		}
		defer f.Close()
		in, name = f, r.Measured
	}
	list, err := readMeasured(in, name)
	if err != nil {
		return nil, err
	}
	d := &Document{Title: p.File}
	for _, m := range list {
		if p.Function != "" && m.function != p.Function {
			continue
		}
		q := *p
		q.Function = m.function
		one, err := q.Analyse()
		if err != nil {
			return nil, err
		}
		if len(one.Pieces) != 1 {
			return nil, fault.Inputf("%s: %s has %d innermost loops: %s chooses one", name, m.function, len(one.Pieces), fault.Name("loop"))
		}
		one.Pieces[0].Explain(&Measured{Cycles: m.cycles, Error: math.NaN(), How: name}, math.NaN(), math.NaN())
		d.Pieces = append(d.Pieces, one.Pieces[0])
	}
	if len(d.Pieces) == 0 {
		return nil, fault.Inputf("%s has no measurement of %s", name, cmp.Or(p.Function, "a function"))
	}
	return d, nil
}
