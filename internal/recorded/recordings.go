// Package recorded makes documents of recordings: accounts of tables, of several runs,
// of places in the code, differences, annotated code, profiles of stacks, distributions
// of latencies. Its inputs are options and the user's choice; its outputs are
// documents, or accounts for a writer.
package recorded

import (
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/accounting"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/peers"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/internal/source/published"
	"github.com/cyclestack/cyclestack/report"
	"github.com/cyclestack/cyclestack/source"
)

// Recordings are the recordings of one call, with the user's choice of method. Each is
// opened once and stays open until Close, apart from files beyond openMost.
type Recordings struct {
	*resolve.Resolver
	Names []string
	Say   func(error) string       // puts an error into words for the user; nil is its own text
	Head  func(*report.Header)     // completes the headers of documents; may be nil
	Note  func(counts.Note) string // puts a note into words; nil is its own text
	Kept  *KeptRun                 // the run that the recording was kept of; nil for any other
	// Interval is how long intervals of counts are: shorter neighbours are added up.
	Interval time.Duration
	// Progress, if it is not nil, is told how far a recording was read, as source.Recording has it.
	Progress func(name string, read, size int64)
	open     map[string]outcome

	published *[]counts.Column // of all recordings; nil if they were not looked at
}

// A KeptRun is a run that stat has kept.
type KeptRun struct {
	Samples string   // the file with its samples by the clock; "" for none
	Again   []string // the end of the command line that measures the same again
	// Features are those of this machine's processor. They tell its core where a hypervisor
	// calls the processor an older one.
	Features []string
}

// An outcome is what came of opening a recording. An error is kept as well: what a stream
// had was read to find it.
type outcome struct {
	rec *source.Recording
	err error
}

// openMost is how many recordings stay open, unless they are streams. It bounds the file
// descriptors of a comparison of thousands of files.
const openMost = 64

// New returns the recordings with so many names, which are opened when they are read.
func New(r *resolve.Resolver, names ...string) *Recordings {
	return &Recordings{Resolver: r, Names: names, open: map[string]outcome{}}
}

// Close closes the recordings.
func (r *Recordings) Close() error {
	var all error
	for _, o := range r.open {
		if o.rec != nil {
			all = errors.Join(all, o.rec.Close())
		}
	}
	clear(r.open)
	return all
}

// A handle is an opened recording. A shared one is closed with all others.
type handle struct {
	*source.Recording
	shared bool
}

func (h handle) Close() error {
	if h.shared {
		return nil
	}
	return h.Recording.Close()
}

// recording opens a recording, or returns the open one.
func (r *Recordings) recording(name string) (handle, error) {
	o, shared := r.open[name]
	if !shared {
		o.rec, o.err = source.Open(name)
		if o.err == nil && r.Progress != nil {
			o.rec.Progress = func(read, size int64) { r.Progress(name, read, size) }
		}
		shared = o.err != nil || o.rec.Stream() || len(r.open) < openMost
		if shared {
			r.open[name] = o
		}
	}
	if o.err != nil {
		return handle{}, fault.As(fault.Input, o.err)
	}
	return handle{o.rec, shared}, nil
}

// HasSamples reports whether a recording has samples. What cannot be opened has none:
// reading it says why.
func (r *Recordings) HasSamples(name string) bool {
	rec, err := r.recording(name)
	if err != nil {
		return false
	}
	defer rec.Close()
	return rec.HasSamples()
}

// HasPlaces reports whether a recording has places in the code that can be read again:
// samples, or those of a simulation.
func (r *Recordings) HasPlaces(name string) bool {
	rec, err := r.recording(name)
	if err != nil {
		return false
	}
	defer rec.Close()
	return rec.HasSamples() || rec.Simulated() && !rec.Stream()
}

// kept reports whether the only recording is a file with a document of accounts.
func (r *Recordings) kept() bool {
	if len(r.Names) != 1 {
		return false
	}
	rec, err := r.recording(r.Names[0])
	if err != nil {
		return false
	}
	defer rec.Close()
	return rec.Kept() && !rec.Stream()
}

// say puts an error into words.
func (r *Recordings) say(err error) string {
	if r.Say == nil {
		return err.Error()
	}
	return r.Say(err)
}

// texts puts notes into words.
func (r *Recordings) texts(notes []counts.Note) []string {
	if r.Note == nil {
		return counts.Texts(notes)
	}
	var list []string
	for _, n := range notes {
		list = append(list, r.Note(n))
	}
	return list
}

// Table resolves the method for a table of a recording. What other tools published is looked
// at in all recordings first, so that their accounts have the same nodes.
func (r *Recordings) Table(t *counts.Table, name string, want resolve.Request, m *resolve.Method) (*resolve.Method, error) {
	if m == nil {
		want.Published = r.publishedColumns()
	}
	return r.Resolver.Table(t, name, want, m)
}

// headMost is how much of a recording is looked at to find that another tool published it.
const headMost = 4 << 10

// publishedColumns are the columns that other tools published in any of the recordings. Those of
// streams, which are read once, are not looked at.
func (r *Recordings) publishedColumns() []counts.Column {
	if r.published != nil {
		return *r.published
	}
	var list []counts.Column
	for _, name := range r.Names {
		rec, err := r.recording(name)
		if err != nil {
			continue // reading it says why
		}
		if head := rec.Head(headMost); published.Detect(head) || rec.Kept() && published.Kept(head) {
			for tables := rec.Tables(0); tables.Next(); {
				for _, c := range tables.Table().Columns {
					if strings.HasPrefix(c.Event, peers.Published) && !slices.Contains(list, c) {
						list = append(list, c)
					}
				}
			}
		}
		rec.Close()
	}
	r.published = &list
	return list
}

// options are those of accounts.
func (r *Recordings) options(by counts.By) accounting.Options {
	return accounting.Options{By: by, Files: r.Names, Interval: r.Interval.Seconds(), Say: r.say, Head: r.head}
}

func (r *Recordings) head(h *report.Header, _ *counts.Table) {
	h.From.Kept = r.kept()
	if k := r.Kept; k != nil { // what it names is measured again, and what was kept is found without a name
		h.Files, h.Again = nil, k.Again
		h.From.Live, h.From.Started, h.From.Kept = len(k.Again) > 0, len(k.Again) > 0 && k.Again[0] == "--", false
	}
	if r.Head != nil {
		r.Head(h)
	}
}

// eachTable calls do with every table of a recording. Samples are summed by the scopes
// of by.
func (r *Recordings) eachTable(name string, by counts.By, do func(t *counts.Table, kind accounting.Kind) error) error {
	r.publishedColumns() // it reads the same files
	rec, err := r.recording(name)
	if err != nil {
		return err
	}
	defer rec.Close()
	tables, any := rec.Tables(by), false
	if c, ok := tables.(io.Closer); ok {
		defer c.Close()
	}
	for tables.Next() {
		any = true
		if err := do(tables.Table(), accounting.KindOf(tables)); err != nil {
			return err
		}
	}
	if err := tables.Err(); err != nil {
		return fault.As(fault.Input, err)
	}
	if !any {
		return fault.Inputf("%s: it holds no counts", name)
	}
	return nil
}

// Accounts writes the accounts of the recordings' tables. It calls see with each table, unless that is nil.
func (r *Recordings) Accounts(w report.Writer, by counts.By, want resolve.Request, see func(name string, t *counts.Table)) error {
	o := r.options(by)
	o.Anything = want.Anywhere && r.Choice.Model == "" && r.Choice.Nodes == ""
	if by == 0 && r.Kept != nil && r.Kept.Samples != "" {
		o.Refine = r.sampled
	}
	_, err := r.accounts(accounting.New(w, o), want, nil, see)
	return err
}

// accounts makes the accounts of the recordings' tables with a stream. The method is nil,
// or that of recordings before; the one for all is returned. If see is not nil, it is
// called with each table.
func (r *Recordings) accounts(s *accounting.Stream, want resolve.Request, m *resolve.Method, see func(name string, t *counts.Table)) (*resolve.Method, error) {
	for _, name := range s.Files {
		err := r.eachTable(name, s.By, func(t *counts.Table, kind accounting.Kind) (err error) {
			if m, err = r.Table(t, name, want, m); err != nil {
				return err
			}
			if see != nil {
				see(name, t)
			}
			return s.Add(m, t, kind, name)
		})
		if err == nil {
			err = s.Flush()
		}
		if err != nil {
			return m, err
		}
	}
	return m, s.Finish()
}
