package perfstat

import "bytes"

// Detect reports whether content looks like the output of perf stat. The head is the
// beginning of a file, 64 KiB or the whole. It is also true of output without counts or
// encoded in UTF-16: the [Reader] says so.
func Detect(head []byte) bool {
	if bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff")) {
		head = bytes.ReplaceAll(head[2:], []byte{0}, nil)
	}
	r := NewReader(bytes.NewReader(head), "", Options{})
	if r.Next() {
		return true
	}
	return r.hint.bad > 0 || r.hint.metrics > 0 || r.hint.title > 0 || r.ahead.evidence == titleSeen
}
