// Package threshold reads tables of load-latency thresholds as people publish them: two
// columns, the threshold in cycles and the count of slower loads. Between is a bar, comma,
// semicolon, tab or blanks.
//
//	Case 1
//	Lat Threshold | Sample Count
//	 3 | 1426934
//	 4 | 1505684
//	11 | <10
//
// Each block becomes a table with the events MEM_TRANS_RETIRED.LOAD_LATENCY_GT_n.
// A count given as "<10" is taken as the largest it can be, 9, and noted. Text
// behind a number ("<< Drop 1") is a remark.
package threshold

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/spelling"
)

// Bounds on what a table may hold.
const (
	lineMost = 64 << 10
	rowsMost = 1000
)

// Detect reports whether a file's first bytes look like a threshold table: a
// heading that names a threshold and under it two rows of two numbers. Rows with a
// damaged number count as well, since the reader can say what is wrong with them.
func Detect(head []byte) bool {
	heading, rows := false, 0
	for _, line := range bytes.Split(head, []byte("\n")) {
		text := string(line)
		switch {
		case isHeading(text):
			heading, rows = true, 0
		case heading:
			if _, ok := split(text); ok {
				if rows++; rows == 2 {
					return true
				}
			} else if strings.TrimSpace(text) != "" {
				heading = false
			}
		}
	}
	return false
}

// isHeading says whether a line is the heading of a table.
func isHeading(line string) bool {
	l := strings.ToLower(line)
	return !strings.HasPrefix(strings.TrimSpace(l), "#") && strings.Contains(l, "threshold") &&
		(strings.Contains(l, "count") || strings.Contains(l, "samples") || strings.Contains(l, "loads"))
}

// separators stand between the two columns of a row.
const separators = "|,; \t\r"

// A row is a line of a table, as it is written.
type row struct{ threshold, count string }

// split returns the row that a line is, and false for a line of text. A row has
// two columns that begin like numbers; one is enough where more than blanks
// parts them. Behind a comma that need not be so: text has commas too.
func split(line string) (row, bool) {
	line = strings.TrimLeft(line, separators)
	if strings.HasPrefix(line, "#") {
		return row{}, false
	}
	end := strings.IndexAny(line, separators)
	if end < 0 {
		return row{}, false
	}
	r := row{threshold: line[:end]}
	rest := strings.TrimLeft(line[end:], separators)
	gap := line[end : len(line)-len(rest)]
	ends := separators
	if !strings.Contains(gap, ",") {
		ends = strings.ReplaceAll(separators, ",", "") // a comma groups digits: 1,426,934
	}
	remark := ""
	r.count = rest
	if end := strings.IndexAny(rest, ends); end >= 0 {
		r.count, remark = rest[:end], strings.Trim(rest[end:], separators)
	}
	r.count = strings.TrimRight(r.count, ",")
	first, second := isNumeric(r.threshold), isNumeric(r.count)
	switch {
	case first && second:
		return r, true
	case strings.ContainsAny(gap, "|;\t"):
		return r, first || second
	case strings.Contains(gap, ","):
		return r, first || second && remark == ""
	}
	return r, false
}

// isNumeric says whether a column begins like a number, of whatever kind.
func isNumeric(s string) bool {
	s = strings.TrimLeft(s, "<+-\u2212.")
	switch strings.ToLower(s) {
	case "":
		return false
	case "nan", "inf", "infinity":
		return true
	}
	return '0' <= s[0] && s[0] <= '9'
}

// read returns the numbers of a row. The error is without its place.
func (r row) read() (threshold uint64, count reading, err error) {
	threshold, err = strconv.ParseUint(r.threshold, 10, 32)
	if err != nil {
		return 0, reading{}, fmt.Errorf("%q is not a threshold: it must be an integer number of cycles", spelling.Clip(r.threshold))
	}
	text, below := strings.CutPrefix(r.count, "<")
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || below && n == 0 {
		return 0, reading{}, fmt.Errorf("%q is not a count of loads: it must be an integer, or <10 for one below 10", spelling.Clip(r.count))
	}
	return threshold, reading{float64(n), below}, nil
}

// A reading is a count; below says that it is only known to be below value.
type reading struct {
	value float64
	below bool
}

// A Reader yields one table for each block of rows.
type Reader struct {
	s       *bufio.Scanner
	name    string
	line    int
	cpu     string
	label   string // the last line of text before the heading
	pending bool   // a heading was read, and no text since that ends its table
	ended   int    // the line of the text that ended the last table, 0 before one
	table   *counts.Table
	err     error
}

// NewReader returns a reader; the name is for messages.
func NewReader(r io.Reader, name string) *Reader {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 4096), lineMost)
	return &Reader{s: s, name: name}
}

// Kind names the form.
func (r *Reader) Kind() string { return "threshold-table" }

// Err returns the error that ended the reading, nil at the end.
func (r *Reader) Err() error { return r.err }

// Table returns the current table.
func (r *Reader) Table() *counts.Table { return r.table }

// Next advances to the next table.
func (r *Reader) Next() bool {
	if r.err != nil {
		return false
	}
	var cols []counts.Column
	var cells []reading
	begin := 0
	for r.s.Scan() {
		r.line++
		line := r.s.Text()
		if isHeading(line) {
			r.pending = true
			if len(cols) > 0 {
				r.make(cols, cells, begin)
				return true
			}
			continue
		}
		row, ok := split(line)
		switch {
		case ok && r.pending:
			threshold, count, err := row.read()
			if err != nil {
				return r.fail("%v", err)
			}
			if len(cols) == 0 {
				begin = r.line
			}
			if len(cols) == rowsMost {
				return r.fail("more than %d thresholds", rowsMost)
			}
			cols = append(cols, counts.Column{Event: fmt.Sprintf("MEM_TRANS_RETIRED.LOAD_LATENCY_GT_%d", threshold)})
			cells = append(cells, count)
			continue
		case ok && r.ended > 0:
			return r.fail("a row outside a table: the text in line %d ended it", r.ended)
		case strings.TrimSpace(line) == "" || isRemark(line):
			continue
		case len(cols) > 0:
			r.pending, r.ended = false, r.line
			label, cpu := r.label, r.cpu
			r.comment(line)
			nextLabel, nextCPU := r.label, r.cpu
			r.label, r.cpu = label, cpu
			r.make(cols, cells, begin)
			r.label, r.cpu = nextLabel, nextCPU
			return true
		}
		r.comment(line)
	}
	if err := r.s.Err(); err != nil {
		r.line++
		return r.fail("%v", err)
	}
	if len(cols) > 0 {
		r.pending = false
		r.make(cols, cells, begin)
		return true
	}
	return false
}

// isRemark says whether a line is a comment that tells nothing, and so may be
// anywhere in a table.
func isRemark(line string) bool {
	_, names := cpuName(line)
	return strings.HasPrefix(strings.TrimSpace(line), "#") && !names
}

// cpuName returns the processor that a comment names: "# cpu: skylakex".
func cpuName(line string) (name string, ok bool) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(line), "#")
	if !ok {
		return "", false
	}
	name, ok = strings.CutPrefix(strings.ToLower(strings.TrimSpace(rest)), "cpu:")
	return strings.TrimSpace(name), ok
}

// comment takes what a line of text says: the processor, or a title.
func (r *Reader) comment(line string) {
	if name, ok := cpuName(line); ok {
		r.cpu = name
		return
	}
	r.label = strings.TrimSpace(line)
}

func (r *Reader) fail(format string, args ...any) bool {
	r.err = fault.At(r.name, r.line, format, args...)
	return false
}

func (r *Reader) make(cols []counts.Column, cells []reading, line int) {
	t := counts.NewTable(&counts.Layout{Columns: cols, Scopes: []counts.Scope{counts.RunScope(r.label)}})
	t.Label, t.Line, t.CPU = r.label, line, r.cpu
	t.Duration = math.NaN()
	for i, c := range cells {
		if c.below {
			t.Notes = append(t.Notes, counts.Notef("%s is only known to be below %v: taken as %v", cols[i].Event, c.value, c.value-1))
			c.value--
		}
		*t.Cell(0, i) = counts.Cell{Value: c.value, State: counts.Counted}
	}
	r.table = t
}
