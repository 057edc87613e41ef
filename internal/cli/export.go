package cli

import (
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/cyclestack/cyclestack/internal/collector"
	"github.com/cyclestack/cyclestack/internal/export"
	"github.com/cyclestack/cyclestack/internal/recorded"
	"github.com/cyclestack/cyclestack/internal/source/samples"
)

// exportFlags are the flags of report that are for export.Formats.
type exportFlags struct {
	event  string
	memory int // MB
}

// add adds the flags.
func (x *exportFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&x.event, "event", "e", "", "for "+strings.Join(export.Names(), ", ")+": the `EVENT` that is exported")
	cmd.Flags().IntVar(&x.memory, "stack-memory", samples.DefaultStackMemory>>20, "for the same: `MB` for stacks; the lightest that exceed it are merged where they end")
}

// maxStackMemory is the most that --stack-memory takes: 1 TB.
const maxStackMemory = 1 << 20

// given reports whether a format for programs is asked for, or a flag for those only.
func (x *exportFlags) given(c *common) bool {
	return slices.Contains(export.Names(), c.format) || x.event != "" || x.memory != samples.DefaultStackMemory>>20
}

// export writes the stacks of a recording in a format of export.Formats.
func (a *app) export(c *common, f *placeFlags, x *exportFlags, by recorded.Split, files []string) error {
	i := slices.Index(export.Names(), c.format)
	if i < 0 {
		return usageError("--event and --stack-memory are for --format %s", strings.Join(export.Names(), ", "))
	}
	if x.memory < 1 || x.memory > maxStackMemory {
		return usageError("--stack-memory %d: from 1 to %d MB", x.memory, maxStackMemory)
	}
	format := export.Formats[i]
	switch {
	case len(files) > 1:
		return usageError("--format %s: one recording at a time", c.format)
	case by.Within != 0 || len(by.Kinds) > 1:
		return usageError("--by %s: stacks are of one of %s", by, strings.Join(placeNames(), ", "))
	case f.top > 0 || f.expand != "" || f.interval > 0:
		return usageError("--top, --expand and --interval are not for %s", c.format)
	case format.Binary && c.output == "" && isTerminal(a.out):
		return usageError("--format %s is not text: -o FILE", c.format)
	}
	filter, err := f.filter.filter()
	if err != nil {
		return err
	}
	defer frugal(exportMemory)()
	recs, err := a.recordings(c, files...)
	if err != nil {
		return err
	}
	defer recs.Close()
	p, err := recs.Stacks(recorded.StackOptions{By: by.Code, Event: x.event, Memory: x.memory << 20, Filter: filter, Symbols: f.symbols, NoInline: f.noInline, NoLines: format.Names})
	switch {
	case errors.As(err, new(*recorded.SamplesError)):
		return inputError(fmt.Errorf("%v; --format %s needs samples, as perf record takes them", err, c.format))
	case err != nil:
		return filter.Explain(err)
	}
	defer p.Close()
	if format.One && c.nodes != "" && x.event == "" {
		if err := p.One(c.nodes, c.format); err != nil {
			return err
		}
	}
	return a.write(c, func(out io.Writer) error {
		left, err := format.Save(out, p.Profile, c.output)
		if format.Bare {
			a.files.End()
			for _, n := range append(spell.Texts(p.Notes), left.Notes()...) {
				fmt.Fprintf(a.err, "note: %s\n", oneLine(n))
			}
		}
		return err
	}, files...)
}

// frugal limits a command to one processor, and to so much memory before garbage is collected. The returned
// function lifts the limits. One goroutine does nearly all: with a second processor commands take a tenth more
// time in all, and end no sooner.
func frugal(memory int64) (done func()) {
	processors := runtime.GOMAXPROCS(1)
	collector.Allow(memory)
	return func() {
		runtime.GOMAXPROCS(processors)
		collector.Allow(math.MaxInt64)
	}
}

// exportMemory is the memory that exports of large recordings may use before garbage is collected.
const exportMemory = 165 << 20

// isTerminal reports whether a stream is a terminal.
func isTerminal(w io.Writer) bool {
	f := file(w)
	return f != nil && term.IsTerminal(int(f.Fd()))
}
