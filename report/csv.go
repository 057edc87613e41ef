package report

import (
	"encoding/csv"
	"io"
	"math"
	"strconv"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
)

// csvHeader names the columns of the csv format: one row for each node of each
// account. Fields that are not known are empty.
var csvHeader = []string{"scope", "label", "start_s", "duration_s", "node", "level", "value", "unit", "error",
	"coverage", "together", "reliable", "flagged", "why"}

type csvWriter struct {
	w     *csv.Writer
	o     Options
	shown []bool
	row   []string
}

func newCSV(w io.Writer, o Options) *csvWriter {
	return &csvWriter{w: csv.NewWriter(w), o: o, row: make([]string, len(csvHeader))}
}

func (c *csvWriter) Begin(h Header) error {
	c.shown = c.o.shown(h.Model)
	return c.w.Write(csvHeader)
}

func (c *csvWriter) Account(a *account.Account) error {
	m := a.Model()
	for i := range m.Nodes {
		if !c.shown[i] {
			continue
		}
		v := &a.Nodes[i]
		r := c.row
		r[0], r[1] = a.Scope.Kind.String(), scopeLabel(a)
		r[2], r[3] = decimal(a.Start), decimal(a.Duration)
		r[4], r[5] = m.Nodes[i].Path, strconv.Itoa(m.Nodes[i].Level)
		r[6], r[7], r[8], r[9] = decimal(v.Value), unit(m, i), decimal(v.Error), decimal(v.Coverage)
		r[10], r[11], r[12] = strconv.FormatBool(v.Together), strconv.FormatBool(v.Reliable()), strconv.FormatBool(v.Flagged)
		r[13] = ""
		switch {
		case !v.Known():
			r[13] = a.Why(i)
		case v.Doubt != account.DoubtNone:
			r[13] = v.Doubt.String()
		}
		if err := c.w.Write(r); err != nil {
			return err
		}
	}
	c.w.Flush()
	return c.w.Error()
}

func (c *csvWriter) End() error {
	c.w.Flush()
	return c.w.Error()
}

// decimal is the shortest text that reads back as the number; "" if unknown.
func decimal(f float64) string {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return ""
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// scopeLabel is what the account is about: the CPU, the thread, else what was
// measured.
func scopeLabel(a *account.Account) string {
	if a.Scope.Kind != counts.Run && a.Scope.Kind != counts.Interval && a.Scope.Label != "" {
		return a.Scope.Label
	}
	return a.Label
}
