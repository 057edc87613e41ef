package web

import (
	"io"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/internal/render"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/report"
)

// Name is the name of the format.
const Name = "html"

func init() {
	report.RegisterWriter(Name, newAccounts)
	register("differences", func(d report.Comparison) (*model.CPU, *model.Model) { return d.Header.CPU, d.Header.Model })
	register("differences", func(d report.PlaceComparison) (*model.CPU, *model.Model) { return d.Header.CPU, d.Header.Model })
	register("annotated code", func(d render.Annotation) (*model.CPU, *model.Model) { return d.CPU, d.Model })
}

// register adds the format of documents of a type: a page of one, and of its method.
func register[D any](title string, method func(D) (*model.CPU, *model.Model)) {
	report.Register(Name, func(w io.Writer, d D, o report.Options) error {
		p := New(w, "cyclestack: "+title)
		if err := p.Write(d, o); err != nil {
			return err
		}
		cpu, m := method(d)
		if err := p.Explain(o, cpu, m); err != nil {
			return err
		}
		text := report.Formats[D]()[0]
		if err := report.Write(p.Plain(), text, d, plain(o)); err != nil {
			return err
		}
		return p.Close()
	})
}

// Write adds a document that has a format json.
func (p *Page) Write(document any, o report.Options) error {
	return p.Add(func(w io.Writer) error { return report.Write(w, "json", document, o) })
}

// Explain adds methods of a processor: what their nodes mean.
func (p *Page) Explain(o report.Options, cpu *model.CPU, list ...*model.Model) error {
	o.Level = 0
	return p.Write(report.Trees{CPU: cpu, List: list}, o)
}

// plain are the options of the text for viewers without scripts.
func plain(o report.Options) report.Options {
	o.Color, o.Width = false, 0
	return o
}

// accounts is the writer of accounts as a page.
type accounts struct {
	w      io.Writer
	o      report.Options
	h      report.Header
	page   *Page
	json   report.Writer
	block  io.WriteCloser
	text   report.Writer // of the first account
	models []*model.Model
}

func newAccounts(w io.Writer, o report.Options) report.Writer { return &accounts{w: w, o: o} }

func (a *accounts) Begin(h report.Header) error {
	a.h = h
	return nil
}

// begin begins the page with the first account, which names it.
func (a *accounts) begin(title string) (err error) {
	a.page = New(a.w, title)
	a.block = a.page.Document()
	if a.json, err = report.New("json", a.block, a.o); err != nil {
		return err
	}
	a.models = append(a.models, a.h.Model)
	return a.json.Begin(a.h)
}

func (a *accounts) Account(of *account.Account) error {
	if a.page == nil {
		if err := a.begin(of.Label); err != nil {
			return err
		}
		if err := a.first(of); err != nil {
			return err
		}
	}
	if of.Times != nil && len(a.models) == 1 {
		a.models = append(a.models, of.Times.Model())
	}
	return a.json.Account(of)
}

// first writes the first account as text.
func (a *accounts) first(of *account.Account) (err error) {
	o := plain(a.o)
	o.Layout = report.LayoutTree
	h := a.h
	h.Profile = nil
	if a.text, err = report.New("tree", a.page.Plain(), o); err != nil {
		return err
	}
	if err := a.text.Begin(h); err != nil {
		return err
	}
	if err := a.text.Account(of); err != nil {
		return err
	}
	return a.text.End()
}

func (a *accounts) End() error {
	if a.page == nil {
		if err := a.begin("no accounts"); err != nil {
			return err
		}
	}
	if err := a.json.End(); err != nil {
		return err
	}
	if err := a.block.Close(); err != nil {
		return err
	}
	if err := a.page.Explain(a.o, a.h.CPU, a.models...); err != nil {
		return err
	}
	return a.page.Close()
}
