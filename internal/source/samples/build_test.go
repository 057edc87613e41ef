package samples_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/perfwrite"
	"github.com/cyclestack/cyclestack/internal/source/samples"
	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
	"github.com/cyclestack/cyclestack/internal/testperf"
	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/source"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// A recording is a perf.data file that a test makes.
type recording struct {
	t   testing.TB
	out testperf.MemFile
	w   *perfwrite.Writer
	e   []*perfdata.Event
}

// sampleType is what samples of a recording hold.
const sampleType = perffile.SampleIdentifier | perffile.SampleIP | perffile.SampleTID | perffile.SampleTime | perffile.SamplePeriod

// newRecording begins a recording of events, whose ids are 1, 2, ….
func newRecording(t testing.TB, kind perfdata.SampleType, names ...string) *recording {
	r := &recording{t: t}
	for i, name := range names {
		r.e = append(r.e, &perfdata.Event{Name: name, IDs: []uint64{uint64(i + 1)},
			Attr: perfdata.Attr{Type: perffile.TypeRaw, Config: uint64(i), SamplePeriod: 1000, SampleType: kind, Flags: perffile.FlagSampleIDAll}})
	}
	var err error
	if r.w, err = perfwrite.NewWriter(&r.out, perfwrite.WriterOptions{Events: r.e}); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *recording) add(time uint64, rec perfdata.Record) {
	r.t.Helper()
	if err := r.w.WriteRecord(rec, perfdata.Trailer{PID: 7, TID: 7, Time: time, ID: 1}); err != nil {
		r.t.Fatal(err)
	}
}

// mmap maps 64 KiB of a file.
func (r *recording) mmap(time uint64, pid int, addr uint64, file string) {
	r.add(time, &perfdata.Mmap{Header: perfdata.Header{Misc: perfdata.Misc(perfdata.ModeUser)}, PID: pid, TID: pid, Addr: addr, Len: 0x10000, Filename: []byte(file)})
}

func (r *recording) round() { r.add(0, &perfdata.FinishedRound{}) }

// sample adds a sample of an event, an id.
func (r *recording) sample(id uint64, pid int, ip, time, period uint64, misc perfdata.Misc) {
	le := binary.LittleEndian
	b := le.AppendUint64(nil, id)
	b = le.AppendUint64(b, ip)
	b = le.AppendUint32(le.AppendUint32(b, uint32(pid)), uint32(pid))
	if r.e[0].SampleType&perffile.SampleTime != 0 {
		b = le.AppendUint64(b, time)
	}
	b = le.AppendUint64(b, period)
	r.raw(b, misc)
}

// raw adds a sample with a body.
func (r *recording) raw(body []byte, misc perfdata.Misc) {
	r.t.Helper()
	le := binary.LittleEndian
	b := le.AppendUint32(nil, uint32(perffile.RecordSample))
	b = le.AppendUint16(le.AppendUint16(b, uint16(misc)), uint16(8+len(body)))
	if _, err := r.w.Write(append(b, body...)); err != nil {
		r.t.Fatal(err)
	}
}

// bytes ends the recording.
func (r *recording) bytes() []byte {
	r.t.Helper()
	if err := r.w.Close(&perfdata.Features{CPUID: "GenuineIntel,6,85,4", Cmdline: []string{"perf", "record", "--", "./prog"}}); err != nil {
		r.t.Fatal(err)
	}
	return r.out.B
}

// perfMap writes the names of code that a process made at run time, under a root
// directory, which it returns.
func perfMap(t testing.TB, root, file, text string) string {
	t.Helper()
	path := filepath.Join(root, file)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return root
}

// table reads the table of a file.
func table(t testing.TB, b []byte, by counts.Kind, root string) *counts.Table {
	t.Helper()
	return tableOf(t, samples.NewReader(bytes.NewReader(b), "test.data", samples.Options{By: by, Symbols: profile.Config{Root: root}}))
}

func tableOf(t testing.TB, r source.PlaceReader) *counts.Table {
	t.Helper()
	t.Cleanup(func() { r.Close() })
	if !r.Next() {
		t.Fatal(r.Err())
	}
	out := r.Table()
	if r.Next() || r.Err() != nil {
		t.Fatal("a second table", r.Err())
	}
	return out
}

// values are the counts of a column by label, without those that are 0.
func values(t *counts.Table, col int) map[string]float64 {
	out := map[string]float64{}
	for i := range t.Scopes {
		if v := t.Cell(i, col).Value; v != 0 {
			out[t.Scopes[i].Label] += v
		}
	}
	return out
}

// open opens a recording until the end of a test.
func open(t testing.TB, file string) *source.Recording {
	t.Helper()
	rec, err := source.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rec.Close() })
	return rec
}
