package cli

import (
	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/accounting"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/report"
)

// A session is the method for live counts.
type session struct {
	c        *common
	cat      *model.Catalogue
	cpu      *model.CPU
	model    *model.Model
	method   *account.Method
	events   *model.EventTable
	params   map[string]float64
	measured *report.Measured
	id       string // the processor's identification
}

// selection is what package resolve calls it.
func (s *session) selection() *resolve.Selection {
	return &resolve.Selection{Processor: resolve.Processor{CPU: s.cpu, ID: s.id}, Model: s.model, Events: s.events,
		Params: s.params, Measured: s.measured, Resolver: &resolve.Resolver{Choice: s.c.choice(), Catalogue: s.cat}}
}

func (s *session) checkNodes() error { return s.selection().CheckNodes() }

// compile makes the method ready for its processor.
func (s *session) compile() error {
	m, err := s.selection().Compile(nil)
	if err != nil {
		return err
	}
	s.method = m.Account
	return nil
}

// parameters returns the values that the user gives or calibrate has stored.
func (s *session) parameters(m *model.Model) (params map[string]float64, err error) {
	sel := s.selection()
	params, s.measured, err = sel.Resolver.Parameters(sel.Processor, m)
	return params, err
}

// storing reports whether the user leaves penalties to what is stored.
func (s *session) storing() bool {
	c := s.c.choice()
	return c.UsesStored()
}

func (s *session) stored() string {
	sel := s.selection()
	return sel.Resolver.Stored(sel.Processor)
}

func (s *session) given() map[string]float64 { return s.selection().Given() }

// resolved is the method for package accounting.
func (s *session) resolved() *resolve.Method {
	return &resolve.Method{Selection: *s.selection(), Account: s.method}
}

// A reporter makes accounts of live counts.
type reporter struct {
	s      *session
	by     counts.By
	again  []string                   // the end of the command line that counts the same again
	how    func(*counts.Table) string // how the counts were obtained
	judge  func(*account.Account)     // adds what only the caller knows; may be nil
	times  func(*counts.Scope) *account.Account
	places func(*counts.Table) ([]accounting.Place, error)
	w      report.Writer
	stream *accounting.Stream
}

func newReporter(s *session, w report.Writer, by counts.By) *reporter {
	return &reporter{s: s, w: w, by: by}
}

// options are those of accounts of live counts.
func (r *reporter) options() accounting.Options {
	return accounting.Options{By: r.by, Live: true, Places: r.places, Times: r.times, Refine: r.judge, Say: spelled,
		Head: func(h *report.Header, t *counts.Table) { h.Again, h.How = r.again, r.how(t) }}
}

// setWriter replaces the writer.
func (r *reporter) setWriter(w report.Writer) { r.w = w; r.ready().SetWriter(w) }

func (r *reporter) ready() *accounting.Stream {
	if r.stream == nil {
		r.stream = accounting.New(r.w, r.options())
	}
	return r.stream
}

func (r *reporter) add(t *counts.Table, kind string) error {
	return r.ready().Add(r.s.resolved(), t, kind, "")
}

func (r *reporter) finish() error { return r.ready().Finish() }
