package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/report"
	"github.com/cyclestack/cyclestack/source"
)

func (a *app) report() *cobra.Command {
	c, f, x := &common{}, &placeFlags{}, &exportFlags{}
	cmd := &cobra.Command{
		Use:     "report FILE…",
		GroupID: "account",
		Short:   "Print the account of a recording",
		Long: `report reads recordings, recognised by their content, and prints the account of
each: where the cycles went, how far each figure can be trusted, what is missing
and why. It reads the output of perf stat as text, CSV (-x, any separator) and
JSON (-j), with intervals, per CPU, core, socket or thread, and repeats, and
perf.data, of perf record and of perf stat record.

Of samples, --by module, function, line or instruction prints the account of each
place in the code, the places with the most cycles first, and --by process, thread,
cgroup, cpu or interval that of each of these; several by commas are told apart
together. --level and --expand open the columns of nodes. --process, --thread,
--module, --function, --line, --cgroup, --cpu-list and --time say which samples
count; perf's --pid, --tid, --comm, --dso and --symbol mean the same. Where no method
fits what was sampled the shares of it remain. --sysroot is where the programs of
another machine are, with their symbols.

--format pprof, speedscope, collapsed and flamegraph write the stacks of samples for
programs that show profiles, with what of each node is where, in slots or cycles;
collapsed is of one, which --nodes or --event names.

Of several files, runs of the same thing (processor, command, events; where the
command is not known, names that differ in numbers only) are aggregated, and
different things stand side by side; --together and --separate say otherwise.

The processor is the one that the file names, in a line such as "# cpu: power7",
or the one given with --cpu. It is never guessed: an event's number means
different things on different processors.`,
		Example: `  cyclestack report examples/power7-cpi.txt
  perf stat -x, -e r400fa,r200f4,r4000a -o counts.csv -- ./app
  cyclestack report --cpu power7 counts.csv
  cyclestack report --cpu skylakex before-1.csv before-2.csv after-1.csv after-2.csv
  cyclestack report --by interval --format csv -o account.csv intervals.csv
  cyclestack report --workload hpc examples/walk/columns-1.txt     judged as a program of that kind
  cyclestack report --param L2_MISS_PENALTY=server examples/core2.txt
  cyclestack report --by function --sysroot examples/functions examples/functions.data
  cyclestack report --by thread,function --level 2 --time 0,0.5 --sysroot examples/functions examples/levels.data
  cyclestack report --process 42 --by interval --sysroot examples/functions examples/levels.data
  cyclestack report --format collapsed --nodes Retiring --sysroot examples/stacks examples/stacks.data`,
		Args: arguments(1, 0),
		RunE: func(_ *cobra.Command, files []string) error { return a.runReport(c, f, x, files) },
	}
	c.addModel(cmd)
	c.addParams(cmd)
	c.addNodes(cmd)
	cmd.Flags().StringVar(&c.by, "by", "run", "one account for each `KIND`, several by commas: "+strings.Join(allNames(), ", "))
	f.add(cmd)
	f.severalFlags.add(cmd)
	x.add(cmd)
	c.addOutput(cmd, reportFormats()...)
	return cmd
}

func (a *app) runReport(c *common, f *placeFlags, x *exportFlags, files []string) error {
	if err := c.check(reportFormats()...); err != nil {
		return err
	}
	by, err := divide(c.by)
	switch {
	case err != nil:
		return err
	case x.wanted(c):
		return a.export(c, f, x, by, files)
	case f.sampled(by, files):
		return a.places(c, f, by, files)
	case len(files) > 1 && len(by.kinds) == 0:
		err := a.several(c, f.severalFlags, files)
		if errors.Is(err, errNothing) && !f.separate && c.model == "" && !slices.ContainsFunc(files, unsampled) {
			return a.places(c, f, by, files) // shares are left, as of one such recording
		}
		return err
	}
	return a.accounts(c, files, false, func(out io.Writer) (report.Writer, error) {
		o := c.options(a.terminal(c, a.out))
		if c.by != "run" {
			o.Layout = report.LayoutRows
		}
		return report.New(c.format, out, o)
	})
}

func unsampled(file string) bool { return !source.Sampled(file) }

// accounts makes the accounts of files and gives them to a writer.
func (a *app) accounts(c *common, files []string, audits bool, writer func(io.Writer) (report.Writer, error)) error {
	by, err := parseBy(c.by)
	if err != nil {
		return err
	}
	s, err := c.session()
	if err != nil {
		return err
	}
	s.audits = audits
	return a.write(c, func(out io.Writer) error {
		w, err := writer(out)
		if err != nil {
			return usageError("%v", err)
		}
		return newReporter(s, w, by, files...).run()
	}, files...)
}

// terminal is where the output ends up, for its width and colours.
func (a *app) terminal(c *common, stream io.Writer) io.Writer {
	switch c.output {
	case "":
		return stream
	case "-":
		return a.out
	}
	return io.Discard
}

// byKinds are the scopes that --by takes.
var byKinds = []counts.Kind{counts.Run, counts.Interval, counts.CPU, counts.Core, counts.Die, counts.Socket,
	counts.Node, counts.Process, counts.Thread, counts.Cgroup}

func byNames() []string {
	var names []string
	for _, k := range byKinds {
		names = append(names, k.String())
	}
	return names
}

// parseBy reads --by.
func parseBy(text string) (by counts.By, err error) {
	for _, name := range strings.Split(text, ",") {
		i := slices.IndexFunc(byKinds, func(k counts.Kind) bool { return k.String() == strings.TrimSpace(name) })
		if i < 0 {
			return by, usageError("--by %s: there are %s", name, strings.Join(byNames(), ", "))
		}
		by = by.With(byKinds[i])
	}
	return by, nil
}

// A reporter turns the tables of a report's files into accounts.
type reporter struct {
	s       *session
	w       report.Writer
	by      counts.By
	files   []string
	total   *counts.Total
	profile *report.Profile            // of the places in the code that the accounts are of, if they are
	need    string                     // what the command needs of a recording's scopes, if its user cannot choose them
	prefer  string                     // the method to use if the user names none; "" is the one that fits best
	reading []string                   // of samples: the flags that say how they are read
	again   []string                   // of live counts: the end of the command line that counts the same again
	how     func(*counts.Table) string // how live counts were obtained; nil for files
	judge   func(*account.Account)     // adds what only the caller knows; may be nil
	// times is what the operating system says of the same scope; nil if it was not asked.
	times func(*counts.Scope) *account.Account
	// places finds what is to be accounted for in a table; nil is each scope.
	places func(*counts.Table) ([]place, error)

	begun    bool
	header   report.Header
	held     []*account.Account // of which nothing is known, not yet written
	released bool               // the head has been written
	file     string             // being read
	kind     string
	dropped  []string // what the reader had to leave out
	idle     bool     // what was counted live did not run, for a time at least
	known    bool     // an account with at least one known node was written
	line     int      // at which the first table begins
	notes    *remarks // where those of the files are kept as well, or nil
	events   []string // of the first table, for the error if nothing can be made of them
	counted  bool     // anything was
	binding  *account.Binding
	reuse    *account.Account
}

// A place is what one account is about.
type place struct {
	account.Place
	scope *counts.Scope // how it is called, if not as the row of the table
	note  string        // what was assumed to find it
}

func newReporter(s *session, w report.Writer, by counts.By, files ...string) *reporter {
	return &reporter{s: s, w: w, by: by, files: files, total: counts.NewTotal(by), places: eachScope}
}

// eachScope is every row of a table by itself.
func eachScope(t *counts.Table) ([]place, error) {
	list := make([]place, len(t.Scopes))
	for i := range list {
		list[i].Self = i
	}
	return list, nil
}

func (r *reporter) run() error {
	for _, file := range r.files {
		r.file = file
		if err := tablesOf(file, r.by, r.table); err != nil {
			return err
		}
		if err := r.flush(); err != nil {
			return err
		}
	}
	return r.finish()
}

// finish writes what is left, and ends the report.
func (r *reporter) finish() error {
	if err := r.flush(); err != nil {
		return err
	}
	switch {
	case r.known || r.idle:
		if err := r.release(); err != nil {
			return err
		}
		return r.w.End()
	case r.released:
		if err := r.w.End(); err != nil { // a document that is whole, at least
			return err
		}
	}
	return r.nothing()
}

// heldMost is how many accounts of which nothing is known are held back: if none
// comes of which something is, there is an error and no output.
const heldMost = 50

// write writes an account, and before it those that were held back.
func (r *reporter) write(a *account.Account) error {
	if !r.released && !r.says(a) && r.how == nil && len(r.held) < heldMost {
		r.held = append(r.held, a.Clone())
		return nil
	}
	if err := r.release(); err != nil {
		return err
	}
	return r.w.Account(a)
}

// says reports whether an account says anything that the command is about.
func (r *reporter) says(a *account.Account) bool {
	return a.Known() || r.s.audits && checksMade(a) > 0
}

// release writes the head, and what was held back.
func (r *reporter) release() error {
	if r.released || !r.begun {
		return nil
	}
	r.released = true
	if err := r.w.Begin(r.header); err != nil {
		return err
	}
	for _, a := range r.held {
		if err := r.w.Account(a); err != nil {
			return err
		}
	}
	r.held = nil
	return nil
}

// neverRan reports whether what was counted live was never on a processor.
func neverRan(t *counts.Table) bool {
	for i := range t.Scopes {
		for _, c := range t.Row(i) {
			if c.State != counts.NotCounted || c.Enabled > 0 {
				return false
			}
		}
	}
	return true
}

// table takes one table of a file: an interval joins the total of its run,
// unless each interval is asked for.
func (r *reporter) table(src source.Reader, t *counts.Table, file string) error {
	if err := r.s.settle(t, file, r.prefer); err != nil {
		return err
	}
	if r.notes != nil {
		r.notes.add(file, t.Notes)
	}
	return r.add(t, src.Kind())
}

// add is table for a session that is settled already.
func (r *reporter) add(t *counts.Table, kind string) error {
	r.kind = kind
	if r.events == nil {
		r.events, r.line = eventNames(t), t.Line
	}
	r.counted = r.counted || anyCounted(t)
	if len(r.dropped) == 0 {
		r.dropped = noteTexts(t.Notes)
	}
	if r.total.Begins(t) {
		if err := r.flush(); err != nil {
			return err
		}
	}
	if err := r.total.Add(t); err != nil {
		if r.need != "" {
			return inputError(fmt.Errorf("%s: %v; %s", r.file, err, r.need))
		}
		return usageError("--by %s: %s: %v", r.s.c.by, r.file, err)
	}
	if r.by.Has(counts.Interval) {
		return r.flush()
	}
	return nil
}

// flush writes the accounts of what has been gathered.
func (r *reporter) flush() error {
	t := r.total.Table()
	if t == nil {
		return nil
	}
	if err := r.begin(t); err != nil {
		return err
	}
	if r.binding == nil || r.binding.Layout != t.Layout {
		r.binding, r.reuse = r.s.method.Bind(t.Layout), nil
	}
	places, err := r.places(t)
	if err != nil {
		return err
	}
	idle := r.how != nil && neverRan(t)
	r.idle = r.idle || idle
	for _, p := range places {
		r.reuse = r.binding.Evaluate(t, p.Place, r.reuse)
		r.known = r.known || r.says(r.reuse)
		if p.scope != nil {
			r.reuse.Scope = *p.scope
		}
		if r.times != nil {
			r.reuse.Times = r.times(&r.reuse.Scope)
		}
		if r.judge != nil {
			r.reuse.Notes = slices.Clone(r.reuse.Notes)
			r.judge(r.reuse)
		}
		if idle {
			r.reuse.Notes = append(slices.Clone(r.reuse.Notes), counts.Notef("it did not run while it was counted"))
		}
		for _, note := range []string{p.note, r.s.note} {
			if note != "" {
				r.reuse.Notes = append(slices.Clone(r.reuse.Notes), counts.Notef("%s", note))
			}
		}
		if len(r.files) > 1 {
			r.reuse.Label = strings.TrimSuffix(r.file+": "+r.reuse.Label, ": ")
		}
		if err := r.write(r.reuse); err != nil {
			return err
		}
	}
	if r.by.Has(counts.Interval) {
		r.total.Reset()
	} else {
		r.total = counts.NewTotal(r.by) // another run may have other events
	}
	return nil
}

func (r *reporter) begin(t *counts.Table) error {
	if r.begun {
		return nil
	}
	r.begun = true
	if err := r.s.checkNodes(); err != nil {
		return err
	}
	r.header = r.s.header(r.kind, r.files)
	r.header.Profile, r.header.Reading, r.header.Again = r.profile, r.reading, r.again
	if r.how != nil {
		r.header.How = r.how(t)
	}
	return nil
}

// nothing explains why no account could be made.
func (r *reporter) nothing() error {
	if len(r.files) == 0 {
		return machineError(r.nothingCounted())
	}
	text := fmt.Sprintf("%s: nothing of %s can be computed from %s: it needs %s (%s prints the tree)",
		strings.Join(r.files, ", "), r.s.model.Name, firstOf(r.events), firstOf(r.s.method.Inputs()), r.s.tree())
	switch {
	case !r.counted:
		text = fmt.Sprintf("%s: none of its events was counted: %s", where(r.files[0], r.line), firstOf(r.events))
	case r.s.model.Name == smtModel && r.prefer != smtModel:
		text = fmt.Sprintf("%s: %s is about the logical processors of a core: cyclestack smt %s", strings.Join(r.files, ", "), smtModel, strings.Join(r.files, " "))
	case len(r.dropped) > 0:
		text += "; " + r.dropped[0]
	case r.kind == "perf-data" && r.profile == nil:
		text += "; --by function says where the samples are"
	case r.s.audits && r.s.note != "":
		text += "; " + r.s.note
	}
	return inputError(errors.New(text))
}

// anyCounted reports whether any cell of a table holds a count.
func anyCounted(t *counts.Table) bool {
	for i := range t.Scopes {
		if slices.ContainsFunc(t.Row(i), func(c counts.Cell) bool { return c.Ok() }) {
			return true
		}
	}
	return false
}

// nothingCounted explains why no account could be made of live counts.
func (r *reporter) nothingCounted() error {
	text := fmt.Sprintf("nothing of %s could be counted", r.s.model.Name)
	if len(r.dropped) > 0 {
		text += ": " + r.dropped[0]
	}
	return errors.New(text + "; cyclestack doctor says what can be counted here")
}

// firstOf names the first of a list of events.
func firstOf(names []string) string {
	const most = 4
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}
