package perfrecord

import (
	"encoding/binary"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// tracefs is where the kernel's tracepoints are: at one of these.
var tracefs = []string{"sys/kernel/tracing", "sys/kernel/debug/tracing"}

// tracing returns the formats of the tracepoints among events, as perf has them in its
// header: see record_tracing_data in tools/perf/util/trace-event-info.c, version 0.6. It is
// nil without tracepoints, and where a format cannot be read. Without it perf refuses the
// file.
func (h *host) tracing(events []*perfdata.Event) []byte {
	formats := map[string][]string{} // by system
	dir := ""
	for _, e := range events {
		if e.Type != perffile.TypeTracepoint {
			continue
		}
		var format string
		system, name, _ := strings.Cut(e.Name, ":")
		name, _, _ = strings.Cut(name, ":") // modifiers
		if dir, format = h.format(system, name, e.Config); format == "" {
			return nil
		}
		if !slices.Contains(formats[system], format) {
			formats[system] = append(formats[system], format)
		}
	}
	if len(formats) == 0 {
		return nil
	}
	return h.tracingData(dir, formats)
}

// format returns the format of a tracepoint, and the folder of tracefs; "" if it cannot be
// read, or another one has the name.
func (h *host) format(system, name string, id uint64) (dir, format string) {
	for _, dir := range tracefs {
		at := path.Join(dir, "events", system, name)
		if h.text(at+"/id") == strconv.FormatUint(id, 10) {
			return dir, h.text(at + "/format")
		}
	}
	return "", ""
}

// tracingData encodes formats, by system.
func (h *host) tracingData(dir string, formats map[string][]string) []byte {
	le := binary.LittleEndian
	b := append([]byte{23, 8, 68}, "tracing0.6\x00"...)
	b = append(b, 0, 8) // little endian, the size of a long
	b = le.AppendUint32(b, uint32(os.Getpagesize()))
	file := func(text string) { b = append(le.AppendUint64(b, uint64(len(text))), text...) }
	for _, name := range []string{"header_page", "header_event"} {
		b = append(append(b, name...), 0)
		file(h.text(path.Join(dir, "events", name)) + "\n")
	}
	b = le.AppendUint32(b, 0) // formats of ftrace itself
	b = le.AppendUint32(b, uint32(len(formats)))
	for _, system := range sortedKeys(formats) {
		b = append(append(b, system...), 0)
		b = le.AppendUint32(b, uint32(len(formats[system])))
		for _, format := range formats[system] {
			file(format + "\n")
		}
	}
	b = le.AppendUint32(b, 0)    // symbols of the kernel
	b = le.AppendUint32(b, 0)    // formats of trace_printk
	return le.AppendUint64(b, 0) // names of processes
}
