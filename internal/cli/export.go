package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/cyclestack/cyclestack/internal/export"
	"github.com/cyclestack/cyclestack/internal/recorded"
	"github.com/cyclestack/cyclestack/report"
)

// exportFormats are the formats of report that are for programs that show profiles.
var exportFormats = []string{"pprof", "speedscope", "collapsed", "flamegraph"}

// exportFlags are the flags of report that are for exportFormats.
type exportFlags struct{ event string }

// add adds the flags.
func (x *exportFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&x.event, "event", "e", "", "for "+strings.Join(exportFormats, ", ")+": the `EVENT` that is exported")
}

// reportFormats are all formats of report.
func reportFormats() []string { return slices.Concat(report.Formats[report.Accounts](), exportFormats) }

// given reports whether a format for programs is asked for, or a flag for those only.
func (x *exportFlags) given(c *common) bool {
	return slices.Contains(exportFormats, c.format) || x.event != ""
}

// export writes the stacks of a recording in a format of exportFormats.
func (a *app) export(c *common, f *placeFlags, x *exportFlags, by recorded.Split, files []string) error {
	switch {
	case !slices.Contains(exportFormats, c.format):
		return usageError("--event is for --format %s", strings.Join(exportFormats, ", "))
	case len(files) > 1:
		return usageError("--format %s: one recording at a time", c.format)
	case by.Within != 0 || len(by.Kinds) > 1:
		return usageError("--by %s: stacks are of one of %s", by, strings.Join(placeNames(), ", "))
	case f.top > 0 || f.expand != "" || f.interval > 0:
		return usageError("--top, --expand and --interval are not for %s", c.format)
	case c.format == "pprof" && c.output == "" && isTerminal(a.out):
		return usageError("--format pprof is no text: -o FILE")
	}
	filter, err := f.filter.filter()
	if err != nil {
		return err
	}
	recs, err := c.recordings(files...)
	if err != nil {
		return err
	}
	defer recs.Close()
	p, err := recs.Stacks(recorded.StackOptions{By: by.Code, Event: x.event, Filter: filter, Symbols: f.symbols})
	switch {
	case errors.As(err, new(*recorded.SamplesError)):
		return inputError(fmt.Errorf("%v; --format %s needs samples, as perf record takes them", err, c.format))
	case err != nil:
		return f.filter.explained(err)
	}
	defer p.Close()
	if c.format == "collapsed" && c.nodes != "" && x.event == "" {
		if err := p.One(c.nodes, c.format); err != nil {
			return err
		}
	}
	return a.write(c, func(out io.Writer) error {
		notes, err := exportAs(c.format, out, p)
		for _, n := range notes {
			fmt.Fprintf(a.err, "note: %s\n", oneLine(n))
		}
		return err
	}, files...)
}

// exportAs writes a profile, and returns the notes that the format has no room for.
func exportAs(format string, out io.Writer, p *recorded.StackProfile) ([]string, error) {
	var left export.Omission
	var err error
	switch format {
	case "pprof":
		return nil, export.Pprof(out, p.Profile)
	case "flamegraph":
		_, err = export.FlameGraph(out, p.Profile)
		return nil, err
	case "speedscope":
		left, err = export.Speedscope(out, p.Profile, "cyclestack")
	default:
		left, err = export.Collapsed(out, p.Profile, p.Default)
	}
	return append(noteTexts(p.Notes), left.Notes()...), err
}

// isTerminal reports whether a stream is a terminal.
func isTerminal(w io.Writer) bool {
	f := file(w)
	return f != nil && term.IsTerminal(int(f.Fd()))
}
