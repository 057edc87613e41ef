package recorded

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/cpulist"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/source/samples"
	"github.com/cyclestack/cyclestack/internal/spelling"
)

// A Condition is one condition of a filter, as the user wrote it.
type Condition struct {
	Kind  counts.Kind
	Flag  string   // as the user spells it
	Texts []string // lists of names or addresses; for CPU a list of CPUs, for Interval FROM,TO
}

func (c *Condition) text() string { return strings.Join(c.Texts, ",") }

// A Filter says which samples count.
type Filter struct {
	samples.Filter
	conditions []Condition
}

// NewFilter reads conditions. A sample must meet all of them.
func NewFilter(conditions ...Condition) (Filter, error) {
	f := Filter{conditions: conditions}
	for _, c := range conditions {
		for _, text := range c.Texts {
			if err := f.add(c.Kind, text); err != nil {
				return f, fault.Usagef("%s %w", c.Flag, err)
			}
		}
	}
	return f, nil
}

// Words are the conditions as a command line has them.
func (f *Filter) Words() []string {
	var list []string
	for _, c := range f.conditions {
		list = append(list, c.Flag, c.text())
	}
	return list
}

// used reports whether there is a condition.
func (f *Filter) used() bool { return len(f.conditions) > 0 }

// onlyCode reports whether all conditions are about places in the code.
func (f *Filter) onlyCode() bool {
	return !slices.ContainsFunc(f.conditions, func(c Condition) bool { return !slices.Contains(samples.Kinds, c.Kind) })
}

// add adds the condition of a kind. The error begins with what is wrong of the text.
func (f *Filter) add(kind counts.Kind, text string) (err error) {
	switch kind {
	case counts.CPU:
		if f.CPUs, err = cpulist.Parse(text); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
		return nil
	case counts.Interval:
		f.Time, err = window(text)
		return err
	}
	names := splitNames(text)
	if slices.Contains(names, "") {
		return fmt.Errorf("%q: a name is empty", text)
	}
	to := map[counts.Kind]*[]string{counts.Process: &f.Processes, counts.Thread: &f.Threads, counts.Cgroup: &f.Cgroups,
		counts.Module: &f.Modules, counts.Function: &f.Functions, counts.Line: &f.Lines}
	if list := to[kind]; list != nil {
		*list = append(*list, names...)
		return nil
	}
	for _, address := range names {
		r, err := addressRange(address)
		if err != nil {
			return err
		}
		f.Addresses = append(f.Addresses, r)
	}
	return nil
}

// splitNames divides a list at its commas, but for those in brackets, as the names of
// C++ functions have them.
func splitNames(text string) []string {
	var names []string
	depth, from := 0, 0
	for i, r := range text {
		switch r {
		case '(', '<', '[':
			depth++
		case ')', '>', ']':
			depth--
		case ',':
			if depth <= 0 {
				names = append(names, strings.TrimSpace(text[from:i]))
				from = i + 1
			}
		}
	}
	return append(names, strings.TrimSpace(text[from:]))
}

// addressRange reads ADDR or ADDR-ADDR.
func addressRange(text string) (samples.Range, error) {
	first, last, isRange := strings.Cut(strings.TrimSpace(text), "-")
	if !isRange {
		last = first
	}
	from, err := strconv.ParseUint(first, 0, 64)
	to, err2 := strconv.ParseUint(last, 0, 64)
	if errors.Join(err, err2) != nil || to < from {
		return samples.Range{}, fmt.Errorf("%s: it is an address such as 0x1234, or two with - between them", text)
	}
	return samples.Range{From: from, To: to}, nil
}

// window reads FROM,TO.
func window(text string) (*samples.Window, error) {
	bad := fmt.Errorf("%s: it is FROM,TO in seconds; either may be empty", text)
	first, last, ok := strings.Cut(text, ",")
	if !ok {
		return nil, bad
	}
	w := &samples.Window{To: math.Inf(1)}
	for _, t := range []struct {
		text string
		to   *float64
	}{{first, &w.From}, {last, &w.To}} {
		if t.text = strings.TrimSpace(t.text); t.text == "" {
			continue
		}
		v, err := strconv.ParseFloat(t.text, 64)
		if err != nil || v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, bad
		}
		*t.to = v
	}
	if w.To < w.From || first == "" && last == "" {
		return nil, bad
	}
	return w, nil
}

// namesInMessage bounds the names that an error suggests.
const namesInMessage = 4

// nearest suggests the names that are spelt most like one that was not found.
func nearest(text string, names []string) string {
	near := spelling.Near(strings.Trim(text, "*?"), names, namesInMessage)
	if len(near) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(near, ", ") + "?"
}

// Explain completes the error of a filter that left nothing: it names what the condition
// could have been. Other errors are returned as they are.
func (f *Filter) Explain(err error) error {
	var e *samples.NoMatchError
	if !errors.As(err, &e) {
		return err
	}
	if e.Last {
		return fault.Inputf("%w: each has samples, but no sample has all", e)
	}
	var failed Condition
	for _, c := range f.conditions {
		if c.Kind == e.Kind {
			failed = c
		}
	}
	text := fmt.Sprintf("%s: %s %s: no sample matches", e.File, failed.Flag, failed.text())
	near := nearest(failed.text(), e.Names)
	switch {
	case near != "" && e.Kind != counts.CPU && e.Kind != counts.Interval:
		text += near
	case len(e.Names) > 0:
		text += "; there are " + strings.Join(e.Names[:min(len(e.Names), namesInMessage)], ", ")
		if len(e.Names) > namesInMessage {
			text += ", …"
		}
	}
	return fault.Inputf("%s", text)
}
