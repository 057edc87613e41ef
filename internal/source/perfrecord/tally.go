package perfrecord

import (
	"bytes"
	"encoding/binary"
	"io"

	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// A tally looks at the kernel's records as they pass to a file: it counts them,
// and remembers which files were mapped. Of samples it reads but the time.
type tally struct {
	to io.Writer

	samples, lost, throttled int64
	bytes                    int64
	first, last              uint64 // times of samples

	seen  *seen  // nil if all processes are described
	part  []byte // a record that is not complete yet
	files map[string]inode
	pids  map[int]struct{} // processes that began while samples were taken, and have not ended
}

// An inode is what a name of a file stood for when it was mapped.
type inode struct {
	major, minor uint32
	number       uint64
}

// timeAt is where the time of a sample is: behind the identifier, the address of
// the instruction, which is at addrAt, and the thread, which is at pidAt.
const (
	addrAt = 8
	pidAt  = 16
	timeAt = 24
)

// headerSize is the size of struct perf_event_header.
const headerSize = 8

// maxFiles bounds the files that are remembered.
const maxFiles = 1 << 14

// Write passes records on.
func (t *tally) Write(p []byte) (int, error) {
	t.bytes += int64(len(p))
	t.scan(p)
	return t.to.Write(p)
}

// scan looks at a piece of the records. The first may have begun in an earlier piece,
// and the last may end in a later one.
func (t *tally) scan(p []byte) {
	if len(t.part) > 0 {
		// Records are of whole words of 64 bits, so that the header is there.
		missing := int(binary.NativeEndian.Uint16(t.part[6:])) - len(t.part)
		if missing > len(p) {
			t.part = append(t.part, p...)
			return
		}
		t.record(append(t.part, p[:missing]...))
		t.part = t.part[:0]
		p = p[missing:]
	}
	for len(p) >= headerSize {
		size := int(binary.NativeEndian.Uint16(p[6:]))
		if size < headerSize {
			return // the kernel does not write such a thing
		}
		if size > len(p) {
			t.part = append(t.part, p...)
			return
		}
		t.record(p[:size])
		p = p[size:]
	}
}

func (t *tally) record(b []byte) {
	mode := perfdata.Mode(binary.NativeEndian.Uint16(b[4:]) & perffile.MiscModeMask)
	switch perfdata.RecordType(binary.NativeEndian.Uint32(b)) {
	case perffile.RecordSample:
		t.samples++
		if b = b[headerSize:]; len(b) >= timeAt+8 {
			t.time(binary.NativeEndian.Uint64(b[timeAt:]))
			if t.seen != nil {
				addr := uint64(0)
				if mode == perfdata.ModeUser {
					addr = binary.NativeEndian.Uint64(b[addrAt:])
				}
				t.seen.sample(int(int32(binary.NativeEndian.Uint32(b[pidAt:]))), int(int32(binary.NativeEndian.Uint32(b[pidAt+4:]))), addr)
			}
		}
	case perffile.RecordLost:
		if len(b) >= headerSize+16 {
			t.lost += int64(binary.NativeEndian.Uint64(b[headerSize+8:]))
		}
	case perffile.RecordThrottle:
		t.throttled++
	case perffile.RecordMmap2:
		t.mmap2(b)
	case perffile.RecordFork, perffile.RecordExit:
		t.task(b)
	}
	if t.seen != nil {
		if c, ok := changeOf(b); ok {
			t.seen.note(c)
		}
	}
}

// maxPIDs bounds the processes that are remembered.
const maxPIDs = 1 << 16

// task remembers a process that begins, and forgets one whose first thread ends.
func (t *tally) task(b []byte) {
	if len(b) < headerSize+16 {
		return
	}
	pid, tid := int(int32(binary.NativeEndian.Uint32(b[headerSize:]))), int(int32(binary.NativeEndian.Uint32(b[headerSize+8:])))
	switch began := perfdata.RecordType(binary.NativeEndian.Uint32(b)) == perffile.RecordFork; {
	case !began && pid == tid:
		delete(t.pids, pid)
	case began && len(t.pids) < maxPIDs:
		if t.pids == nil {
			t.pids = map[int]struct{}{}
		}
		t.pids[pid] = struct{}{}
	}
}

// time widens the times of samples, which do not come in order.
func (t *tally) time(now uint64) {
	if t.first == 0 || now < t.first {
		t.first = now
	}
	t.last = max(t.last, now)
}

// mmap2 remembers a file that was mapped, unless the kernel has given its build
// id. See PERF_RECORD_MMAP2 in include/uapi/linux/perf_event.h.
func (t *tally) mmap2(b []byte) {
	const major, minor, number, name = 40, 44, 48, 72
	misc := perfdata.Misc(binary.NativeEndian.Uint16(b[4:]))
	if len(b) <= name || misc&(perffile.MiscMmapBuildID|perffile.MiscMmapData) != 0 {
		return
	}
	file, _, _ := bytes.Cut(b[name:], []byte{0})
	t.mapped(string(file), inode{binary.NativeEndian.Uint32(b[major:]), binary.NativeEndian.Uint32(b[minor:]), binary.NativeEndian.Uint64(b[number:])})
}

func (t *tally) mapped(file string, is inode) {
	if len(t.files) >= maxFiles || is.number == 0 || len(file) == 0 || file[0] != '/' {
		return
	}
	if t.files == nil {
		t.files = map[string]inode{}
	}
	t.files[file] = is
}

// buildIDs reads the build ids of the files that were mapped, of those that are
// still what they were.
func (t *tally) buildIDs(k *Kept) []perfdata.FileBuildID {
	var list []perfdata.FileBuildID
	for _, name := range sortedKeys(t.files) {
		if !t.files[name].is(name) {
			continue // it is another file by now, or in another container
		}
		if id := k.buildID(name, t.files[name]); len(id) > 0 {
			list = append(list, perfdata.FileBuildID{PID: -1, Mode: perfdata.ModeUser, BuildID: id, Filename: name})
		}
	}
	return list
}
