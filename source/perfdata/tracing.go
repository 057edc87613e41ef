package perfdata

import (
	"bytes"
	"strconv"

	"github.com/cyclestack/cyclestack/counts"
)

// maxTracing bounds the descriptions of tracepoints that are read; what is
// larger is passed over, and the tracepoints are called by their numbers.
const maxTracing = 16 << 20

// tracepoints takes the names of tracepoints out of what perf writes about them:
// the kernel's files of formats, one after the other, as trace-cmd writes them.
// What it does not understand it leaves out. See trace_report in perf's
// trace-event-read.c.
func tracepoints(b []byte) map[uint64]string {
	c := &cursor{b: b}
	if !bytes.HasPrefix(b, []byte("\x17\x08\x44tracing")) {
		return nil
	}
	c.skip(10)
	c.line() // version
	c.big = c.u8() == 1
	c.skip(1 + 4) // sizes of a long and of a page
	for range 2 { // header_page, header_event
		c.line()
		c.skip(c.u64())
	}
	for range c.count(uint64(c.u32()), 8) { // of ftrace itself
		c.skip(c.u64())
	}
	names := map[uint64]string{}
	for range c.count(uint64(c.u32()), 5) {
		system := string(c.line())
		for range c.count(uint64(c.u32()), 8) {
			if id, name, ok := tracepointFormat(c.bytes(c.u64())); ok {
				names[id] = counts.Name(system + ":" + name)
			}
		}
	}
	return names
}

// line takes a string that a zero byte ends.
func (c *cursor) line() []byte {
	s := untilZero(c.b)
	c.skip(uint64(len(s)) + 1)
	return s
}

// tracepointFormat takes the name and number out of a format file.
func tracepointFormat(b []byte) (id uint64, name string, ok bool) {
	for line := range bytes.Lines(b) {
		key, value, _ := bytes.Cut(bytes.TrimSpace(line), []byte(": "))
		switch string(key) {
		case "name":
			name = string(value)
		case "ID":
			n, err := strconv.ParseUint(string(value), 10, 64)
			return n, name, err == nil && name != ""
		}
	}
	return 0, "", false
}
