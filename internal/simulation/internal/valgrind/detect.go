package valgrind

import "bytes"

// magic begins every file that callgrind has written since version 3.13.
const magic = "# callgrind format"

// Detect reports whether a file that begins with head is of callgrind, cachegrind, or
// another program that writes their format: it names events, and then costs at lines of
// functions. It looks at no more than head.
func Detect(head []byte) bool {
	if bytes.HasPrefix(head, []byte(magic)) {
		return true
	}
	events := false
	for len(head) > 0 {
		line, rest, whole := bytes.Cut(head, []byte{'\n'})
		head = rest
		line = bytes.TrimRight(line, " \t\r")
		switch {
		case len(line) == 0 || line[0] == '#':
		case events:
			// The first line of the body, if all of it is there.
			return whole && isBody(line) || !whole && isPosition(line)
		case bytes.HasPrefix(line, []byte("events:")):
			events = whole
		case !isHeader(line):
			return false
		}
	}
	return events
}

// isHeader reports whether a line is one of a header: a keyword, a colon and a value.
func isHeader(line []byte) bool {
	key, _, ok := bytes.Cut(line, []byte{':'})
	return ok && headerKeys[string(key)]
}

// headerKeys are the keywords of headers.
var headerKeys = map[string]bool{"version": true, "creator": true, "pid": true, "cmd": true, "part": true, "thread": true,
	"desc": true, "event": true, "events": true, "positions": true, "summary": true, "totals": true}

// isBody reports whether a line may follow those that name the events.
func isBody(line []byte) bool {
	return isPosition(line) || isHeader(line) || len(line) > 0 && line[0] >= '0' && line[0] <= '9'
}

// isPosition reports whether a line says where the costs below it are.
func isPosition(line []byte) bool {
	key, _, ok := bytes.Cut(line, []byte{'='})
	if !ok {
		return false
	}
	switch string(key) {
	case "ob", "fl", "fi", "fe", "fn":
		return true
	}
	return false
}
