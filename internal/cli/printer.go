package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/report"
)

// A printer prints the accounts of a job's parts.
type printer struct {
	j         *job
	reporters []*reporter
	gathered  []*bytes.Buffer // by part; nil if accounts are printed as they come
	stream    *streamed       // to be closed

	together int         // how many intervals are evaluated at one time
	held     []heldTable // until then
	cells    int         // of held
	spare    []*counts.Table
	failed   bool   // what was to be written could not be, which has been said
	early    string // that nothing was counted, as it ended before the delay; "" if it did not
}

// A heldTable is the table of an interval, and what was counted.
type heldTable struct {
	table *counts.Table
	kind  string
}

// An interval that goes to a file, where nobody watches it come, is evaluated together with the
// others of the same heldFor, if their tables have no more cells than heldCells. Between two
// intervals the caches are given to other programs: one of 100 ms that was evaluated alone took
// 75 µs, ten together 28 µs each (docs/stat.md has what that makes of the whole).
const (
	heldFor   = time.Second
	heldCells = 1 << 16
)

// printer makes what prints the parts' accounts.
func (j *job) printer() (*printer, error) {
	p := &printer{j: j}
	var out io.Writer
	if j.f.interval > 0 {
		var err error
		if out, err = p.open(); err != nil {
			return nil, err
		}
	}
	for _, part := range j.parts {
		to := out
		if to == nil {
			b := &bytes.Buffer{}
			p.gathered = append(p.gathered, b)
			to = b
		}
		r, err := j.reporter(part, to)
		if err != nil {
			return nil, err
		}
		p.reporters = append(p.reporters, r)
	}
	return p, nil
}

// open opens what intervals are written to as they come.
func (p *printer) open() (io.Writer, error) {
	name := p.j.c.output
	switch name {
	case "":
		bearPipes()
		if p.j.stream != p.j.out {
			return p.prompt(p.j.stream, "standard error"), nil
		}
		fallthrough
	case "-":
		bearPipes()
		return p.prompt(p.j.out, "standard output"), nil
	}
	p.stream = p.j.f.stream
	if p.stream == nil {
		var err error
		if p.stream, err = stream(name); err != nil {
			return nil, err
		}
	}
	return p.prompt(p.stream.File, name), nil
}

// A streamed is a file into which intervals are written as they come. It is opened before
// anything runs, and what is in it stays until the first is written.
type streamed struct {
	*os.File
	regular bool
	fresh   bool // it did not exist
	begun   bool
}

// stream opens a file for intervals.
func stream(name string) (*streamed, error) {
	to, err := destination(name, nil)
	if err != nil {
		return nil, err
	}
	s := &streamed{regular: !to.direct}
	if to.direct {
		s.File, err = os.OpenFile(name, os.O_WRONLY, 0)
	} else {
		s.fresh = true
		s.File, err = os.OpenFile(to.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(err, fs.ErrExist) {
			s.fresh = false
			s.File, err = os.OpenFile(to.path, os.O_WRONLY, 0)
		}
	}
	if err != nil {
		return nil, machineError(fmt.Errorf("cannot write %s: %w", name, reason(err)))
	}
	return s, nil
}

// begin makes room for what is written first.
func (s *streamed) begin() error {
	if s == nil || s.begun {
		return nil
	}
	s.begun = true
	if !s.regular {
		return nil
	}
	return s.Truncate(0)
}

// end closes the file. If nothing was written, it is as if it had not been opened.
func (s *streamed) end() error {
	if s == nil {
		return nil
	}
	err := s.Close()
	if s.fresh && !s.begun {
		err = errors.Join(err, os.Remove(s.Name()))
	}
	return err
}

// prompt returns a writer to where intervals go.
func (p *printer) prompt(out io.Writer, name string) io.Writer {
	if !watched(out) {
		p.together = int(heldFor / time.Duration(p.j.f.interval))
	}
	return &intervalWriter{p, out, name}
}

// An intervalWriter says what cannot be written, and has nothing written after it.
type intervalWriter struct {
	p    *printer
	out  io.Writer
	name string
}

func (w *intervalWriter) Write(b []byte) (int, error) {
	n, err := 0, w.p.stream.begin()
	if err == nil {
		n, err = patiently(w.out, b)
	}
	if err != nil {
		w.p.failed = true
		return n, machineError(fmt.Errorf("cannot write %s: %w", w.name, reason(err)))
	}
	return n, nil
}

// watched reports whether somebody may wait for what is written next: not if it goes to a file,
// or nowhere.
func watched(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok {
		return true
	}
	st, err := f.Stat()
	if err != nil {
		return true
	}
	null, err := os.Stat(os.DevNull)
	return !st.Mode().IsRegular() && !(err == nil && os.SameFile(st, null))
}

// reporter makes the reporter of a part.
func (j *job) reporter(p *part, out io.Writer) (*reporter, error) {
	o := j.c.options(j.terminal(j.c, j.stream))
	if j.rows {
		o.Layout = report.LayoutRows
	}
	if o.Level == 0 && o.Nodes == "" && p.pmu != nil {
		o.Level = p.plan.Options.Level
	}
	w, err := report.New(j.c.format, out, o)
	if err != nil {
		return nil, usageError("%v", err)
	}
	r := newReporter(p.s, w, j.by)
	r.places = j.places
	r.again = j.f.sameAgain(j.program)
	r.how = func(t *counts.Table) string { return p.how(t, j.why, j.f.separate) }
	r.judge = func(a *account.Account) { j.judge(p, a) }
	if j.times != nil && p == j.parts[0] { // of all parts together
		r.times = j.times.account
	}
	return r, nil
}

// table takes a table of all parts.
func (p *printer) table(run counting) error {
	t := p.j.labelled(run.Table())
	if i := slices.IndexFunc(t.Notes, func(note counts.Note) bool { return note.Kind == counts.NoteEndedEarly }); i >= 0 {
		p.early = t.Notes[i].Text
		if len(p.j.program) > 0 {
			p.early = oneLine(fmt.Sprintf("nothing was counted: %s ended before the delay of %v", p.j.program[0], time.Duration(p.j.f.delay)))
		}
	}
	if p.together > 1 { // it is used again for the next
		t = p.copied(t)
	}
	p.held = append(p.held, heldTable{t, run.Kind()})
	p.cells += len(t.Scopes) * len(t.Columns)
	if program := (*exec.Error)(nil); errors.As(run.Err(), &program) { // it is there no more for a further run
		return errors.Join(p.release(), startError(run.Err()))
	}
	if len(p.held) < p.together && p.cells < heldCells {
		return nil
	}
	return p.release()
}

// copied returns a copy of a table, in one that was released if there is any.
func (p *printer) copied(t *counts.Table) *counts.Table {
	last := len(p.spare) - 1
	if last < 0 {
		return t.Clone()
	}
	c := p.spare[last]
	p.spare = p.spare[:last]
	c.Copy(t)
	return c
}

// release has the accounts made of the tables that were held.
func (p *printer) release() error {
	held := p.held
	p.held, p.cells = nil, 0
	for _, c := range held {
		if p.j.times != nil {
			p.j.times.step()
		}
		for i, part := range p.j.parts {
			if err := p.reporters[i].add(part.table(c.table), c.kind); err != nil {
				return err
			}
		}
		if p.together > 1 {
			p.spare = append(p.spare, c.table)
		}
	}
	p.held = held[:0]
	return nil
}

// labelled gives a table the name of what is counted.
func (j *job) labelled(t *counts.Table) *counts.Table {
	if j.label == "" {
		j.label = j.f.label(j.program)
	}
	t.Label = j.label
	return t
}

// finish prints what has been gathered.
func (p *printer) finish() error {
	if p.failed {
		return nil
	}
	if err := p.release(); err != nil {
		return err
	}
	for _, r := range p.reporters {
		switch err := r.finish(); {
		case err != nil && p.early != "": // that is no failure: the program's status is passed on
			fmt.Fprintf(p.j.err, "cyclestack stat: %s\n", p.early)
			return nil
		case err != nil:
			return err
		}
	}
	if p.stream != nil {
		if err := p.stream.Close(); err != nil {
			return machineError(err)
		}
		return nil
	}
	if p.gathered == nil {
		return nil
	}
	return p.j.writeTo(p.j.stream, p.j.c, func(out io.Writer) error {
		for i, b := range p.gathered {
			if i > 0 {
				if _, err := io.WriteString(out, "\n"); err != nil {
					return err
				}
			}
			if _, err := b.WriteTo(out); err != nil {
				return err
			}
		}
		return nil
	})
}
