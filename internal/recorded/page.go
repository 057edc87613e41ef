package recorded

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/export"
	"github.com/cyclestack/cyclestack/internal/render"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/internal/source/samples"
	"github.com/cyclestack/cyclestack/internal/web"
	"github.com/cyclestack/cyclestack/report"
)

// PageOptions are those of a page of all that a recording can say.
type PageOptions struct {
	Places  PlaceOptions // without a split
	Report  report.Options
	Command []string // the command line that makes the page
	Version string
}

// Limits of the code in a page: functions, and bytes of each.
const annotatedMost, annotatedLongest = 10, 256 << 10

// Limits of a page's stacks: bytes while they are read, and calls. Much lighter ones cannot be seen.
const stacksMemory, stacksCalls = 48 << 20, 1 << 17

// intervalsMost is how many intervals of samples a page has at most. A screen is hardly wider.
const intervalsMost = 1000

// Page writes a page of the only recording: its account, and where they can be made, those
// of functions and intervals, its stacks, and the code of hotspots. What cannot be made is
// named with the reason.
func (r *Recordings) Page(w io.Writer, o *PageOptions) error {
	p := &pageReport{Recordings: r, o: o, file: r.Names[0], page: web.NewAccounts(w, o.Report)}
	p.samples = r.HasSamples(p.file)
	var err error
	if p.samples || p.simulated() {
		err = r.Places(&o.Places, func(bool) (report.Writer, error) { return &scopes{p.page, p.whole}, nil })
	} else {
		err = r.Accounts(p.page, 0, resolve.Request{}, p.step)
	}
	if err != nil {
		return err
	}
	if !p.stream() {
		p.widen()
		p.rest()
	}
	if err := p.page.About(web.About{Version: o.Version, Command: o.Command, Left: p.left}); err != nil {
		return err
	}
	return p.page.Finish()
}

// A pageReport is the making of a page.
type pageReport struct {
	*Recordings
	o       *PageOptions
	file    string
	page    *web.Accounts
	samples bool
	first   *samples.Reader // that has read the recording by function; nil if it is to be read again
	hot     []*counts.Code  // the hotspots whose code is in the page

	seconds  float64       // that the recording has; NaN if that is not known
	steps    int           // how many intervals of counts it has
	interval time.Duration // see [PlaceOptions]
	spans    int           // how many intervals there are
	left     []web.Left
}

// whole notes how long the recording is.
func (p *pageReport) whole(a *account.Account) {
	if a.Scope.Kind == counts.Run {
		p.seconds = a.Duration
	}
}

// step notes a table of counts.
func (p *pageReport) step(_ string, t *counts.Table) {
	if t.Interval {
		p.steps++
		p.seconds = t.Start + t.Duration
	}
}

// widen puts neighbouring intervals together where there would be too many for a page. A first and a
// last may be parts of one.
func (p *pageReport) widen() {
	p.interval = p.o.Places.Interval
	if p.steps > intervalsMost {
		p.interval = max(p.interval, time.Duration(min(p.seconds, 1e9)*1e9)/time.Duration(p.steps))
	}
	n := math.Ceil(p.seconds / p.interval.Seconds() / (intervalsMost - 2))
	if p.interval <= 0 || !(n > 1) || n > float64(math.MaxInt64/p.interval) {
		return
	}
	short := p.interval.Seconds() * 1e3
	p.interval *= time.Duration(n)
	why := fmt.Sprintf("intervals are of %g ms: a page shows at most %d", p.interval.Seconds()*1e3, intervalsMost)
	p.left = append(p.left, web.Left{View: fmt.Sprintf("intervals of %g ms", short), Why: why})
	fmt.Fprintf(p.page.Plain(), "  note    %s\n", why)
}

func (p *pageReport) simulated() bool {
	rec, err := p.recording(p.file)
	if err != nil {
		return false
	}
	defer rec.Close()
	return rec.Simulated()
}

// stream reports whether the recording cannot be read again.
func (p *pageReport) stream() bool {
	rec, err := p.recording(p.file)
	if err != nil {
		return true
	}
	defer rec.Close()
	return rec.Stream()
}

// rest adds the documents behind the first.
func (p *pageReport) rest() {
	simulated := p.simulated()
	if p.samples || simulated {
		p.add("functions", p.functions)
	}
	if !simulated {
		p.add("intervals", p.intervals)
	}
	if p.samples && p.spans > 1 {
		p.functionsByInterval()
	}
	if len(p.hot) > 0 && p.samples {
		p.add("loops in the core model", p.core)
	}
	p.code()
	if p.first != nil {
		p.first.Close()
		p.first = nil // stacks need memory
	}
	if p.samples || simulated {
		p.stacks()
	}
}

// functions writes the accounts of functions. What has read them has their instructions as well.
func (p *pageReport) functions(w io.Writer) error {
	if o := &p.o.Places; p.samples && len(p.Names) == 1 && !o.Filter.used() {
		o.keep = func(in *samples.Reader) { p.first = in }
		defer func() { o.keep = nil }()
	}
	return p.places(w, p.see, counts.Function)
}

// add adds a document. It is made before it is added, as one that fails is left out.
func (p *pageReport) add(view string, write func(io.Writer) error) {
	var b bytes.Buffer
	switch err := write(&b); {
	case errors.Is(err, errSame):
	case err != nil:
		p.left = append(p.left, web.Left{View: view, Why: p.say(err)})
	default:
		_ = p.page.Add(func(w io.Writer) error { // the page keeps the error
			_, err := b.WriteTo(w)
			return err
		})
	}
}

// errSame says that a document would have nothing that the first does not have.
var errSame = errors.New("the same")

// places writes the accounts of places, and shows them to a function.
func (p *pageReport) places(w io.Writer, see func(*account.Account), kinds ...counts.Kind) error {
	to, err := report.New("json", w, p.o.Report)
	if err != nil {
		return err
	}
	return p.placesTo(&scopes{to, see}, kinds...)
}

// placesTo passes the accounts of places to a writer.
func (p *pageReport) placesTo(to report.Writer, kinds ...counts.Kind) error {
	o := p.o.Places
	o.Split, o.All, o.Next, o.Interval = SplitBy(kinds...), true, nil, p.interval
	return p.Recordings.Places(&o, func(bool) (report.Writer, error) { return to, nil })
}

// functionsByInterval adds the values of functions in each interval.
func (p *pageReport) functionsByInterval() {
	kept := 0
	p.add("functions by interval", func(w io.Writer) error {
		f := web.NewFunctions(w)
		err := p.placesTo(f, counts.Interval, counts.Function)
		kept = f.Kept
		return err
	})
	if kept > 0 {
		p.left = append(p.left, web.Left{View: "functions by interval", Why: fmt.Sprintf("too many: a selection of intervals has the %d functions with the largest shares", kept)})
	}
}

// see notes a function, if its code is to be in the page.
func (p *pageReport) see(a *account.Account) {
	c := a.Scope.Code
	if len(p.hot) == annotatedMost || c == nil || c.Function == "" || strings.HasPrefix(c.Module, "[") || strings.HasSuffix(c.Module, ".map") {
		return
	}
	p.hot = append(p.hot, c)
}

// intervals writes the accounts of intervals. The error is errSame if there is only one.
func (p *pageReport) intervals(w io.Writer) error {
	if p.samples {
		return p.places(w, func(a *account.Account) {
			if a.Scope.Kind == counts.Interval {
				p.spans++
			}
		}, counts.Interval)
	}
	to, err := report.New("json", w, p.o.Report)
	if err != nil {
		return err
	}
	n, own := 0, p.Interval
	p.Interval = p.interval
	defer func() { p.Interval = own }()
	err = p.Accounts(&scopes{to, func(*account.Account) { n++ }}, counts.By(0).With(counts.Interval), resolve.Request{}, nil)
	if err == nil && n < 2 {
		return errSame
	}
	return err
}

// stacks adds the stacks, and those of intervals.
func (p *pageReport) stacks() {
	var intervals bytes.Buffer
	var written export.PiecesWritten
	p.add("stacks", func(w io.Writer) error {
		s, err := p.Stacks(StackOptions{By: counts.Function, Filter: p.o.Places.Filter, Symbols: p.o.Places.Symbols, NoInline: p.o.Places.NoInline, Memory: stacksMemory, Calls: stacksCalls, Intervals: true, Interval: p.interval})
		if err != nil {
			return err
		}
		defer s.Close()
		if s.Profile.Pieces == nil {
			_, err = export.Stacks(w, s.Profile)
			return err
		}
		written, err = export.StacksAndPieces(w, &intervals, s.Profile)
		return err
	})
	const view, worth = "stacks by interval", 0.001
	switch {
	case written.Crowded:
		p.left = append(p.left, web.Left{View: view, Why: "there are too many intervals: a selection leaves the stacks as they are"})
	case written.Intervals < 2:
		return
	case written.Others > worth:
		p.left = append(p.left, web.Left{View: view, Why: fmt.Sprintf("too many: in selections, the lightest are together, with %.2g %% of all", 100*written.Others)})
	}
	if !written.Crowded {
		p.add(view, func(w io.Writer) error { _, err := intervals.WriteTo(w); return err })
	}
}

// core writes the core model's loops of the hottest functions.
func (p *pageReport) core(w io.Writer) error {
	d, err := p.Core(&CoreOptions{Symbols: p.o.Places.Symbols, first: p.first, insts: instructionsOf(p.first)})
	if err != nil {
		return err
	}
	with, err := render.Cores{Document: d}.WithPictures(p.o.Report)
	if err != nil {
		return err
	}
	return report.Write(w, "json", with, p.o.Report)
}

// code adds the annotated functions, and their code in each interval.
func (p *pageReport) code() {
	if len(p.hot) == 0 {
		return
	}
	list, err := p.AnnotateAll(AnnotateOptions{Symbols: p.o.Places.Symbols, first: p.first, Longest: annotatedLongest, Intervals: p.spans > 1, Interval: p.interval}, p.hot)
	for i, c := range p.hot {
		view, failed := "code of "+c.Module+":"+c.Function, err
		if err == nil {
			failed = list[i].Err
		}
		p.add(view, func(w io.Writer) error {
			if failed != nil {
				return failed
			}
			return report.Write(w, "json", *list[i].Code, p.o.Report)
		})
		if failed == nil && len(list[i].Code.Intervals) > 0 {
			p.add(view+" by interval", list[i].Code.ByInterval)
		}
	}
}

// scopes passes accounts on, and shows them to a function.
type scopes struct {
	report.Writer
	see func(*account.Account)
}

func (s *scopes) Account(a *account.Account) error {
	s.see(a)
	return s.Writer.Account(a)
}
