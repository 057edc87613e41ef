package report

import (
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
)

// csvHeader names the columns of the csv format: one row for each node of each
// account. Fields that are not known are empty.
var csvHeader = []string{"scope", "label", "start_s", "duration_s", "node", "level", "value", "unit", "error",
	"coverage", "together", "reliable", "flagged", "why"}

// csvWriter writes rows from parts: what all rows of an account begin with, and
// what all rows of a node have in common, is put into CSV's form once.
type csvWriter struct {
	w     io.Writer
	o     Options
	shown []bool
	nodes []string // by node: path and level
	units []string // by node
	buf   []byte
	scope []byte
}

func newCSV(w io.Writer, o Options) *csvWriter { return &csvWriter{w: w, o: o} }

func (c *csvWriter) Begin(h Header) error {
	m := h.Model
	c.shown = c.o.shown(m)
	for i := range m.Nodes {
		n := &m.Nodes[i]
		c.nodes = append(c.nodes, field(n.Path)+","+strconv.Itoa(n.Level)+",")
		c.units = append(c.units, field(unit(m, i)))
	}
	_, err := io.WriteString(c.w, strings.Join(csvHeader, ",")+"\n")
	return err
}

// field puts a text into CSV's form (RFC 4180).
func field(s string) string {
	if !strings.ContainsAny(s, ",\"\r\n") && strings.TrimLeft(s, " ") == s {
		return s
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}

func (c *csvWriter) Account(a *account.Account) error {
	c.scope = append(c.scope[:0], a.Scope.Kind.String()...)
	c.scope = append(c.scope, ',')
	if label := scopeLabel(a); label != "" {
		c.scope = append(c.scope, field(label)...)
	}
	c.scope = append(c.scope, ',')
	c.scope = append(appendDecimal(c.scope, a.Start), ',')
	c.scope = append(appendDecimal(c.scope, a.Duration), ',')

	b := c.buf[:0]
	for i := range a.Nodes {
		if c.shown[i] {
			b = c.row(b, a, i)
		}
	}
	c.buf = b
	_, err := c.w.Write(b)
	return err
}

func (c *csvWriter) row(b []byte, a *account.Account, i int) []byte {
	v := &a.Nodes[i]
	b = append(b, c.scope...)
	b = append(b, c.nodes[i]...)
	b = append(appendDecimal(b, v.Value), ',')
	b = append(append(b, c.units[i]...), ',')
	b = append(appendDecimal(b, v.Error), ',')
	b = append(appendDecimal(b, math.Round(v.Coverage*1e6)/1e6), ',')
	b = append(strconv.AppendBool(b, v.Together), ',')
	b = append(strconv.AppendBool(b, v.Reliable()), ',')
	b = append(strconv.AppendBool(b, v.Flagged), ',')
	switch {
	case !v.Known():
		b = append(b, field(a.Why(i))...)
	case v.Doubt != account.DoubtNone:
		b = append(b, field(v.Doubt.String())...)
	}
	return append(b, '\n')
}

func (c *csvWriter) End() error { return nil }

// appendDecimal appends the shortest text that reads back as the number, and
// nothing if it is not known.
func appendDecimal(b []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return b
	}
	return strconv.AppendFloat(b, f, 'g', -1, 64)
}

// decimal is appendDecimal's text.
func decimal(f float64) string { return string(appendDecimal(nil, f)) }

// scopeLabel is what the account is about: the CPU, the thread, else what was
// measured.
func scopeLabel(a *account.Account) string {
	if a.Scope.Kind != counts.Run && a.Scope.Kind != counts.Interval && a.Scope.Label != "" {
		return a.Scope.Label
	}
	return a.Label
}
