package perfdata_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/perfwrite"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// writePipe writes what a pipe would get.
func writePipe(t testing.TB, opts perfwrite.WriterOptions, f *perfdata.Features, records ...perfdata.Record) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := perfwrite.NewPipeWriter(&out, opts, f)
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range records {
		if err := w.WriteRecord(rec, perfdata.Trailer{PID: 7, TID: 8, Time: 99, ID: 41, CPU: 2}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(&perfdata.Features{BuildIDs: []perfdata.FileBuildID{{PID: -1, Mode: perfdata.ModeUser, BuildID: make([]byte, 20), Filename: "/bin/late"}}}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestPipeWriter(t *testing.T) {
	for _, big := range []bool{false, true} {
		want := someFeatures()
		data := writePipe(t, perfwrite.WriterOptions{Events: someEvents(), BigEndian: big}, want, &perfdata.Comm{PID: 7, TID: 8, Comm: []byte("prog")})
		r := open(t, data)
		var records []string
		for r.Next() {
			switch rec := r.Record().(type) {
			case *perfdata.Comm:
				records = append(records, "comm "+string(rec.Comm))
				if tr := rec.Trailer(); tr.Time != 99 || tr.CPU != 2 || tr.ID != 41 {
					t.Errorf("trailer %+v", tr)
				}
			case *perfdata.BuildID:
				records = append(records, "build id of "+string(rec.Filename))
			}
		}
		if r.Err() != nil || r.BigEndian() != big || !r.Pipe() {
			t.Errorf("big %v: %v, read as big %v, pipe %v", big, r.Err(), r.BigEndian(), r.Pipe())
		}
		if s := r.Stats(); s.Unknown+s.Malformed > 0 || len(s.Notes) > 0 {
			t.Errorf("%+v", s)
		}
		wantRecords := []string{"build id of [kernel.kallsyms]", "build id of /usr/bin/prog", "comm prog", "build id of /bin/late"}
		if d := cmp.Diff(wantRecords, records); d != "" {
			t.Error(d)
		}
		got := *r.Features()
		if d := cmp.Diff(want, &got, cmpopts.IgnoreUnexported(perfdata.Features{}), cmpopts.IgnoreFields(perfdata.Features{}, "Present", "BuildIDs")); d != "" {
			t.Errorf("features, -want +got:\n%s", d)
		}
		checkEvents(t, r)
	}
}

// What cannot be written is an error, also of the next call.
func TestPipeWriterFails(t *testing.T) {
	if _, err := perfwrite.NewPipeWriter(io.Discard, perfwrite.WriterOptions{}, nil); err == nil {
		t.Error("a recording without events was begun")
	}
	r, w := io.Pipe()
	r.Close()
	if _, err := perfwrite.NewPipeWriter(w, perfwrite.WriterOptions{Events: someEvents()}, nil); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("%v, want %v", err, io.ErrClosedPipe)
	}
	long := someEvents()
	long[0].IDs = make([]uint64, 1<<14)
	if _, err := perfwrite.NewPipeWriter(io.Discard, perfwrite.WriterOptions{Events: long}, nil); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("%v, want that the event's ids are too many", err)
	}
}

// TestPipeWriterPerf has perf read what was written.
func TestPipeWriterPerf(t *testing.T) {
	needPerf(t)
	a := perfdata.Attr{Type: perffile.TypeSoftware, SamplePeriod: 1000, Flags: perffile.FlagSampleIDAll,
		SampleType: perffile.SampleIP | perffile.SampleTID | perffile.SampleTime}
	file := filepath.Join(t.TempDir(), "pipe")
	f := &perfdata.Features{Hostname: "host", Arch: "x86_64", Cmdline: []string{"cyclestack", "record"}}
	data := writePipe(t, perfwrite.WriterOptions{Events: []*perfdata.Event{{Attr: a, IDs: []uint64{41}, Name: "cpu-clock"}}}, f,
		&perfdata.Comm{PID: 7, TID: 7, Comm: []byte("prog")}, &perfdata.FinishedRound{})
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if out := run(t, needPerf(t), "script", "--show-task-events", "-i", file); !strings.Contains(out, "PERF_RECORD_COMM: prog:7/7") {
		t.Errorf("perf script prints %q", out)
	}
}
