package recorded

import (
	"math"
	"slices"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/accounting"
	"github.com/cyclestack/cyclestack/internal/core"
	"github.com/cyclestack/cyclestack/internal/hotspots"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/internal/source/samples"
	"github.com/cyclestack/cyclestack/report"
	"github.com/cyclestack/cyclestack/source"
)

// locates reports whether the code can be found that the account of the whole is about: of
// one recording that can be read again.
func (p *placeReport) locates(rec *source.Recording) bool { return len(p.Names) == 1 && !rec.Stream() }

// hotspots adds the functions with most cycles to the account of the whole, as far as they are
// found.
func (p *placeReport) hotspots(a *account.Account, d *core.Document) {
	rec, err := p.recording(p.file)
	if err != nil {
		return
	}
	defer rec.Close()
	if !p.locates(rec.Recording) {
		return
	}
	functions := p.byFunction(rec.Recording, counts.Function, 0)
	if functions == nil {
		return
	}
	b := p.method.Account.Bind(functions.Layout)
	if p.kind.Simulated {
		lines := p.byFunction(rec.Recording, counts.Line, counts.By(0).With(counts.Function))
		cause := func(row int) *account.Cause {
			return hotspots.CauseOf(b.Evaluate(functions, account.Place{Self: row}, nil))
		}
		t := hotspots.Tables{Functions: p.withWhole(functions), Column: len(functions.Columns), Cause: cause}
		if lines != nil {
			t.Lines = p.withWhole(lines)
		}
		if len(t.Functions.Columns) > t.Column {
			a.Hotspots = t.Hotspots(1)
			p.inCore(a.Hotspots, d)
		}
		return
	}
	if p.method.Model.Name == resolve.WallModel { // waits are few samples of different lengths
		cause := func(row int) *account.Cause {
			return hotspots.CauseOf(b.Evaluate(functions, account.Place{Self: row}, nil))
		}
		t := hotspots.Tables{Functions: functions, Column: accounting.Clock(p.method, functions), Cause: cause}
		a.Hotspots = t.Hotspots(1)
		return
	}
	s, err := p.samples(rec.Recording)
	if err != nil || s.Total == 0 {
		return
	}
	h := &account.Hotspots{Whole: account.Cycles, Running: 1, Samples: s.Total}
	s.Locate(h)
	for i := range h.Places {
		place := &h.Places[i]
		row := slices.IndexFunc(functions.Scopes, func(c counts.Scope) bool {
			return c.Code != nil && c.Code.Function == place.Function && c.Code.Module == place.Module
		})
		if row > 0 && place.Cause == nil {
			place.Cause = hotspots.CauseOf(b.Evaluate(functions, account.Place{Self: row}, nil))
		}
	}
	a.Hotspots = h
	p.inCore(h, d)
}

// samples returns the samples to search for hotspots. They are read again only if they were
// not kept.
func (p *placeReport) samples(rec *source.Recording) (*hotspots.Samples, error) {
	if t := p.byInstruction(); t != nil {
		return hotspots.New(rec, p.first, t, p.sampleOptions()), nil
	}
	return hotspots.Read(rec, p.sampleOptions())
}

// sampleOptions are those of the search for hotspots: places are compared by the same event
// as in a report by place.
func (p *placeReport) sampleOptions() hotspots.Options {
	return hotspots.Options{Symbols: p.o.Symbols, Filter: p.o.Filter.Filter, Column: func(t *counts.Table) int { return accounting.Clock(p.method, t) }}
}

// byFunction reads the recording by function, or by a finer place within functions; nil if
// that is not possible.
func (p *placeReport) byFunction(rec *source.Recording, by counts.Kind, within counts.By) *counts.Table {
	o := samples.Options{By: by, Within: within, NoInline: p.o.NoInline, Derive: p.derive(), Waits: p.waits(), Filter: p.o.Filter.Filter, Symbols: p.o.Symbols}
	if p.first != nil {
		if t, err := p.first.Places(o); t != nil && err == nil {
			return t
		}
	}
	var in source.PlaceReader
	if rec.Simulated() {
		in = rec.SimulatedPlaces(o)
	} else {
		in = rec.Samples(o)
	}
	defer in.Close()
	if !in.Next() {
		return nil
	}
	return in.Table().Clone()
}

// time writes where the time or the cycles of samples went: an account of the operating
// system's method without any counts, and the code. It reports whether it has.
func (p *placeReport) time(t *counts.Table, writer func(bool) (report.Writer, error)) (bool, error) {
	rec, err := p.recording(p.file)
	if err != nil {
		return false, err
	}
	defer rec.Close()
	what := accounting.What(p.method, &t.Columns[accounting.Clock(p.method, t)])
	if !p.locates(rec.Recording) || p.kind.Simulated || what == "" {
		return false, nil
	}
	s, err := p.samples(rec.Recording)
	if err != nil || s.Total == 0 {
		return false, nil
	}
	h := hotspots.OfSamples(s)
	if what == "cycles" {
		h.Whole, h.Seconds = account.Cycles, math.NaN()
	}
	s.Locate(h)
	d := p.looped()
	p.inCore(h, d)
	w, err := writer(false)
	if err != nil {
		return false, err
	}
	o := p.options(0)
	o.Live, o.Empty = true, true // no node is known
	o.Refine = func(a *account.Account) { a.Hotspots = h }
	o.Head = func(head *report.Header, t *counts.Table) {
		p.head(head, t)
		if cpu, err := p.Catalogue.CPU(t.CPU); err == nil {
			head.CPU = cpu
		}
	}
	whole := p.divided(p.row(t), d)
	whole.Notes = append(slices.Clip(whole.Notes), counts.Notef("%s", p.flat))
	stream := accounting.New(w, o)
	if err := stream.Add(p.method, whole, p.kind, p.file); err != nil {
		return false, err
	}
	return true, stream.Finish()
}

// sampled adds to an account of the operating system's counters what was sampled in the
// same run.
func (r *Recordings) sampled(a *account.Account) {
	rec, err := r.recording(r.Kept.Samples)
	if err != nil {
		return
	}
	defer rec.Close()
	s, err := hotspots.Read(rec.Recording, hotspots.Options{})
	if err != nil {
		return
	}
	if a.Hotspots = hotspots.Of(a, s); a.Hotspots != nil {
		s.Locate(a.Hotspots)
	}
}
