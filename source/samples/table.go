package samples

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// unknown stands for what has no name.
const unknown = "[unknown]"

// label names a place: what is asked for, and in brackets what it is in.
func label(by counts.Kind, c *counts.Code) string {
	module := c.Module
	if module == "" {
		module = unknown
	}
	function := c.Function
	if function == "" {
		function = unknown
	}
	line := fmt.Sprintf("%s:%d", path.Base(c.File), c.Line)
	switch {
	case by == counts.Module:
		return module
	case by == counts.Instruction && c.Line > 0:
		return fmt.Sprintf("%#x  %s  %s  (%s)", c.Addr, function, line, module)
	case by == counts.Instruction && c.Addr > 0:
		return fmt.Sprintf("%#x  %s  (%s)", c.Addr, function, module)
	case by == counts.Line && c.Line > 0:
		return fmt.Sprintf("%s  (%s)", line, module)
	}
	return fmt.Sprintf("%s  (%s)", function, module)
}

// fill makes the table.
func (r *Reader) fill() {
	l := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("")}}
	for _, e := range r.columns {
		l.Columns = append(l.Columns, e.Column())
	}
	r.total = make([]perfdata.Sum, len(r.columns))
	for i := range r.places.keys {
		l.Scopes = append(l.Scopes, r.places.scope(i))
		for col := range r.columns {
			r.total[col].Merge(&r.places.sums[i*len(r.columns)+col])
		}
	}
	t := &r.table
	t.Reset(l)
	t.Label, t.CPU = r.in.Features().Command(), r.in.Features().CPUIDString()
	t.Start, t.Duration = 0, math.NaN()
	if r.last > r.first {
		t.Duration = float64(r.last-r.first) / 1e9
	}
	for col, e := range r.columns {
		if !r.meter.Known(e) {
			continue // all cells stay absent
		}
		c := r.total[col].Cell(e)
		one := 0.0
		if c.Samples > 0 {
			one = c.Variance / float64(c.Samples)
		}
		c.Variance = 0
		*t.Cell(0, col) = c
		for i := range r.places.keys {
			c := r.places.sums[i*len(r.columns)+col].Cell(e)
			if c.Samples == 0 {
				c.Variance = one
			}
			*t.Cell(1+i, col) = c
		}
	}
	t.Notes = r.notes()
}

// notes says what the table is short of.
func (r *Reader) notes() []string {
	out := append(r.meter.Notes(), r.in.Losses()...)
	if r.left > 0 {
		out = append(out, fmt.Sprintf("%d samples were not counted: their events came too late, or there are too many of them", r.left))
	}
	if n := r.order.spaces.Late; n > 0 {
		out = append(out, fmt.Sprintf("%d mappings and names came too late in the file: samples around them may be at wrong places", n))
	}
	if r.places.others >= 0 {
		out = append(out, "there are too many places: the others are together")
	}
	if r.opts.By == counts.Line || r.opts.By == counts.Instruction {
		out = append(out, r.skid()...)
	}
	return append(out, r.nameless()...)
}

// skid says which events' samples do not name the instruction that caused them.
func (r *Reader) skid() []string {
	var events []string
	for col, e := range r.columns {
		if n := r.total[col].Samples(); n > 0 && r.exact[col] < n {
			events = append(events, e.Name)
		}
	}
	if len(events) == 0 {
		return nil
	}
	return []string{strings.Join(events, ", ") + ": not sampled precisely: what belongs to a line or an instruction may stand at the ones that follow it"}
}

// namelessLeast is the share of the samples from which on a module without names
// is worth a note.
const namelessLeast = 0.01

// nameless says of which modules nothing but addresses is known, and why: those
// with the most samples.
func (r *Reader) nameless() []string {
	if r.opts.By == counts.Module {
		return nil
	}
	type module struct {
		file    *profile.File
		samples int64
	}
	all := int64(0)
	var list []module
	at := map[*profile.File]int{}
	for i, k := range r.places.keys {
		n := int64(0)
		for col := range r.columns {
			n += r.places.sums[i*len(r.columns)+col].Samples()
		}
		all += n
		file := k.place.File
		if file == nil {
			continue
		}
		j, ok := at[file]
		if !ok {
			j = len(list)
			at[file] = j
			list = append(list, module{file: file})
		}
		list[j].samples += n
	}
	slices.SortStableFunc(list, func(a, b module) int { return int(b.samples - a.samples) })
	var out []string
	for _, m := range list {
		if float64(m.samples) < namelessLeast*float64(all) {
			break
		}
		if err := r.symbols.Status(m.file).Err; err != nil {
			text := fmt.Sprintf("no names for %s: %s", m.file.Base(), strings.ReplaceAll(err.Error(), "\n", "; "))
			if m.file.BuildID != "" {
				text += " (build id " + m.file.BuildID + ")"
			}
			out = append(out, text)
		}
	}
	return out
}
