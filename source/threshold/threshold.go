// Package threshold reads tables of load-latency thresholds as people publish
// them: two columns, the threshold in cycles and the count of sampled loads
// slower than it, separated by a bar, a comma, a semicolon, a tab or blanks.
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
)

// Bounds on what a table may hold.
const (
	lineMost = 64 << 10
	rowsMost = 1000
)

// An Error is what is wrong with a table, and where.
type Error struct {
	File string
	Line int // 1-based
	Msg  string
}

func (e *Error) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg) }

// Detect reports whether a file's first bytes look like a threshold table: a
// heading that names a threshold and under it two rows of two numbers.
func Detect(head []byte) bool {
	heading, rows := false, 0
	for _, line := range bytes.Split(head, []byte("\n")) {
		text := string(line)
		switch {
		case isHeading(text):
			heading, rows = true, 0
		case heading:
			if _, _, ok := row(text); ok {
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

// row splits a line into its two numbers; below says that the count is only
// known to be below the number given.
func row(line string) (threshold uint64, count reading, ok bool) {
	fields := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune("|,; \t\r", r) })
	if len(fields) < 2 {
		return 0, reading{}, false
	}
	threshold, err := strconv.ParseUint(fields[0], 10, 32)
	if err != nil {
		return 0, reading{}, false
	}
	text, below := strings.CutPrefix(fields[1], "<")
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || below && n == 0 {
		return 0, reading{}, false
	}
	return threshold, reading{float64(n), below}, true
}

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
	pending bool   // a heading was read
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
		threshold, count, ok := row(line)
		switch {
		case ok && r.pending:
			if len(cols) == 0 {
				begin = r.line
			}
			if len(cols) == rowsMost {
				return r.fail("more than %d thresholds", rowsMost)
			}
			cols = append(cols, counts.Column{Event: fmt.Sprintf("MEM_TRANS_RETIRED.LOAD_LATENCY_GT_%d", threshold)})
			cells = append(cells, count)
			continue
		case isHeading(line):
			r.pending = true
			if len(cols) > 0 {
				r.make(cols, cells, begin)
				return true
			}
			continue
		case strings.TrimSpace(line) == "":
			continue
		case len(cols) > 0:
			r.pending = false
			label := r.label
			r.comment(line)
			next := r.label
			r.label = label
			r.make(cols, cells, begin)
			r.label = next
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

// comment takes what a line of text says: the processor, or a title.
func (r *Reader) comment(line string) {
	text := strings.TrimSpace(line)
	if rest, ok := strings.CutPrefix(text, "#"); ok {
		if name, ok := strings.CutPrefix(strings.ToLower(strings.TrimSpace(rest)), "cpu:"); ok {
			r.cpu = strings.TrimSpace(name)
		}
		return
	}
	r.label = text
}

func (r *Reader) fail(format string, args ...any) bool {
	r.err = &Error{r.name, r.line, fmt.Sprintf(format, args...)}
	return false
}

func (r *Reader) make(cols []counts.Column, cells []reading, line int) {
	t := counts.NewTable(&counts.Layout{Columns: cols, Scopes: []counts.Scope{counts.RunScope(r.label)}})
	t.Label, t.Line, t.CPU = r.label, line, r.cpu
	t.Duration = math.NaN()
	for i, c := range cells {
		if c.below {
			t.Notes = append(t.Notes, fmt.Sprintf("%s is only known to be below %v: taken as %v", cols[i].Event, c.value, c.value-1))
			c.value--
		}
		*t.Cell(0, i) = counts.Cell{Value: c.value, State: counts.Counted}
	}
	r.table = t
}
