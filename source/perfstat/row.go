package perfstat

import (
	"bytes"
	"math"

	"github.com/cyclestack/cyclestack/counts"
)

// A row is one count as a line says it. Its texts are parts of the line.
type row struct {
	line    int
	form    form
	time    []byte // -I: the timestamp as printed; nil for none
	summary bool   // -I --summary: the totals after the intervals
	place
	event   []byte
	unit    []byte
	comment []byte // text: what follows the '#'
	remark  []byte // text: what someone wrote after the event

	state counts.State
	value float64
	run   float64 // ns on a counter; NaN if not given
	share float64 // running/enabled; NaN if not given, or not known
	noise float64 // relative standard error; NaN if not given

	spelling spelling // text: of the value

	// shared says that the line gives a share, if only as "nan".
	shared bool

	// marked says that the line has something only perf prints, besides a
	// number and a name: a running share, an error or a derived metric.
	marked bool

	notes []string // to be said of the line, if it is used

	columns
}

// A place is where a row was counted.
type place struct {
	id     []byte // "CPU3"; nil for the whole
	cpus   int    // how many logical processors (or counters) were summed
	cgroup []byte
}

// columns are the offsets of value and run in a CSV line, for prediction. runAt is 0
// where there is none.
type columns struct {
	valueAt, valueEnd, runAt int
}

func (r *row) reset(line int, f form) {
	*r = row{line: line, form: f, run: math.NaN(), share: math.NaN(), noise: math.NaN()}
}

func (r *row) note(text string) { r.notes = append(r.notes, text) }

// A verdict says what a line is to one of the three forms.
type verdict uint8

const (
	foreign verdict = iota // something else
	isRow                  // a count
	derived                // metrics, which perf worked out from counts
	damaged                // a count that cannot be used: row.event and a reason are set
)

var (
	notCounted   = []byte("<not counted>")
	notSupported = []byte("<not supported>")
	escapedLess  = []byte("&lt;")
)

// scanState reads "<not counted>" or "<not supported>" at the start of b, also as web
// pages and mails escape it. It returns the length.
func scanState(b []byte) (s counts.State, n int) {
	if bytes.HasPrefix(b, escapedLess) {
		inner := b[len(escapedLess):]
		for _, known := range [][]byte{notCounted, notSupported} {
			words := known[1 : len(known)-1]
			if bytes.HasPrefix(inner, words) && bytes.HasPrefix(inner[len(words):], []byte("&gt;")) {
				s, _ = scanState(known)
				return s, len(escapedLess) + len(words) + len("&gt;")
			}
		}
		return counts.Absent, 0
	}
	switch {
	case bytes.HasPrefix(b, notCounted):
		return counts.NotCounted, len(notCounted)
	case bytes.HasPrefix(b, notSupported):
		return counts.NotSupported, len(notSupported)
	}
	return counts.Absent, 0
}

// timestamp returns the length of the timestamp of an interval at the start of
// b: seconds with nine decimals, in every locale with a point.
func timestamp(b []byte) int {
	n := digits(b)
	if n == 0 || n > 12 || n >= len(b) || b[n] != '.' || digits(b[n+1:]) != 9 {
		return 0
	}
	return n + 10
}

// nanoseconds reads a timestamp.
func nanoseconds(b []byte) int64 {
	var ns int64
	decimals := -1
	for _, c := range b {
		switch {
		case !isDigit(c):
			decimals = 0
		case decimals < 9:
			ns = ns*10 + int64(c-'0')
			if decimals >= 0 {
				decimals++
			}
		}
	}
	for decimals = max(decimals, 0); decimals < 9; decimals++ {
		ns *= 10
	}
	return ns
}
