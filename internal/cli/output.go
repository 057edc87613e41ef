package cli

import (
	"io"

	"github.com/cyclestack/cyclestack/internal/output"
	"github.com/cyclestack/cyclestack/internal/recorded"
	"github.com/cyclestack/cyclestack/report"
)

// write calls print with the writer of the output: standard output, or the file of -o. Inputs
// are the files that the command reads: none of them is overwritten.
func (a *app) write(c *common, print func(io.Writer) error, inputs ...string) error {
	return a.writeTo(a.out, c, print, inputs...)
}

// document writes a document in the format that was asked for.
func (a *app) document(c *common, document any, inputs ...string) error {
	return a.write(c, func(out io.Writer) error {
		return report.Write(out, c.format, document, c.options(a.terminal(c, a.out)))
	}, inputs...)
}

// documentOf writes the document that is made of the recordings in files.
func (a *app) documentOf(c *common, files []string, make func(*recorded.Recordings) (any, error)) error {
	recs, err := a.recordings(c, files...)
	if err != nil {
		return err
	}
	defer recs.Close()
	d, err := make(recs)
	if err != nil {
		return err
	}
	return a.document(c, d, files...)
}

// writeTo is write for another stream than standard output.
func (a *app) writeTo(stream io.Writer, c *common, print func(io.Writer) error, inputs ...string) error {
	to := func(end io.Writer) func(io.Writer) error {
		return func(out io.Writer) error { return print(a.files.Writer(out, end)) }
	}
	switch {
	case c.output == "-" || c.output == "" && stream == a.out:
		return output.Gather(a.out, "standard output", to(a.out))
	case c.output == "":
		return output.Gather(stream, "standard error", to(stream))
	}
	return output.WriteFile(c.output, to(nil), inputs...)
}

// openIntervals opens the stream for accounts of intervals.
func (l *meter) openIntervals() (*output.Stream, error) {
	switch name := l.c.output; {
	case name == "" && l.stream != l.out:
		return output.NewStream(l.stream, "standard error"), nil
	case name == "" || name == "-":
		return output.NewStream(l.out, "standard output"), nil
	default:
		return output.OpenStream(name)
	}
}
