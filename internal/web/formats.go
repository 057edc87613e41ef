package web

import (
	"cmp"
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
	report.Register(Name, func(w io.Writer, d render.Cores, o report.Options) error {
		p := New(w, "cyclestack: loops")
		with, err := d.WithPictures(o)
		if err != nil {
			return err
		}
		if err := p.Write(with, o); err != nil {
			return err
		}
		if err := report.Write(p.Plain(), "text", d, plain(o)); err != nil {
			return err
		}
		return p.Finish()
	})
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
		return p.Finish()
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

// Accounts is the writer of accounts as a page. Page is there after the first account.
type Accounts struct {
	*Page
	w      io.Writer
	o      report.Options
	h      report.Header
	json   report.Writer
	block  io.WriteCloser
	models []*model.Model
	ends   bool // End ends the page
}

func newAccounts(w io.Writer, o report.Options) report.Writer {
	a := NewAccounts(w, o)
	a.ends = true
	return a
}

// NewAccounts returns a writer of accounts whose page is open at the end, for further
// documents. Finish ends it.
func NewAccounts(w io.Writer, o report.Options) *Accounts {
	o.Long = true // a page reads whole accounts, not streams
	return &Accounts{w: w, o: o}
}

// Begin implements [report.Writer].
func (a *Accounts) Begin(h report.Header) error {
	a.h = h
	return nil
}

// begin begins the page with the first account, which names it.
func (a *Accounts) begin(title string) (err error) {
	a.Page = New(a.w, title)
	a.block = a.Document()
	if a.json, err = report.New("json", a.block, a.o); err != nil {
		return err
	}
	a.models = append(a.models, a.h.Model)
	return a.json.Begin(a.h)
}

// Account implements [report.Writer].
func (a *Accounts) Account(of *account.Account) error {
	if a.Page == nil {
		if err := a.begin(cmp.Or(of.Label, a.h.Kind)); err != nil {
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
func (a *Accounts) first(of *account.Account) error {
	o, h := plain(a.o), a.h
	o.Layout, h.Profile = report.LayoutTree, nil
	text, err := report.New("tree", a.Plain(), o)
	if err != nil {
		return err
	}
	if err := text.Begin(h); err != nil {
		return err
	}
	if err := text.Account(of); err != nil {
		return err
	}
	return text.End()
}

// End implements [report.Writer].
func (a *Accounts) End() error {
	if a.Page == nil {
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
	if err := a.Explain(a.o, a.h.CPU, a.models...); err != nil || !a.ends {
		return err
	}
	return a.Finish()
}
