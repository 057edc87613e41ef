//go:build linux

package perfrecord_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cyclestack/cyclestack/internal/source/perfrecord"
	"github.com/cyclestack/cyclestack/source/perfdata"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// program faults some hundred times, and starts another.
var program = []string{"sh", "-c", "i=0; while [ $i -lt 1000 ]; do i=$((i+1)); done; ls / > /dev/null"}

// start starts a recording of program, or skips the test where samples may not be
// taken.
func start(t *testing.T, out io.Writer, events string, change func(*perfevent.SampleSpec)) (*perfrecord.Recording, error) {
	t.Helper()
	sys, err := perfevent.ReadSystem(os.DirFS("/"))
	if err != nil {
		t.Fatal(err)
	}
	spec := perfevent.SampleSpec{Target: perfevent.Target{Command: program}}
	if spec.Groups, err = sys.ResolveSampled(events, 1, false); err != nil {
		t.Fatal(err)
	}
	change(&spec)
	r, err := perfrecord.Start(context.Background(), sys, spec, out, perfrecord.Options{Cmdline: []string{"cyclestack", "record"}, Version: "1", CPUID: "AuthenticAMD-25-11-1"})
	if e := (*perfevent.OpenError)(nil); errors.As(err, &e) && errors.Is(e, syscall.EACCES) {
		t.Skipf("not allowed here: %v", err)
	}
	return r, err
}

// What is recorded can be read: as many samples as it says, of programs that are
// known, in a file and through a pipe.
func TestRecording(t *testing.T) {
	for _, tt := range []struct {
		name   string
		events string
		change func(*perfevent.SampleSpec)
	}{
		{"plain", "page-faults", func(*perfevent.SampleSpec) {}},
		{"callchains", "page-faults,context-switches", func(s *perfevent.SampleSpec) { s.Callchains = true }},
		{"cgroups", "page-faults", func(s *perfevent.SampleSpec) { s.Cgroups = true }},
		{"alone", "{page-faults,context-switches}:S", func(s *perfevent.SampleSpec) { s.NoInherit = true }},
		{"times", "page-faults,context-switches", func(s *perfevent.SampleSpec) { s.Times = perfevent.InheritedReads() }},
		{"data", "page-faults", func(s *perfevent.SampleSpec) { s.Groups[0][0].SampleMemory() }},
	} {
		for _, pipe := range []bool{false, true} {
			name := filepath.Join(t.TempDir(), "perf.data")
			f, err := os.Create(name)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			var out io.Writer = f
			if pipe {
				out = struct{ io.Writer }{f} // which cannot be sought in
			}
			r, err := start(t, out, tt.events, tt.change)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Run(); err != nil {
				t.Fatal(err)
			}
			if err := r.Close(); err != nil || !r.State().Success() {
				t.Errorf("%s: %v, %v", tt.name, err, r.State())
			}
			check(t, tt.name, name, r.Stats(), pipe)
		}
	}
}

// check reads a recording.
func check(t *testing.T, what, name string, stats perfrecord.Stats, pipe bool) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := perfdata.NewReader(f, name, perfdata.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	maps, cgroups, addresses, chains := "", 0, 0, 0
	var reading perfdata.Reading
	for r.Next() {
		switch rec := r.Record().(type) {
		case *perfdata.Mmap:
			maps += string(rec.Filename) + "\n"
		case *perfdata.Cgroup:
			cgroups++
		case *perfdata.Sample:
			if rec.Addr() != 0 {
				addresses++
			}
			chains += rec.Callchain().Len()
			if wanted := what == "times" && perfevent.InheritedReads(); wanted && (!rec.Read(&reading) || reading.Enabled == 0 || reading.Running == 0) {
				t.Errorf("%s: a sample has no times: %+v", what, reading)
			}
		}
	}
	s, features := r.Stats(), r.Features()
	if r.Err() != nil || s.Unknown+s.Malformed+s.Orphans > 0 || s.Unterminated || s.Truncated >= 0 || len(s.Notes) > 0 {
		t.Errorf("%s: %v, %+v", what, r.Err(), s)
	}
	if s.Samples != stats.Samples || s.Samples < 20 || s.Lost != stats.Lost {
		t.Errorf("%s: %d samples and %d lost are in the file of %+v", what, s.Samples, s.Lost, stats)
	}
	if !strings.Contains(maps, "/sh\n") && !strings.Contains(maps, "/dash\n") && !strings.Contains(maps, "/bash\n") && !strings.Contains(maps, "/busybox\n") {
		t.Errorf("%s: no shell was mapped: %s", what, maps)
	}
	if features.CPUIDString() != "AuthenticAMD-25-11-1" || features.CPUs == 0 || features.OSRelease == "" || r.Pipe() != pipe {
		t.Errorf("%s: %+v", what, features)
	}
	if first, last := features.SampleTime[0], features.SampleTime[1]; !pipe && (first == 0 || last <= first) {
		t.Errorf("%s: samples from %d to %d", what, first, last)
	}
	if (chains > 0) != (what == "callchains") || (addresses > 0) != (what == "data") || what == "cgroups" && cgroups == 0 {
		t.Errorf("%s: %d addresses in callchains, %d of data, %d cgroups", what, chains, addresses, cgroups)
	}
}

// A failing is a file with room for so many bytes.
type failing struct{ room int }

var errFull = errors.New("it is full")

func (f *failing) Write(p []byte) (int, error) {
	if f.room -= len(p); f.room < 0 {
		return 0, errFull
	}
	return len(p), nil
}

// Errors of writing are told as such, whenever they come, and the program is ended.
func TestRecordingFails(t *testing.T) {
	var all bytes.Buffer
	r, err := start(t, &all, "page-faults", func(*perfevent.SampleSpec) {})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Run(); err != nil {
		t.Fatal(err)
	}
	r.Close()
	for _, room := range []int{0, 200, all.Len() / 2} {
		r, err := start(t, &failing{room}, "page-faults", func(*perfevent.SampleSpec) {})
		if err == nil {
			err = r.Run()
			r.Close()
		}
		if e := (*perfrecord.WriteError)(nil); !errors.As(err, &e) || !errors.Is(err, errFull) {
			t.Errorf("room for %d bytes of %d: %v", room, all.Len(), err)
		}
	}
	if _, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err != syscall.ECHILD {
		t.Errorf("a program is left: %v", err)
	}
}
