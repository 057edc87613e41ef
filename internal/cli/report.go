package cli

import (
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/export"
	_ "github.com/cyclestack/cyclestack/internal/picture" // registers the format svg
	"github.com/cyclestack/cyclestack/internal/recorded"
	"github.com/cyclestack/cyclestack/internal/release"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/internal/web"
	"github.com/cyclestack/cyclestack/report"
)

func (a *app) report() *cobra.Command {
	c, f, x := &common{}, &placeFlags{}, &exportFlags{}
	cmd := &cobra.Command{
		Use:     "report [FILE…]",
		GroupID: "account",
		Short:   "Print the account of a recording, or of what was measured last",
		Long: `report prints the account of each recording: where the cycles went, the error of
each figure, and what is missing. Without a file it is what was measured last: by stat,
or perf.data, or callgrind.data. Recordings are recognised by their content. They are the
output of perf stat, perf script, toplev or PerfSpect, or perf.data. Output of perf stat
is text, CSV (-x, any separator) or JSON (-j). It may have intervals or
repeats, or be per CPU, core, socket or thread.

Samples can be split. --by module, function, line or instruction prints the account of
each place in the code, most cycles first. --by process, thread, comm, cgroup, cpu or
interval prints the account of each of these. Several kinds by commas split by all of
them. --level and --expand open the columns of nodes. --process, --thread, --module,
--function, --line, --cgroup, --cpu-list and --time choose samples; perf's --pid, --tid,
--comm, --dso and --symbol mean the same. Where no method fits, the shares remain.
--sysroot is the directory with another machine's programs and symbols.

--format pprof, speedscope, firefox, collapsed and flamegraph write the stacks of
samples, with each node's slots or cycles. The format collapsed has one node or event,
named by --nodes or --event.

Several files are aggregated if they are runs of the same program: same processor,
command and events. Without a command their names may differ in numbers only.
Different programs are printed side by side. --together and --separate override this.

The processor is the one that the file names, in a line such as "# cpu: power7",
or the one given with --cpu. It is never guessed: an event's number means
different things on different processors. Without one the report says what the
counts mean on any processor.

Every method that the counts allow is evaluated: the processor's own, then those
for any processor. Counts that no method uses are printed with their rates.`,
		Example: `  cyclestack report examples/power7-cpi.txt
  perf stat -x, -e r400fa,r200f4,r4000a -o counts.csv -- ./app
  cyclestack report counts.csv                       what holds on any processor
  cyclestack report --cpu power7 counts.csv
  cyclestack report --cpu skylakex before-1.csv before-2.csv after-1.csv after-2.csv
  cyclestack report --by interval --format csv -o account.csv intervals.csv
  cyclestack report --workload hpc examples/walk/columns-1.txt     judged as a program of that kind
  cyclestack report --param L2_MISS_PENALTY=server examples/core2.txt
  cyclestack report --by function --sysroot examples/functions examples/functions.data
  cyclestack report --by thread,function --level 2 --time 0,0.5 --sysroot examples/functions examples/levels.data
  cyclestack report --process 42 --by interval --sysroot examples/functions examples/levels.data
  cyclestack report --format collapsed --nodes Retiring --sysroot examples/stacks examples/stacks.data
  cyclestack report --format firefox --sysroot examples/stacks examples/stacks.data`,
		RunE: func(_ *cobra.Command, files []string) error { return a.runReport(c, f, x, files) },
	}
	c.addModel(cmd)
	c.addParams(cmd)
	c.addNodes(cmd)
	cmd.Flags().StringVarP(&c.by, "by", "s", "run", "one account for each `KIND`, several by commas: "+strings.Join(kindNames(splitKinds), ", "))
	completeKinds(cmd, splitKinds)
	f.add(a, cmd)
	x.add(cmd)
	c.addScreen(cmd)
	c.addOutput(cmd, slices.Concat(report.Formats[report.Accounts](), export.Names())...)
	return cmd
}

func (a *app) runReport(c *common, f *placeFlags, x *exportFlags, files []string) error {
	if err := c.check(); err != nil {
		return err
	}
	by, err := parseSplit(c.by)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		name, run, err := a.last("report", by.Code != counts.Run || f.used() || x.given(c))
		if err != nil {
			return err
		}
		return a.reportOf(c, f, x, by, run, name)
	}
	return a.reportOf(c, f, x, by, nil, files...)
}

// reportOf reports recordings, or a run that was kept.
func (a *app) reportOf(c *common, f *placeFlags, x *exportFlags, by recorded.Split, run *recorded.KeptRun, files ...string) error {
	if x.given(c) {
		return a.export(c, f, x, by, files)
	}
	places, err := f.options(c, by)
	if err != nil {
		return err
	}
	recs, err := a.recordings(c, files...)
	if err != nil {
		return err
	}
	defer recs.Close()
	recs.Kept = run
	if slices.Contains(by.Kinds, counts.Interval) && !slices.ContainsFunc(files, recs.HasSamples) {
		recs.Interval, f.interval = time.Duration(f.interval), 0
	}
	if c.format == web.Name && len(by.Kinds) == 0 && len(files) == 1 {
		return a.page(c, f, recs, places)
	}
	switch {
	case by.Code != counts.Run || f.used() || len(files) == 1 && (recs.HasSamples(files[0]) || c.by == "run" && recs.HasPlaces(files[0])):
		return a.places(c, f, recs, places)
	case (len(files) > 1 || f.grouping.Together) && len(by.Kinds) == 0:
		err := a.runs(c, f.grouping, recs)
		unsampled := func(file string) bool { return !recs.HasSamples(file) }
		if errors.Is(err, recorded.ErrNothing) && !f.grouping.Separate && c.model == "" && !slices.ContainsFunc(files, unsampled) {
			return a.places(c, f, recs, places) // shares are left, as of one such recording
		}
		return err
	}
	return a.accounts(c, recs, resolve.Request{Anywhere: true}, func(out io.Writer) (report.Writer, error) {
		o := c.options(a.terminal(c, a.out))
		if c.by != "run" {
			o.Layout = report.LayoutRows
		}
		return report.New(c.format, out, o)
	})
}

// pageMemory is the memory that a page of a large recording may use before garbage is collected.
const pageMemory = 160 << 20

// page makes a page of all that a recording can say.
func (a *app) page(c *common, f *placeFlags, recs *recorded.Recordings, places *recorded.PlaceOptions) error {
	if c.output == "" && isTerminal(a.out) {
		return usageError("--format html is a page for a browser: -o FILE")
	}
	f.readings(recs, places)
	defer frugal(pageMemory)()
	o := &recorded.PageOptions{Places: *places, Report: c.options(io.Discard), Command: append([]string{"cyclestack"}, os.Args[1:]...), Version: release.Version}
	return places.Filter.Explain(a.write(c, func(out io.Writer) error { return recs.Page(out, o) }, recs.Names...))
}

// runs reports several recordings: runs of the same program are aggregated.
func (a *app) runs(c *common, g recorded.Grouping, recs *recorded.Recordings) error {
	if g.Together && g.Separate {
		return usageError("--together and --separate: only one of them")
	}
	return a.write(c, func(out io.Writer) error {
		return recs.Runs(g, func(accounts int) (report.Writer, error) {
			o := c.options(a.terminal(c, a.out))
			if accounts > 1 {
				o.Layout = report.LayoutColumns
			}
			return report.New(c.format, out, o)
		})
	}, recs.Names...)
}

// places makes the accounts of the parts of recordings.
func (a *app) places(c *common, f *placeFlags, recs *recorded.Recordings, o *recorded.PlaceOptions) error {
	f.readings(recs, o)
	o.Next = func(next recorded.Closer) report.Step { return f.next(c, o.Filter.Words(), recs.Names, next) }
	return o.Filter.Explain(a.write(c, func(out io.Writer) error {
		return recs.Places(o, func(places bool) (report.Writer, error) {
			w := c.options(a.terminal(c, a.out))
			w.Expand, w.Top = f.expand, f.top > 0
			if places {
				w.Layout = report.LayoutParts
			}
			return report.New(c.format, out, w)
		})
	}, recs.Names...))
}

// readings completes the headers of documents with the flags that say how files are read.
func (f *placeFlags) readings(recs *recorded.Recordings, o *recorded.PlaceOptions) {
	recs.Head = func(h *report.Header) {
		h.Reading = slices.Concat(f.programs(), o.Filter.Words())
		h.From.Functions = slices.Contains(h.Reading, "--function")
	}
}

// accounts makes the accounts of recordings and gives them to a writer.
func (a *app) accounts(c *common, recs *recorded.Recordings, want resolve.Request, writer func(io.Writer) (report.Writer, error)) error {
	by, err := parseBy(c.by)
	if err != nil {
		return err
	}
	return a.write(c, func(out io.Writer) error {
		w, err := writer(out)
		if err != nil {
			return usageError("%v", err)
		}
		return recs.Accounts(w, by, want, nil)
	}, recs.Names...)
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
