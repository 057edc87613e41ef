package render

import (
	"encoding/csv"
	"io"
	"strconv"

	"github.com/cyclestack/cyclestack/internal/core"
	"github.com/cyclestack/cyclestack/report"
)

func init() {
	report.Register("csv", writeBlocksCSV)
}

// writeBlocksCSV writes one row for each block and core.
func writeBlocksCSV(w io.Writer, d core.Blocks, _ report.Options) error {
	out := csv.NewWriter(w)
	head, several := []string{"block", "cycles", "limit"}, len(d.Cores) > 1
	if several {
		head = append([]string{"core"}, head...)
	}
	_ = out.Write(head) // the writer keeps its error
	i := 0
	for row, err := range d.All {
		if err != nil {
			return err
		}
		fields := []string{row.Block, "", row.Problem}
		if a := row.Analysis; a != nil {
			fields[1] = strconv.FormatFloat(a.Cycles, 'f', 3, 64)
			if len(a.Limits) > 0 {
				fields[2] = core.Say(a.Limits[0])
			}
		}
		if several {
			fields = append([]string{d.Cores[i%len(d.Cores)].Name}, fields...)
		}
		i++
		_ = out.Write(fields)
	}
	out.Flush()
	return out.Error()
}

// writeCoresCSV writes one row for each limit of each piece on each core.
func writeCoresCSV(w io.Writer, d Cores, _ report.Options) error {
	out := csv.NewWriter(w)
	_ = out.Write([]string{"module", "function", "loop", "file", "first_line", "last_line", "share", "core", "cycles", "measured", "limit", "limit_cycles"})
	for _, r := range d.Pieces {
		share, measured := "", ""
		if d.Of != "" {
			share = decimals(r.Weight)
		}
		if r.Measured != nil {
			measured = decimals(r.Measured.Cycles)
		}
		for _, a := range r.Cores {
			for _, l := range a.Limits {
				_ = out.Write([]string{r.Module, r.Function, strconv.Itoa(r.Loop), r.File, strconv.Itoa(r.First), strconv.Itoa(r.Last), share,
					a.Core, decimals(a.Cycles), measured, core.Say(l), decimals(l.Cycles)})
			}
		}
	}
	out.Flush()
	return out.Error()
}

func decimals(x float64) string { return strconv.FormatFloat(x, 'f', 3, 64) }
