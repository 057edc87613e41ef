package perfstat

import (
	"bytes"
	"fmt"
)

// An Error says what is wrong with an input, and where.
type Error struct {
	File string
	Line int // from 1
	Msg  string
	Err  error // what the input failed with, nil otherwise
}

func (e *Error) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg) }

// Unwrap returns the error of the underlying reader.
func (e *Error) Unwrap() error { return e.Err }

// hint remembers what else was met, for the message that there are no counts.
// Lines are 0 where there is none.
type hint struct {
	metrics   int // the first line with metrics
	title     int // the first title without counts
	bad       int // the first count that was dropped
	why       string
	separator string // makes a count of a line, unlike the one given
	at        int    // that line
}

// foreignFormat says what an input is that cannot be text, "" if it can.
func foreignFormat(head []byte) string {
	for _, f := range []struct{ magic, msg string }{
		{"\x1f\x8b", "compressed with gzip: decompress it first (gunzip, or zcat FILE)"},
		{"\x28\xb5\x2f\xfd", "compressed with zstd: decompress it first (unzstd, or zstdcat FILE)"},
		{"\xfd7zXZ\x00", "compressed with xz: decompress it first (unxz, or xzcat FILE)"},
		{"BZh", "compressed with bzip2: decompress it first (bunzip2, or bzcat FILE)"},
		{"PERFILE2", "a perf.data file and not the output of perf stat: perf stat report -i FILE prints what perf stat record stored"},
		{"\xff\xfe", "UTF-16 text: convert it first (iconv -f UTF-16 -t UTF-8)"},
		{"\xfe\xff", "UTF-16 text: convert it first (iconv -f UTF-16 -t UTF-8)"},
	} {
		if bytes.HasPrefix(head, []byte(f.magic)) {
			return f.msg
		}
	}
	if i := bytes.IndexByte(head, 0); i >= 0 {
		if zeros := bytes.Count(head, []byte{0}); i <= 1 && zeros == len(head)/2 {
			return "UTF-16 text: convert it first (iconv -f UTF-16 -t UTF-8)"
		}
		return "binary, and not the output of perf stat"
	}
	return ""
}

// isMetricTitle recognises the line above the numbers of --metric-only and
// --topdown.
func isMetricTitle(line []byte) bool {
	has := func(text string) bool { return bytes.Contains(line, []byte(text)) }
	return has("retiring") && has("bad speculation") || has("GHz") && has("insn per cycle")
}

func (h *hint) sawMetrics(line int) {
	if h.metrics == 0 {
		h.metrics = line
	}
}

// outcome is the error of an input that was read to its end.
func (r *Reader) outcome() error {
	fault := func(line int, format string, args ...any) error {
		return &Error{File: r.name, Line: max(line, 1), Msg: fmt.Sprintf(format, args...)}
	}
	h := &r.hint
	switch {
	case r.lines.err != nil:
		return &Error{File: r.name, Line: r.lines.num + 1, Msg: r.lines.err.Error(), Err: r.lines.err}
	case r.stats.Tables > 0:
		return nil
	case r.lines.num == 0:
		return fault(1, "empty: nothing to read")
	case h.at > 0:
		return fault(h.at, "the fields are separated by %s and not by %s", quote([]byte(h.separator)), quote(r.forms.csv.sep))
	case h.bad > 0:
		return fault(h.bad, "no usable count: %s", h.why)
	case h.metrics > 0:
		return fault(h.metrics, "only metrics that perf derived (--metric-only, --topdown, -M) and no counts: record the events themselves")
	case r.forms.given:
		return fault(1, "no line with a count of perf stat -x%s found", r.forms.csv.sep)
	case r.ahead.evidence == titleSeen:
		return fault(r.ahead.line, "the block holds no counts")
	case h.title > 0:
		return fault(h.title, "the block holds no counts")
	}
	return fault(1, "no counts of perf stat found: looked for its text, CSV (-x) and JSON (-j) output")
}
