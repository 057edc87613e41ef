package cli

import (
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/report"
	"github.com/cyclestack/cyclestack/source"
	"github.com/cyclestack/cyclestack/source/accounts"
)

// A placeDiff is a comparison by places in the code.
type placeDiff struct {
	h   report.DiffHeader
	top int
	*account.PlaceDifference
}

func (d placeDiff) write(format string, out io.Writer, o report.Options) error {
	return report.DiffPlaces(format, out, d.h, d.PlaceDifference, d.top, o)
}

// diffPlaces compares by places in the code.
func diffPlaces(s *session, f *diffFlags, by counts.Kind, unit work, sides [2]side) (diffed, error) {
	roots := [2]string{f.roots, f.roots}
	if old, new, ok := strings.Cut(f.roots, ":"); ok {
		roots = [2]string{old, new}
	}
	p := &placeRuns{placer: &placer{reporter: newReporter(s, nil, 0), f: &placeFlags{}, by: division{kinds: []counts.Kind{by}, code: by}}, by: by}
	for i := range sides {
		p.f.root = roots[i]
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
		Per: unit.name, Assumed: unit.assumed, Paired: f.paired, What: p.resource, By: by, Notes: p.remarks()}
	return placeDiff{h, f.top, account.ComparePlaces(p.runs[0], p.runs[1], design)}, nil
}

// placeRuns are the runs of two sides, by places in the code.
type placeRuns struct {
	*placer
	by           counts.Kind
	runs         [2][]account.PlaceReading
	instructions [2][]float64
	flat         string // why no method fits; "" if one does
	resource     string // that is compared: "cycles", "time" or an event
	cpu          string // of the first recording
	samples      int64
	notes        []string            // of all recordings
	noted        map[string][]string // the files of each
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
	if isSimulated(p.kind) && p.flat == "" {
		if whole := p.s.method.WithWhole(t, wholeEvent); whole != nil {
			t = whole
		}
	}
	col := p.clock(t)
	resource := p.what(&t.Columns[col])
	if resource == "" {
		resource = t.Columns[col].Event
	}
	switch {
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
func (p *placeRuns) settleOnce(t *counts.Table) (err error) {
	if p.s.method != nil {
		if t.CPU != "" && p.s.c.cpu == "" && !p.s.sameCPU(t.CPU, p.cpu) {
			return inputError(fmt.Errorf("%s: from %s, but %s is from %s: compare one processor at a time, or say which with --cpu", p.file, t.CPU, p.files[0], p.cpu))
		}
		return nil
	}
	p.cpu = t.CPU
	p.flat, err = p.settle(t)
	return err
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
	unit := 1.0
	if t.Columns[col].Unit == "msec" {
		unit = 1e6 // nanoseconds
	}
	run := account.PlaceReading{Total: unit * cell.Estimate(), Program: program(t.Label)}
	if !(run.Total > 0) {
		return inputError(fmt.Errorf("%s: it has no %s", p.file, p.resource))
	}
	p.instructions[side] = append(p.instructions[side], p.s.method.Bind(t.Layout).Evaluate(t, account.Place{}, nil).Instructions())
	p.samples += cell.Samples
	for row := 1; row < len(t.Scopes); row++ {
		c := t.Cell(row, col)
		if c.Ok() && c.Value > 0 {
			run.Add(p.nameOf(&t.Scopes[row]), account.Amount{Value: unit * c.Estimate(), Variance: unit * unit * c.Variance, Samples: c.Samples})
		}
	}
	p.runs[side] = append(p.runs[side], run)
	p.note(t)
	return nil
}

// notesMost bounds the notes of a comparison.
const notesMost = 20

// note keeps what a table is short of.
func (p *placeRuns) note(t *counts.Table) {
	for _, n := range t.Notes {
		if p.noted[n] == nil {
			if len(p.notes) >= notesMost {
				continue
			}
			if p.noted == nil {
				p.noted = map[string][]string{}
			}
			p.notes = append(p.notes, n)
		}
		p.noted[n] = append(p.noted[n], p.file)
	}
}

// remarks are the notes, each with the recordings that have it if not all do.
func (p *placeRuns) remarks() []string {
	var list []string
	for _, n := range p.notes {
		if files := p.noted[n]; len(files) < len(p.files) {
			n = sideName(files) + ": " + n
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
	at := account.PlaceName{Module: profile.BaseModule(c.Module)}
	switch {
	case p.by == counts.Module:
	case p.by == counts.Line && c.Line > 0:
		at.Name = fmt.Sprintf("%s:%d", path.Base(c.File), c.Line)
	case c.Function != "":
		at.Name = profile.BaseName(c.Function)
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
	return profile.BaseModule(first)
}
