package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/internal/recorded"
	"github.com/cyclestack/cyclestack/internal/release"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/report"
)

// An Executable is another program with commands of its own. They have the flags, errors
// and exit statuses of those here.
type Executable struct {
	Long, Example string
	Commands      []func(*Kit) *cobra.Command
}

// Main runs the executable, as the function [Main] does.
func (e Executable) Main(ctx context.Context, args []string, in io.Reader, out, stderr io.Writer) int {
	a := &app{in: in, out: out, err: stderr, kernel: measure.ThisKernel(), other: &e}
	return a.main(ctx, args)
}

// A Kit is what commands of an [Executable] are made with.
type Kit struct {
	In       io.Reader
	Out, Err io.Writer
	Kernel   measure.Kernel
	app      *app
}

// Flags returns the flags of a command, none of them added yet.
func (k *Kit) Flags() *Flags { return &Flags{app: k.app, c: common{formats: []string{""}}} }

// Flags are flags that commands share.
type Flags struct {
	app    *app
	c      common
	target targetFlags
	places placeFlags
	source string
}

// AddModel adds the flags that choose processor, method, parameters and nodes.
func (f *Flags) AddModel(cmd *cobra.Command) {
	f.c.addModel(cmd)
	f.c.addParams(cmd)
	f.c.addNodes(cmd)
}

// AddLive adds the flags that say what is counted.
func (f *Flags) AddLive(cmd *cobra.Command) {
	f.target.addTasks(cmd)
	f.target.addCPUs(cmd)
	cmd.Flags().StringVar(&f.source, "source", string(measure.Auto), "what counts: `auto|pmu|os`")
}

// AddPrograms adds the flags that say where the programs of recordings are.
func (f *Flags) AddPrograms(cmd *cobra.Command) { f.app.addSymbols(cmd, &f.places.symbols) }

// AddScreen adds the flags that print more than a screen.
func (f *Flags) AddScreen(cmd *cobra.Command) { f.c.addScreen(cmd) }

// Target reports whether the flags name what is to be counted.
func (f *Flags) Target() bool {
	return f.target.machine() || f.target.tasks() || len(f.target.cgroups) > 0
}

// WholeMachine sets the flag that counts everything.
func (f *Flags) WholeMachine() { f.target.all = true }

// AddOutput adds the flags that say how and where to print.
func (f *Flags) AddOutput(cmd *cobra.Command, formats ...string) { f.c.addOutput(cmd, formats...) }

// Format is the value of --format.
func (f *Flags) Format() string { return f.c.format }

// Check refuses values of flags that mean nothing.
func (f *Flags) Check() error { return f.c.check() }

// Write calls print with the writer of the output.
func (f *Flags) Write(print func(io.Writer) error, inputs ...string) error {
	return f.app.write(&f.c, print, inputs...)
}

// Report are the options of documents for a terminal, or for others.
func (f *Flags) Report() report.Options { return f.c.options(f.app.terminal(&f.c, f.app.out)) }

// Choice is the user's choice of method.
func (f *Flags) Choice() resolve.Choice { return f.c.choice() }

// Live are the options of a measurement of what the flags and the program name. The client
// has no writer yet. The usual interval serves if the user names none.
func (f *Flags) Live(program []string, usual time.Duration) (o measure.Options, err error) {
	if err := f.target.check(program); err != nil {
		return o, err
	}
	source := measure.Source(f.source)
	if !slices.Contains([]measure.Source{measure.Auto, measure.PMU, measure.OS}, source) {
		return o, usageError("--source %s: must be auto, pmu or os", f.source)
	}
	if f.target.interval == 0 {
		f.target.interval = millis(usual)
	}
	o = measure.Options{Choice: f.c.choice(), All: f.c.all, Source: source, Label: f.target.label(program)}
	if o.Target, err = f.app.target(&f.target, program); err != nil {
		return o, err
	}
	if o.By, err = f.target.by(cmp.Or(f.c.by, "run")); err != nil {
		return o, err
	}
	again := f.target.sameAgain(program)
	o.Period = measure.Period{Interval: time.Duration(f.target.interval), Timeout: time.Duration(f.target.timeout), Delay: time.Duration(f.target.delay)}
	o.Client = measure.Client{OneDocument: true, Again: again, From: provenance(again), Say: why}
	return o, f.c.knownModel()
}

// Page makes a page of all that a recording can say.
func (f *Flags) Page(w io.Writer, file string) error {
	return f.read(file, "run", func(recs *recorded.Recordings, places *recorded.PlaceOptions) error {
		o := &recorded.PageOptions{Places: *places, Report: f.c.options(io.Discard), Command: append([]string{"cyclestack"}, os.Args[1:]...), Version: release.Version}
		return recs.Page(w, o)
	})
}

// Accounts gives a writer the accounts of a recording, by kinds. Without a kind, those of
// samples are by function.
func (f *Flags) Accounts(w report.Writer, file, by string) error {
	return f.read(file, by, func(recs *recorded.Recordings, o *recorded.PlaceOptions) error {
		if recs.HasSamples(file) || o.Split.Code != counts.Run {
			return recs.Places(o, func(bool) (report.Writer, error) { return w, nil })
		}
		return recs.Accounts(w, o.Split.Within, resolve.Request{Anywhere: true}, nil)
	})
}

// read opens a recording for do, which is to divide it by kinds.
func (f *Flags) read(file, by string, do func(*recorded.Recordings, *recorded.PlaceOptions) error) error {
	recs, err := f.c.recordings(file)
	if err != nil {
		return err
	}
	defer recs.Close()
	if by == "" && recs.HasPlaces(file) {
		by = "function"
	}
	split, err := parseSplit(cmp.Or(by, "run"))
	if err != nil {
		return err
	}
	places, err := f.places.options(&f.c, split)
	if err != nil {
		return err
	}
	f.places.readings(recs, places)
	return places.Filter.Explain(do(recs, places))
}

// Run runs a command of cyclestack on recordings, with the user's choice of method and
// programs, and returns its error.
func (f *Flags) Run(ctx context.Context, w io.Writer, command string, args ...string) error {
	words := f.c.words(command)[1:]
	if command != "diff" { // nodes are compared, which need no programs
		words = append(words, f.places.programs()...)
	}
	words = append(words, args...)
	var msg bytes.Buffer
	switch Main(ctx, words, strings.NewReader(""), w, &msg) {
	case exitDone, exitNo:
		return nil
	case exitUsage:
		return usageError("%s", strings.TrimSpace(msg.String()))
	}
	return inputError(errors.New(strings.TrimSpace(msg.String())))
}

// Spelled is the text of an error on one line, with the flags that would change it.
func Spelled(err error) string { return oneLine(spelled(err)) }

// otherRoot makes the root of another executable.
func (a *app) otherRoot(root *cobra.Command) {
	root.Long, root.Example = a.other.Long, strings.Trim(a.other.Example, "\n")
	kit := &Kit{In: a.in, Out: a.out, Err: a.err, Kernel: a.kernel, app: a}
	for _, make := range a.other.Commands {
		cmd := make(kit)
		cmd.GroupID = "second"
		root.AddCommand(cmd)
	}
}
