package cli

import (
	"bytes"
	"io"
	"os"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/live"
	"github.com/cyclestack/cyclestack/report"
)

// A printer prints the accounts of a job's parts.
type printer struct {
	j         *job
	reporters []*reporter
	gathered  []*bytes.Buffer // by part; nil if accounts are printed as they come
	stream    *os.File        // to be closed
}

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
		return live.Prompt(p.j.stream), nil
	case "-":
		return live.Prompt(p.j.out), nil
	}
	f, err := os.Create(name)
	if err != nil {
		return nil, machineError(err)
	}
	p.stream = f
	return live.Prompt(f), nil
}

// reporter makes the reporter of a part.
func (j *job) reporter(p *part, out io.Writer) (*reporter, error) {
	o := j.c.options(j.terminal(j.c, j.stream))
	o.Rows = j.rows
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
	for i, part := range p.j.parts {
		if err := p.reporters[i].add(part.table(t), run.Kind()); err != nil {
			return err
		}
	}
	return nil
}

// labelled gives a table the name of what is counted.
func (j *job) labelled(t *counts.Table) *counts.Table {
	t.Label = j.f.label(j.program)
	return t
}

// finish prints what has been gathered.
func (p *printer) finish() error {
	for _, r := range p.reporters {
		if err := r.finish(); err != nil {
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
