// Package accounting makes accounts from a stream of tables, recorded or live, and
// hands them to a writer of documents. It is the one loop between counts and
// documents.
package accounting

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/report"
)

// Options say which accounts a [Stream] makes. Every function may be nil.
type Options struct {
	By counts.By // the scopes that have an account each
	// Interval is how long intervals are, in seconds: shorter neighbours are added up.
	Interval float64
	Files    []string // the recordings; none for live counts
	Need     string   // what the command needs of a recording's scopes, if By is not the user's choice
	SMT      bool     // the report is about the logical processors of cores

	// Live accounts are written at once, also those without a known node.
	Live bool
	// Anything allows accounts that have no more than counts.
	Anything bool
	// Empty allows a document without any known node.
	Empty bool

	// Places finds what is to be accounted for in a table; nil is each scope.
	Places func(*counts.Table) ([]Place, error)
	// Head completes the header, which is made from the first table.
	Head func(*report.Header, *counts.Table)
	// Times returns the operating system's account of a scope; nil if there is none.
	Times func(*counts.Scope) *account.Account
	// Refine adds to an account what only the caller knows.
	Refine func(*account.Account)
	// Say puts an error into words for the user; nil is its own text.
	Say func(error) string
}

// A Place is what one account is about.
type Place struct {
	account.Place
	Scope *counts.Scope // its name, if the row's scope is not meant
	Note  string        // what was assumed to find it
}

// A Stream makes accounts. The tables of one recording are summed by Options.By; an
// interval has its accounts at once if By has intervals.
type Stream struct {
	Options
	gate  gate
	seen  evidence
	total *counts.Total
	until float64 // where the interval in total is to end, in seconds since the recording's start

	method  *resolve.Method
	file    string // the recording of the tables in total
	kind    Kind
	binding *account.Binding
	reuse   *account.Account
	also    []further // of the method's further methods
}

// A further is a further method bound to the tables of a stream.
type further struct {
	binding *account.Binding
	reuse   *account.Account
}

// New returns a stream that writes documents with w.
func New(w report.Writer, o Options) *Stream {
	if o.Places == nil {
		o.Places = eachScope
	}
	if o.Say == nil {
		o.Say = error.Error
	}
	return &Stream{Options: o, gate: gate{w: w}, total: counts.NewTotal(o.By)}
}

// eachScope is every row of a table by itself.
func eachScope(t *counts.Table) ([]Place, error) {
	list := make([]Place, len(t.Scopes))
	for i := range list {
		list[i].Self = i
	}
	return list, nil
}

// Add takes a table of a recording with the method for it. A table that begins
// another run ends the one before.
func (s *Stream) Add(m *resolve.Method, t *counts.Table, kind Kind, file string) error {
	s.method, s.kind, s.file = m, kind, file
	s.seen.table(t)
	if s.total.Begins(t) {
		if err := s.Flush(); err != nil {
			return err
		}
	}
	middle := t.Start + t.Duration/2 // clocks have some noise
	if s.total.Table() == nil {
		s.until = (math.Floor(middle/s.Interval) + 1) * s.Interval
	}
	if err := s.total.Add(t); err != nil {
		if s.Need != "" {
			return fault.Inputf("%s: %v; %s", file, err, s.Need)
		}
		return fault.As(fault.Usage, &fault.OptionError{Option: "by", Value: Names(s.By), Err: fmt.Errorf("%s: %w", file, err)})
	}
	if s.By.Has(counts.Interval) && !(middle+t.Duration < s.until) {
		return s.Flush()
	}
	return nil
}

// Flush makes the accounts of what has been gathered. It ends a recording.
func (s *Stream) Flush() error {
	t := s.total.Table()
	if t == nil {
		return nil
	}
	if err := s.begin(t); err != nil {
		return err
	}
	if s.binding == nil || s.binding.Layout != t.Layout {
		s.binding, s.reuse, s.also = s.method.Account.Bind(t.Layout), nil, nil
		for _, m := range s.method.Also {
			s.also = append(s.also, further{binding: m.Account.Bind(t.Layout)})
		}
	}
	places, err := s.Places(t)
	if err != nil {
		return err
	}
	idle := s.Live && neverRan(t)
	s.seen.idle = s.seen.idle || idle
	for _, p := range places {
		s.evaluate(t, p, idle)
		if err := s.gate.write(s.reuse, s.Live || s.says(s.reuse)); err != nil {
			return err
		}
	}
	if s.By.Has(counts.Interval) {
		s.total.Reset()
	} else {
		s.total = counts.NewTotal(s.By) // another run may have other events
	}
	return nil
}

// says reports whether an account says anything that was asked for. Counts that no method
// uses are enough where the method was not the user's choice.
func (s *Stream) says(a *account.Account) bool {
	return s.method.Says(a) || len(a.Also) > 0 || s.Anything && len(a.Rest()) > 0
}

// evaluate makes the account of a place.
func (s *Stream) evaluate(t *counts.Table, p Place, idle bool) {
	s.reuse = s.binding.Evaluate(t, p.Place, s.reuse)
	a := s.reuse
	if s.method.Audits {
		s.binding.CheckIntervals(a)
	}
	a.Also = nil
	for i := range s.also {
		f := &s.also[i]
		f.reuse = f.binding.Evaluate(t, p.Place, f.reuse)
		a.Extend(f.reuse)
	}
	s.seen.known = s.seen.known || s.says(a)
	if p.Scope != nil {
		a.Scope = *p.Scope
	}
	if s.Times != nil {
		a.Times = s.Times(&a.Scope)
	}
	a.Notes = slices.Clip(a.Notes) // the method's are shared by all accounts
	if s.Refine != nil {
		a.Notes = slices.Clone(a.Notes)
		s.Refine(a)
	}
	if idle {
		a.Notes = append(a.Notes, counts.Notef("it did not run while it was counted"))
	}
	if p.Note != "" {
		a.Notes = append(a.Notes, counts.Notef("%s", p.Note))
	}
	if note := s.Note(s.method); note.Text != "" {
		a.Notes = append(a.Notes, note)
	}
	if len(s.Files) > 1 {
		a.Label = strings.TrimSuffix(s.file+": "+a.Label, ": ")
	}
}

// Note is what is odd about the choice of a method; zero for nothing.
func (o *Options) Note(m *resolve.Method) counts.Note {
	if m.Unknown != nil && m.Audits {
		return counts.Notef("%s; until then only what holds on every processor is checked", o.Say(m.Unknown))
	}
	return m.Processor.Note
}

// unknownProcessor says that a processor is not known, and which it may be.
func unknownProcessor(err error) counts.Note {
	text := "not in the recording"
	var unknown *resolve.UnknownCPUError
	if errors.As(err, &unknown) && unknown.Candidates() != "" {
		text += " (" + unknown.Candidates() + ")"
	}
	return counts.Notef("%s", text).With(counts.Fix{Action: counts.NameProcessor})
}

// begin checks the user's choice of nodes and makes the header.
func (s *Stream) begin(t *counts.Table) error {
	if s.gate.begun {
		return nil
	}
	if err := s.method.CheckNodes(); err != nil {
		return err
	}
	s.gate.begin(s.Header(s.method, s.kind, t))
	return nil
}

// Header makes the header of a document for a table.
func (o *Options) Header(m *resolve.Method, kind Kind, t *counts.Table) report.Header {
	c := &m.Resolver.Choice
	h := report.Header{CPU: m.CPU, CPUID: c.CPU, Model: m.Model, Params: m.Given(), Measured: m.Measured, Machine: m.Machine,
		ModelFlag: c.Model, ModelFiles: c.ModelFiles, Workload: c.Workload}
	if m.Unknown != nil && !m.Audits {
		h.Unknown = unknownProcessor(m.Unknown)
	}
	if m.Here {
		h.Assumed = counts.Notef("this machine's, as the recording does not say, and its events fit").With(counts.Fix{Action: counts.NameProcessor, Number: 1})
	}
	h.Kind, h.Files, h.From.Simulated = kind.Name, o.Files, kind.Simulated
	if h.How = kind.How; kind.Simulated && h.How == "" {
		h.How = "simulated by " + kind.Name + ", not measured"
	}
	if o.Head != nil {
		o.Head(&h, t)
	}
	return h
}

// Gathered returns the counts that have no account yet; nil if there are none.
func (s *Stream) Gathered() *counts.Table { return s.total.Table() }

// SetWriter replaces the writer, before the first account.
func (s *Stream) SetWriter(w report.Writer) { s.gate.w = w }

// Kind returns the kind of the recording of the last table.
func (s *Stream) Kind() Kind { return s.kind }

// Finish writes what is left, and ends the document. Its error is a [NothingError] if
// no account has a known node.
func (s *Stream) Finish() error {
	if err := s.Flush(); err != nil {
		return err
	}
	if s.seen.known || s.seen.idle || s.Empty {
		if err := s.gate.release(); err != nil {
			return err
		}
		return s.gate.w.End()
	}
	if s.gate.released {
		if err := s.gate.w.End(); err != nil { // a document that is whole, at least
			return err
		}
	}
	return s.nothing()
}

// A Kind is what took the counts of a recording or a run.
type Kind struct {
	Name      string // such as "perf-stat-csv"
	Simulated bool   // it is a simulator
	How       string // how the counts were obtained, if the recording says so
}

// KindOf returns the kind of a reader's counts, once it has read a table.
func KindOf(r interface{ Kind() string }) Kind {
	k := Kind{Name: r.Kind()}
	if s, ok := r.(interface{ Simulated() bool }); ok {
		k.Simulated = s.Simulated()
	}
	if h, ok := r.(interface{ How() string }); ok {
		k.How = h.How()
	}
	return k
}

// Core returns the place of a core, from the rows of its logical processors.
func Core(t *counts.Table, rows []int) Place {
	s := counts.RunScope(fmt.Sprintf("core of CPU%d and CPU%d", t.Scopes[rows[0]].CPU, t.Scopes[rows[1]].CPU))
	s.Kind, s.CPUs = counts.Core, len(rows)
	return Place{Place: account.Place{Self: rows[0], LP: rows}, Scope: &s}
}
