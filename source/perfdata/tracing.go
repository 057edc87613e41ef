package perfdata

import (
	"bytes"
	"strconv"

	"github.com/cyclestack/cyclestack/counts"
)

// maxTracing bounds the descriptions of tracepoints that are read; what is
// larger is passed over, and the tracepoints are called by their numbers.
const maxTracing = 16 << 20

// A tracepoint is what the kernel says of one: its file of the format.
type tracepoint struct {
	name   string // with its system
	format []byte
}

// A traceField is where a number is in the raw part of a tracepoint's samples.
type traceField struct{ offset, size int }

// field returns the place of a field. It has no size if the field is not known, or not of
// 1, 2, 4 or 8 bytes.
func (t tracepoint) field(name string) traceField {
	for line := range bytes.Lines(t.format) {
		// field:TYPE NAME;	offset:8;	size:4;	signed:1;
		parts := bytes.Split(bytes.TrimSpace(line), []byte(";"))
		if len(parts) < 3 || !bytes.HasPrefix(parts[0], []byte("field:")) || !bytes.HasSuffix(parts[0], []byte(" "+name)) {
			continue
		}
		offset, err1 := strconv.ParseUint(string(bytes.TrimPrefix(bytes.TrimSpace(parts[1]), []byte("offset:"))), 10, 16)
		size, err2 := strconv.ParseUint(string(bytes.TrimPrefix(bytes.TrimSpace(parts[2]), []byte("size:"))), 10, 16)
		if err1 == nil && err2 == nil && (size == 1 || size == 2 || size == 4 || size == 8) {
			return traceField{int(offset), int(size)}
		}
	}
	return traceField{}
}

// maxFields bounds the fields of an event that are remembered.
const maxFields = 16

// Field returns a number that a tracepoint put into its sample, by the name in the kernel's
// format. It is false where the file does not describe the field, or the sample ends before.
func (s *Sample) Field(name string) (n uint64, ok bool) {
	e := s.event
	f, known := e.fields[name]
	if !known {
		if f = e.trace.field(name); e.fields == nil {
			e.fields = map[string]traceField{}
		}
		if len(e.fields) < maxFields {
			e.fields[name] = f
		}
	}
	raw := s.Raw()
	if f.size == 0 || f.offset > len(raw)-f.size {
		return 0, false
	}
	c := cursor{b: raw[f.offset : f.offset+f.size], big: s.d.big}
	switch f.size {
	case 1:
		return uint64(c.u8()), true
	case 2:
		return uint64(c.u16()), true
	case 4:
		return uint64(c.u32()), true
	}
	return c.u64(), true
}

// tracepoints takes the names of tracepoints out of what perf writes about them:
// the kernel's files of formats, one after the other, as trace-cmd writes them.
// What it does not understand it leaves out. See trace_report in perf's
// trace-event-read.c.
func tracepoints(b []byte) map[uint64]tracepoint {
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
	names := map[uint64]tracepoint{}
	for range c.count(uint64(c.u32()), 5) {
		system := string(c.line())
		for range c.count(uint64(c.u32()), 8) {
			format := c.bytes(c.u64())
			if id, name, ok := tracepointFormat(format); ok {
				names[id] = tracepoint{counts.Name(system + ":" + name), bytes.Clone(format)}
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
