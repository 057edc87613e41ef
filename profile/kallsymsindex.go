package profile

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"os"
	"strings"

	"github.com/cyclestack/cyclestack/internal/object"
)

// The header of a kept list of the kernel's symbols: the mark with its version, and a checksum of
// what follows it. Then come the addresses of _text and _stext, and the number of ranges. Starts,
// sizes and ends of names among the names follow. Numbers are little-endian.
const (
	kallsymsMark   = "cyclestack kal 1"
	kallsymsHeader = len(kallsymsMark) + 4 + 16 + 4
	kallsymsRange  = 8 + 8 + 4
)

// markNames are the symbols that kernels are compared by.
var markNames = [2]string{"_text", "_stext"}

// packed returns a settled table as it is kept.
func (t *nameTable) packed() []byte {
	le := binary.LittleEndian
	out := append(make([]byte, 0, kallsymsHeader+kallsymsRange*len(t.ranges)+len(t.names)), kallsymsMark...)
	out = append(out, 0, 0, 0, 0)
	for _, name := range markNames {
		out = le.AppendUint64(out, t.marks[name])
	}
	out = le.AppendUint32(out, uint32(len(t.ranges)))
	end := uint32(0)
	for _, r := range t.ranges {
		end += uint32(r.length)
		out = le.AppendUint32(le.AppendUint64(le.AppendUint64(out, r.start), r.size), end)
	}
	for _, r := range t.ranges {
		out = append(out, t.names[r.name:r.name+uint32(r.length)]...)
	}
	return object.Seal(out, len(kallsymsMark))
}

// parseKallsyms reads a table that was kept; nil if the data is damaged.
func parseKallsyms(data []byte) *nameTable {
	le, at := binary.LittleEndian, len(kallsymsMark)
	if len(data) < kallsymsHeader || string(data[:at]) != kallsymsMark || !object.Sealed(data, at) {
		return nil
	}
	n, rest := uint64(le.Uint32(data[at+20:])), data[kallsymsHeader:]
	if n*kallsymsRange > uint64(len(rest)) {
		return nil
	}
	t := &nameTable{marks: map[string]uint64{}, ranges: make([]namedRange, n), names: rest[n*kallsymsRange:]}
	for i, name := range markNames {
		if v := le.Uint64(data[at+4+8*i:]); v != 0 {
			t.marks[name] = v
		}
	}
	begin := uint32(0)
	for i := range t.ranges {
		b := rest[i*kallsymsRange:]
		r, end := namedRange{start: le.Uint64(b), size: le.Uint64(b[8:]), name: begin, order: uint32(i)}, le.Uint32(b[16:])
		if end < begin || end-begin > 1<<16-1 || uint64(end) > uint64(len(t.names)) || i > 0 && r.start <= t.ranges[i-1].start {
			return nil
		}
		r.length, begin = uint16(end-begin), end
		t.ranges[i] = r
	}
	return t
}

// readList reads a list of symbols. One of the running kernel that was kept holds until the next
// start, or until modules change.
func (c Config) readList(path string) (*nameTable, error) {
	name := ""
	if path == ownKallsyms && c.Indexes != nil {
		name = runningName()
	}
	if name == "" {
		return openKallsyms(path)
	}
	if t := parseKallsyms(c.Indexes.Read(name)); t != nil {
		return t, nil
	}
	t, err := openKallsyms(path)
	if err == nil && !t.passing {
		c.Indexes.Write(name, t.packed())
	}
	return t, err
}

// runningName returns the name of the index of the running kernel with its modules; "" if it
// does not say which it is. Its addresses change from boot to boot.
func runningName() string {
	id := runningBuildID()
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if id == "" || err != nil {
		return ""
	}
	modules, err := os.ReadFile("/proc/modules") // of a kernel without modules it is absent
	if err != nil && !os.IsNotExist(err) {
		return ""
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{string(boot), string(modules)}, "\x00")))
	return id + "." + hex.EncodeToString(sum[:16])
}
