// Package hardware makes recordings as perf makes them on processors that tests do not
// have: samples of AMD's IBS with raw registers, the AUX area of Arm's SPE, and loads with
// latencies and data sources. It also calls perf, the other reader.
package hardware

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/perfwrite"
	"github.com/cyclestack/cyclestack/internal/testperf"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// A File is a recording that is being made.
type File struct {
	t   testing.TB
	mem testperf.MemFile
	w   *perfwrite.Writer
}

// New begins a recording of events. Their names, types and sample types are given; the rest
// of an event is filled in.
func New(t testing.TB, events ...*perfdata.Event) *File {
	t.Helper()
	f := &File{t: t}
	for i, e := range events {
		e.IDs = []uint64{uint64(i + 1)}
		e.Flags |= perffile.FlagSampleIDAll | perffile.FlagMmapData
		if e.SamplePeriod == 0 {
			e.SamplePeriod = 1000
		}
	}
	var err error
	if f.w, err = perfwrite.NewWriter(&f.mem, perfwrite.WriterOptions{Events: events}); err != nil {
		t.Fatal(err)
	}
	return f
}

// Add adds a record.
func (f *File) Add(rec perfdata.Record, at perfdata.Trailer) {
	f.t.Helper()
	if at.ID == 0 {
		at.ID = 1
	}
	if err := f.w.WriteRecord(rec, at); err != nil {
		f.t.Fatal(err)
	}
}

// Process adds a process that has mapped a program at 0x400000 and data at 0x7f0000000000.
// A program "//anon" is code without a file.
func (f *File) Process(program string, pid int, tids ...int) {
	f.t.Helper()
	user := perfdata.Header{Misc: perfdata.Misc(perfdata.ModeUser)}
	data := perfdata.Header{Misc: perfdata.Misc(perfdata.ModeUser) | perffile.MiscMmapData}
	at := perfdata.Trailer{PID: pid, TID: pid, Time: 1}
	f.Add(&perfdata.Comm{PID: pid, TID: pid, Comm: []byte("program")}, at)
	for _, tid := range tids {
		f.Add(&perfdata.Task{Header: perfdata.Header{Type: perffile.RecordFork}, PID: pid, PPID: pid, TID: tid, PTID: pid, Time: 1}, at)
	}
	f.Add(&perfdata.Mmap{Header: user, PID: pid, TID: pid, Addr: 0x400000, Len: 0x10000, Filename: []byte(program)}, at)
	f.Add(&perfdata.Mmap{Header: data, PID: pid, TID: pid, Addr: 0x7f0000000000, Len: 0x1000000, PgOff: 0x7f0000000000, Filename: []byte("//anon")}, at)
}

// Record adds a record of bytes, what follows it included.
func (f *File) Record(kind perfdata.RecordType, misc perfdata.Misc, body, behind []byte) {
	f.t.Helper()
	le := binary.LittleEndian
	b := le.AppendUint16(le.AppendUint16(le.AppendUint32(nil, uint32(kind)), uint16(misc)), uint16(8+len(body)))
	if _, err := f.w.Write(append(append(b, body...), behind...)); err != nil {
		f.t.Fatal(err)
	}
}

// Sample adds a sample of words.
func (f *File) Sample(misc perfdata.Misc, words ...uint64) {
	f.t.Helper()
	f.Record(perffile.RecordSample, misc, Words(words...), nil)
}

// User is the Misc of a sample that names a user's instruction exactly.
const User = perfdata.Misc(perfdata.ModeUser) | perffile.MiscExactIP

// Words are the bytes of words.
func Words(words ...uint64) []byte {
	var b []byte
	for _, w := range words {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b
}

// Raw is the raw part of a sample: its size in 4 bytes, then itself, to the end of a word.
func Raw(b []byte) []uint64 {
	n := perffile.Align(4+len(b), 8)
	whole := binary.LittleEndian.AppendUint32(nil, uint32(n-4))
	whole = append(append(whole, b...), make([]byte, n-4-len(b))...)
	var words []uint64
	for i := 0; i < n; i += 8 {
		words = append(words, binary.LittleEndian.Uint64(whole[i:]))
	}
	return words
}

// Bytes ends the recording and returns it.
func (f *File) Bytes(features *perfdata.Features) []byte {
	f.t.Helper()
	if err := f.w.Close(features); err != nil {
		f.t.Fatal(err)
	}
	return f.mem.B
}

// Write writes a recording into a file of the test.
func Write(t testing.TB, name string, b []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Perf returns what perf prints. Without perf the test is skipped.
func Perf(t testing.TB, args ...string) string {
	t.Helper()
	path, err := exec.LookPath("perf")
	if err != nil {
		t.Skip(err)
	}
	c := exec.Command(path, args...)
	c.Env = append(os.Environ(), "LC_ALL=C", "PERF_CONFIG=/dev/null", "PAGER=cat", "HOME="+t.TempDir())
	var out, msg bytes.Buffer
	c.Stdout, c.Stderr = &out, &msg
	if err := c.Run(); err != nil {
		t.Fatalf("perf %v: %v: %s", args, err, msg.String())
	}
	return out.String()
}

// withSection adds a section to the header of a recording that was written here, as perf has
// it: for what the writer does not write.
func withSection(b []byte, feature perfdata.Feature, content []byte) []byte {
	le := binary.LittleEndian
	const dataOff, dataSize, bitmap, entry = 40, 48, 72, 16
	table := int(le.Uint64(b[dataOff:]) + le.Uint64(b[dataSize:]))
	before, n := 0, 0
	for f := range perfdata.Feature(perffile.MaxFeatures) {
		if le.Uint64(b[bitmap+f/64*8:])>>(f%64)&1 == 0 {
			continue
		}
		if n++; f < feature {
			before++
		}
	}
	at := table + before*entry
	out := append([]byte(nil), b[:at]...)
	out = le.AppendUint64(le.AppendUint64(out, uint64(len(b)+entry)), uint64(len(content)))
	out = append(append(out, b[at:]...), content...)
	for i := range n + 1 {
		if i != before {
			off := table + i*entry
			le.PutUint64(out[off:], le.Uint64(out[off:])+entry)
		}
	}
	word := bitmap + int(feature/64*8)
	le.PutUint64(out[word:], le.Uint64(out[word:])|1<<(feature%64))
	return out
}
