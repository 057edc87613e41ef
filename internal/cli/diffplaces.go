package cli

import (
	"fmt"
	"path"
	"strings"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/object"
	"github.com/cyclestack/cyclestack/internal/source/accounts"
	"github.com/cyclestack/cyclestack/report"
	"github.com/cyclestack/cyclestack/source"
)

// A placeDiff is a comparison by places in the code.
type placeDiff struct {
	h   report.DiffHeader
	top int
	*account.PlaceDifference
}

func (d placeDiff) document() any {
	return report.PlaceComparison{Header: d.h, PlaceDifference: d.PlaceDifference, Top: d.top}
}

// diffPlaces compares by places in the code.
func diffPlaces(s *session, f *diffFlags, by counts.Kind, unit work, sides [2]side) (diffed, error) {
	roots := [2]string{f.symbols.Root, f.symbols.Root}
	if old, new, ok := strings.Cut(f.symbols.Root, ":"); ok {
		roots = [2]string{old, new}
	}
	p := &placeRuns{placer: &placer{reporter: newReporter(s, nil, 0), f: &placeFlags{symbols: f.symbols}, by: division{kinds: []counts.Kind{by}, code: by}}, by: by}
	for i := range sides {
		p.f.symbols.Root = roots[i]
		for _, file := range sides[i].files {
			if err := p.add(i, file); err != nil {
				return nil, err
			}
		}
	}
	if err := unit.settle(p.instructions, sides, true); err != nil {
		return nil, err
	}
	design := account.Design{Paired: f.paired, Exact: p.samples == 0}
	if err := checkPairs(design, len(p.runs[0]), len(p.runs[1])); err != nil {
		return nil, err
	}
	for i := range p.runs {
		for k := range p.runs[i] {
			p.runs[i][k] = p.runs[i][k].Per(unit.amount(i, p.instructions[i][k]))
		}
	}
	h := report.DiffHeader{Header: s.header(p.kind, p.files), Old: sides[0].name, New: sides[1].name,
		Per: unit.name, Assumed: unit.assumed, Paired: f.paired, What: p.resource, By: by, Notes: p.notes.lines(len(p.files))}
	return placeDiff{h, f.top, account.ComparePlaces(p.runs[0], p.runs[1], design)}, nil
}

// placeRuns are the runs of two sides, by places in the code.
type placeRuns struct {
	*placer
	by           counts.Kind
	runs         [2][]account.PlaceReading
	instructions [2][]float64
	resource     string // that is compared: "cycles", "time" or an event
	cpu          string // of the first recording
	samples      int64
	notes        remarks
}

// add reads a recording, which is one run.
func (p *placeRuns) add(side int, file string) error {
	p.file = file
	p.files = append(p.files, file)
	r, closeAll, err := p.openPlaces(file)
	if err != nil {
		return inputError(err)
	}
	defer closeAll()
	if !r.Next() {
		return p.unread(r.Err())
	}
	t := r.Table()
	if len(t.Scopes) < 2 || t.Scopes[1].Kind != p.by {
		return inputError(fmt.Errorf("%s: it has no counts by %s", file, p.by))
	}
	p.kind = r.Kind()
	if err := p.settleOnce(t); err != nil {
		return err
	}
	t = p.withWhole(t)
	col := p.clock(t)
	switch resource := p.clockName(t, col); {
	case p.resource == "":
		p.resource = resource
	case p.resource != resource:
		return inputError(fmt.Errorf("%s: it has %s, and %s has %s: runs are compared by the same", file, resource, p.files[0], p.resource))
	}
	return p.take(side, t, col)
}

// openPlaces opens a recording, or accounts of places that were kept.
func (p *placeRuns) openPlaces(file string) (source.Reader, func() error, error) {
	if file != "-" {
		if f, err := source.Open(file); err == nil {
			if _, ok := f.Reader.(*accounts.Reader); ok {
				return f, f.Close, nil
			}
			f.Close()
		}
	}
	return p.open(file)
}

// settleOnce chooses the method by the first recording. The others must be of the
// same processor.
func (p *placeRuns) settleOnce(t *counts.Table) error {
	if p.s.method != nil {
		if t.CPU != "" && p.s.c.cpu == "" && !p.s.sameCPU(t.CPU, p.cpu) {
			return inputError(fmt.Errorf("%s: from %s, but %s is from %s: compare one processor at a time, or say which with --cpu", p.file, t.CPU, p.files[0], p.cpu))
		}
		return nil
	}
	p.cpu = t.CPU
	return p.settle(t)
}

// sameCPU reports whether two recordings name one processor, in whatever way.
func (s *session) sameCPU(one, other string) bool {
	a, errA := s.cat.CPU(one)
	b, errB := s.cat.CPU(other)
	if errA != nil || errB != nil {
		return one == other
	}
	return a.Name == b.Name
}

// take adds what a table has of its places.
func (p *placeRuns) take(side int, t *counts.Table, col int) error {
	cell := t.Cell(0, col)
	run := account.PlaceReading{Total: cell.Estimate(), Program: program(t.Label)}
	if !(run.Total > 0) {
		return inputError(fmt.Errorf("%s: it has no %s", p.file, p.resource))
	}
	p.instructions[side] = append(p.instructions[side], p.s.method.Bind(t.Layout).Evaluate(t, account.Place{}, nil).Instructions())
	p.samples += cell.Samples
	for row := 1; row < len(t.Scopes); row++ {
		c := t.Cell(row, col)
		if c.Ok() && c.Value > 0 {
			run.Add(p.nameOf(&t.Scopes[row]), account.Amount{Value: c.Estimate(), Variance: c.Variance, Samples: c.Samples})
		}
	}
	p.runs[side] = append(p.runs[side], run)
	p.notes.add(p.file, t.Notes)
	return nil
}

// notesMost bounds the notes of a comparison.
const notesMost = 20

// remarks are what recordings are short of, each said once.
type remarks struct {
	notes []counts.Note
	files map[counts.Note][]string // by note: the recordings that have it
}

// add keeps the notes of a recording.
func (r *remarks) add(file string, notes []counts.Note) {
	if r.files == nil {
		r.files = map[counts.Note][]string{}
	}
	for _, n := range notes {
		files := r.files[n]
		switch {
		case files == nil && len(r.notes) >= notesMost:
			continue
		case files == nil:
			r.notes = append(r.notes, n)
		case files[len(files)-1] == file:
			continue
		}
		r.files[n] = append(files, file)
	}
}

// lines are the notes, each with the recordings that have it if not all do, of so many.
func (r *remarks) lines(recordings int) []counts.Note {
	var list []counts.Note
	for _, n := range r.notes {
		if files := r.files[n]; len(files) < recordings {
			n.Text = sideName(files) + ": " + n.Text
		}
		list = append(list, n)
	}
	return list
}

// nameOf names a place such that it is found again in another build.
func (p *placeRuns) nameOf(s *counts.Scope) account.PlaceName {
	at := p.named(s)
	return account.PlaceName{Module: strings.Map(printable, at.Module), Name: strings.Map(printable, at.Name)}
}

func (p *placeRuns) named(s *counts.Scope) account.PlaceName {
	c := s.Code
	if c == nil || *c == (counts.Code{}) {
		return account.PlaceName{Name: s.Label}
	}
	at := account.PlaceName{Module: object.BaseModule(c.Module)}
	switch {
	case p.by == counts.Module:
	case p.by == counts.Line && c.Line > 0:
		at.Name = fmt.Sprintf("%s:%d", path.Base(c.File), c.Line)
	case c.Function != "":
		at.Name = object.BaseName(c.Function)
	default:
		at.Name = "[unknown]"
	}
	return at
}

// program is the module of the program of a command line.
func program(command string) string {
	first, _, _ := strings.Cut(command, " ")
	if first == "" {
		return ""
	}
	return object.BaseModule(first)
}
