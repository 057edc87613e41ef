package recorded

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/accounting"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/object"
	"github.com/cyclestack/cyclestack/report"
)

// A placeDiff is a comparison by places in the code.
type placeDiff struct {
	header report.DiffHeader
	top    int
	*account.PlaceDifference
}

func (d placeDiff) Document() any {
	return report.PlaceComparison{Header: d.header, PlaceDifference: d.PlaceDifference, Top: d.top}
}

// diffPlaces compares by places in the code.
func (r *Recordings) diffPlaces(sides [2]Side, o DiffOptions) (Difference, error) {
	p := &placeRuns{by: o.By, sources: map[string]bool{}, placeReport: placeReport{Recordings: r, o: &PlaceOptions{Symbols: o.Symbols, Split: SplitBy(o.By)}}}
	for i := range sides {
		p.o.Symbols.Root = o.Roots[i]
		for _, file := range sides[i].Files {
			if err := p.add(i, file); err != nil {
				return nil, err
			}
		}
	}
	unit := o.Work
	if err := unit.choose(p.instructions, sides, true); err != nil {
		return nil, err
	}
	design := account.Design{Paired: o.Paired, Exact: p.samples == 0}
	if err := checkPairs(design, len(p.runs[0]), len(p.runs[1])); err != nil {
		return nil, err
	}
	for i := range p.runs {
		for k := range p.runs[i] {
			p.runs[i][k] = p.runs[i][k].Per(unit.of(i, p.instructions[i][k]))
		}
	}
	h := r.diffHeader(p.method, p.kind, sides, unit, o)
	h.What, h.Commands = p.resource, p.commands
	h.Notes = append(changedBetween(sides, p.commands, slices.Sorted(maps.Keys(p.sources))), p.notes.lines(len(h.Files))...)
	return placeDiff{h, o.Top, account.ComparePlaces(p.runs[0], p.runs[1], design)}, nil
}

// placeRuns are the runs of two sides, by places in the code.
type placeRuns struct {
	placeReport
	by           counts.Kind
	runs         [2][]account.PlaceReading
	instructions [2][]float64
	commands     [2]string       // of the first runs that have one
	sources      map[string]bool // of lines
	resource     string          // that is compared: "cycles", "time" or an event
	first        string          // the first recording
	cpu          string          // of the first recording
	samples      int64
	notes        noteList
}

// add reads a recording, which is one run.
func (p *placeRuns) add(side int, file string) error {
	p.file = file
	t, err := p.placesOf(file)
	if err != nil {
		return err
	}
	if len(t.Scopes) < 2 || t.Scopes[1].Kind != p.by {
		return fault.Inputf("%s: it has no counts by %s", file, p.by)
	}
	if p.method == nil {
		p.first, p.cpu = file, t.CPU
		if err := p.resolve(t); err != nil {
			return err
		}
	} else if t.CPU != "" && p.Choice.CPU == "" && !p.sameCPU(t.CPU, p.cpu) {
		return fault.Inputf("%s: from %s, but %s is from %s: compare one processor at a time, or say which with %s", file, t.CPU, p.first, p.cpu, fault.Name("cpu"))
	}
	t = p.withWhole(t)
	col := accounting.Clock(p.method, t)
	switch resource := accounting.ClockName(p.method, t, col); {
	case p.resource == "":
		p.resource = resource
	case p.resource != resource:
		return fault.Inputf("%s: it has %s, and %s has %s: runs are compared by the same", file, resource, p.first, p.resource)
	}
	return p.keep(side, t, col)
}

// placesOf reads a recording, or accounts of places that were kept.
func (p *placeRuns) placesOf(name string) (*counts.Table, error) {
	rec, err := p.recording(name)
	if err != nil {
		return nil, err
	}
	defer rec.Close()
	if !rec.Kept() {
		return p.table(name)
	}
	in := rec.Tables(0)
	if !in.Next() {
		return nil, fault.As(fault.Input, in.Err())
	}
	p.kind = accounting.KindOf(in)
	return in.Table(), nil
}

// keep keeps what a table has of its places.
func (p *placeRuns) keep(side int, t *counts.Table, col int) error {
	cell := t.Cell(0, col)
	run := account.PlaceReading{Total: cell.Estimate(), Program: program(t.Label)}
	if !(run.Total > 0) {
		return fault.Inputf("%s: it has no %s", p.file, p.resource)
	}
	p.commands[side] = cmp.Or(p.commands[side], ownOutput().ReplaceAllString(t.Label, ""))
	p.instructions[side] = append(p.instructions[side], p.method.Evaluate(t, account.Place{}).Instructions())
	if p.samples += cell.Samples; cell.Samples == 0 {
		run.Variance = cell.Variance
	}
	for row := 1; row < len(t.Scopes); row++ {
		c := t.Cell(row, col)
		if c.Ok() && c.Value > 0 {
			if code := t.Scopes[row].Code; p.by == counts.Line && code != nil && code.File != "" {
				p.sources[code.File] = true
			}
			run.Add(p.nameOf(&t.Scopes[row]), account.Amount{Value: c.Estimate(), Variance: c.Variance, Samples: c.Samples})
		}
	}
	p.runs[side] = append(p.runs[side], run)
	p.notes.add(p.file, t.Notes)
	return nil
}

// nameOf names a place such that it is found again in another build.
func (p *placeRuns) nameOf(s *counts.Scope) account.PlaceName {
	c := s.Code
	if c == nil || *c == (counts.Code{}) {
		return account.PlaceName{Name: printable(s.Label)}
	}
	at := account.PlaceName{Module: printable(object.BaseModule(c.Module))}
	switch {
	case p.by == counts.Module:
	case p.by == counts.Line && c.Line > 0:
		at.Name = printable(fmt.Sprintf("%s:%d", path.Base(c.File), c.Line))
	case c.Function != "":
		at.Name = printable(object.BaseName(c.Function))
	default:
		at.Name = "[unknown]"
	}
	return at
}

// printable returns a name without control characters, which a hostile file may have.
func printable(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0:
			return '?'
		}
		return r
	}, name)
}

// program is the module of the program of a command line.
func program(command string) string {
	first, _, _ := strings.Cut(command, " ")
	if first == "" {
		return ""
	}
	return object.BaseModule(first)
}

// Changes finds the changes of places with a name, or of all.
func (d placeDiff) Changes(kind, name string) ([]Change, error) {
	switch {
	case kind == "" && (name == d.header.What || name == account.Cycles.String()):
		return []Change{{d.header.What, &d.Total}}, nil
	case kind == "":
		return nil, limitError(fault.Usage, name, "differences are by %s: %s:%s, or %s", d.header.By, d.header.By, name, d.header.What)
	case kind != d.header.By.String():
		return nil, limitError(fault.Usage, kind+":"+name, "differences are by %s", d.header.By)
	}
	var list []Change
	for i := range d.Places {
		c := &d.Places[i]
		own := c.Name
		if own == "" {
			own = c.Module
		}
		if matches(name, own) {
			list = append(list, Change{own, &c.Change})
		}
	}
	if len(list) == 0 {
		return nil, limitError(fault.Input, kind+":"+name, "neither side has a %s of this name", kind)
	}
	return list, nil
}

// matches reports whether a name matches a pattern; * stands for any letters. The name
// of a function may end in its parameters.
func matches(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	ok, err := regexp.MatchString(`^(?:`+strings.Join(parts, ".*")+`)(?:\(.*)?$`, name)
	return err == nil && ok
}
