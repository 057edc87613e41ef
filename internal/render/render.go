// Package render writes documents of packages that package report must not import, as
// they need the disassembler or measure machines: annotated functions, latencies,
// calibrations. It registers their formats with report; [report.Write] writes them.
package render

import (
	"io"
	"slices"

	"github.com/cyclestack/cyclestack/internal/page"
	"github.com/cyclestack/cyclestack/report"
)

// Styles and layout of pages, by shorter names.
type style = page.Style

const (
	plain  = page.Plain
	bold   = page.Bold
	faint  = page.Faint
	dim    = page.Dim
	hot    = page.Hot
	indent = page.Indent
	gap    = page.Gap
)

// hang is the indentation of what is said below a table.
const hang = 12

func init() {
	report.Register("text", func(w io.Writer, d Annotation, o report.Options) error { return newAnnotation(w, d, o).text() })
	report.Register("json", func(w io.Writer, d Annotation, o report.Options) error {
		return page.JSON(w, newAnnotation(w, d, o).document())
	})
	report.Register("csv", func(w io.Writer, d Annotation, o report.Options) error { return newAnnotation(w, d, o).csv() })
	report.Register("text", writeLatencies)
	report.Register("json", func(w io.Writer, d Latencies, o report.Options) error { return page.JSON(w, latenciesDocument(d, o)) })
	report.Register("csv", writeLatenciesCSV)
	report.Register("text", writeSampledLatencies)
	report.Register("json", func(w io.Writer, d SampledLatencies, o report.Options) error {
		return page.JSON(w, sampledDocument(d, o))
	})
	report.Register("csv", writeSampledCSV)
	registerHistograms()
	report.Register("text", writeCalibration)
	report.Register("json", func(w io.Writer, d Calibration, _ report.Options) error { return page.JSON(w, d.Result) })
	report.Register("toml", writePenalties)
	report.Register("svg", writeSVG)
}

// withMeasured adds to notes where parameters come from that were measured.
func withMeasured(h report.Header, notes []string) []string {
	if h.Measured == nil {
		return notes
	}
	return append(slices.Clone(notes), h.Measured.String())
}
