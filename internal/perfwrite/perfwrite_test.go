package perfwrite_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/perfwrite"
	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
	"github.com/cyclestack/cyclestack/internal/testperf"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// A writer is what both forms have.
type writer interface {
	io.Writer
	WriteRecord(perfdata.Record, perfdata.Trailer) error
	Close(*perfdata.Features) error
}

const kind = perffile.SampleIdentifier | perffile.SampleIP | perffile.SampleTID | perffile.SampleTime | perffile.SamplePeriod

// samples are the instruction pointers and periods that are written.
var samples = []struct{ ip, period uint64 }{{0x401000, 1000}, {0x401004, 1000}, {0x402000, 3000}}

// recordings returns the same recording in a file and through a pipe.
func recordings(t *testing.T, big bool) map[string][]byte {
	t.Helper()
	o := perfwrite.WriterOptions{BigEndian: big, Events: []*perfdata.Event{{Name: "cycles", IDs: []uint64{17},
		Attr: perfdata.Attr{Type: perffile.TypeHardware, SamplePeriod: 1000, SampleType: kind, Flags: perffile.FlagSampleIDAll | perffile.FlagComm | perffile.FlagMmap}}}}
	f := &perfdata.Features{Hostname: "host", OSRelease: "6.1", Cmdline: []string{"perf", "record", "./app"}, CPUID: "GenuineIntel,6,85,4"}
	var file testperf.MemFile
	w, err := perfwrite.NewWriter(&file, o)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, w, f, big)
	var pipe bytes.Buffer
	p, err := perfwrite.NewPipeWriter(&pipe, o, f)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, p, f, big)
	return map[string][]byte{"file": file.B, "pipe": pipe.Bytes()}
}

func fill(t *testing.T, w writer, f *perfdata.Features, big bool) {
	t.Helper()
	at := perfdata.Trailer{PID: 7, TID: 8, Time: 1_000_000_000, ID: 17}
	for _, rec := range []perfdata.Record{
		&perfdata.Comm{PID: 7, TID: 8, Comm: []byte("app")},
		&perfdata.Mmap{Header: perfdata.Header{Misc: perfdata.Misc(perfdata.ModeUser)}, PID: 7, TID: 8, Addr: 0x400000, Len: 0x10000, Filename: []byte("/bin/app")},
	} {
		if err := w.WriteRecord(rec, at); err != nil {
			t.Fatal(err)
		}
	}
	var order binary.AppendByteOrder = binary.LittleEndian
	if big {
		order = binary.BigEndian
	}
	for i, s := range samples {
		body := order.AppendUint64(order.AppendUint64(nil, 17), s.ip)
		body = order.AppendUint32(order.AppendUint32(body, 7), 8)
		body = order.AppendUint64(order.AppendUint64(body, 2_000_000_000+uint64(i)), s.period)
		head := order.AppendUint32(nil, uint32(perffile.RecordSample))
		head = order.AppendUint16(order.AppendUint16(head, uint16(perfdata.ModeUser)), uint16(8+len(body)))
		if _, err := w.Write(append(head, body...)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(f); err != nil {
		t.Fatal(err)
	}
}

// TestWriters: package perfdata reads what was written, in both forms and byte orders.
func TestWriters(t *testing.T) {
	for _, big := range []bool{false, true} {
		for form, b := range recordings(t, big) {
			r, err := perfdata.NewReader(bytes.NewReader(b), form, perfdata.Options{})
			if err != nil {
				t.Fatalf("%s, big endian %t: %v", form, big, err)
			}
			n, comm, file := 0, "", ""
			for r.Next() {
				switch rec := r.Record().(type) {
				case *perfdata.Sample:
					if n >= len(samples) || rec.IP() != samples[n].ip || rec.Period() != samples[n].period || rec.PID() != 7 || rec.TID() != 8 {
						t.Errorf("%s, big endian %t: sample %d at %#x for %d", form, big, n, rec.IP(), rec.Period())
					}
					n++
				case *perfdata.Comm:
					comm = string(rec.Comm)
				case *perfdata.Mmap:
					file = string(rec.Filename)
				}
			}
			if err := r.Err(); err != nil || n != len(samples) || comm != "app" || file != "/bin/app" {
				t.Errorf("%s, big endian %t: %d samples, comm %q, file %q, %v", form, big, n, comm, file, err)
			}
			if f := r.Features(); f.Hostname != "host" || strings.Join(f.Cmdline, " ") != "perf record ./app" {
				t.Errorf("%s, big endian %t: features %+v", form, big, f)
			}
		}
	}
}

// TestPerfReads: Linux's perf finds the same samples.
func TestPerfReads(t *testing.T) {
	perf, err := exec.LookPath("perf")
	if err != nil {
		t.Skip(err)
	}
	line := regexp.MustCompile(`(?m)^\s*app\s+8\s+2\.0+\d*:\s+(\d+)\s+cycles:\S*\s+([0-9a-f]+)\s*$`)
	for form, b := range recordings(t, false) {
		name := filepath.Join(t.TempDir(), form)
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(perf, "script", "-f", "-i", name, "-F", "comm,tid,time,period,event,ip").CombinedOutput()
		if got := line.FindAllString(string(out), -1); err != nil || len(got) != len(samples) || !strings.Contains(got[2], "3000") || !strings.Contains(got[2], "402000") {
			t.Errorf("%s: %v\n%s", form, err, out)
		}
	}
}

// TestNothing: a recording needs an event.
func TestNothing(t *testing.T) {
	if _, err := perfwrite.NewWriter(&testperf.MemFile{}, perfwrite.WriterOptions{}); err == nil {
		t.Error("a file without events")
	}
	if _, err := perfwrite.NewPipeWriter(io.Discard, perfwrite.WriterOptions{}, nil); err == nil {
		t.Error("a pipe without events")
	}
}

// TestCompressed: what is compressed is read again, in the same order, also what cannot be
// made smaller; perf's size limits hold.
func TestCompressed(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, pipe := range []bool{false, true} {
		var f testperf.MemFile
		var out bytes.Buffer
		o := perfwrite.WriterOptions{Level: 3, Events: []*perfdata.Event{{Name: "cycles", IDs: []uint64{1},
			Attr: perfdata.Attr{SamplePeriod: 1, SampleType: perffile.SampleIdentifier | perffile.SampleIP | perffile.SampleTime}}}}
		var w interface {
			writer
			Size() int64
		}
		var err error
		if w, err = perfwrite.NewWriter(&f, o); pipe {
			w, err = perfwrite.NewPipeWriter(&out, o, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		const rounds, each = 30, 4000
		want := make([]uint64, 0, rounds*each)
		var b []byte
		for round := range rounds {
			b = b[:0]
			for i := range each {
				ip := uint64(0x1000)
				if round%3 == 0 {
					ip = random.Uint64() >> 1
				}
				want = append(want, ip)
				b = binary.LittleEndian.AppendUint64(b, uint64(perffile.RecordSample)|32<<48)
				for _, word := range []uint64{1, ip, uint64(round*each + i + 1)} {
					b = binary.LittleEndian.AppendUint64(b, word)
				}
			}
			cut := 12345 // in the middle of a record, as where a ring ends
			for _, piece := range [][]byte{b[:cut], b[cut:]} {
				if _, err := w.Write(piece); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.WriteRecord(&perfdata.FinishedRound{}, perfdata.Trailer{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(nil); err != nil {
			t.Fatal(err)
		}
		data := f.B
		if pipe {
			data = out.Bytes()
		}
		if plain := int64(32 * rounds * each); w.Size() > plain*2/3 || int64(len(data)) < w.Size() {
			t.Errorf("pipe %v: %d bytes of records in %d, %d without compression", pipe, w.Size(), len(data), plain)
		}
		r, err := perfdata.NewReader(bytes.NewReader(data), "x", perfdata.Options{})
		if err != nil {
			t.Fatal(err)
		}
		n, ends := 0, 0
		for r.Next() {
			switch rec := r.Record().(type) {
			case *perfdata.Sample:
				if n >= len(want) || rec.IP() != want[n] || rec.Time() != uint64(n+1) || ends != n/each {
					t.Fatalf("pipe %v: sample %d: %#x at %d in round %d", pipe, n, rec.IP(), rec.Time(), ends)
				}
				n++
			case *perfdata.FinishedRound:
				ends++
			}
		}
		if r.Err() != nil || n != len(want) || ends != rounds {
			t.Errorf("pipe %v: %d samples, %d rounds, %v", pipe, n, ends, r.Err())
		}
	}
}
