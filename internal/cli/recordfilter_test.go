package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// needTracepoints skips a test where tracepoints cannot be sampled.
func needTracepoints(t *testing.T) {
	t.Helper()
	needSampling(t, true)
	if _, err := os.Stat("/sys/kernel/tracing/events/sched/sched_switch/id"); err != nil {
		t.Skip("tracepoints cannot be read here")
	}
}

// eachSample calls a function with each sample of a recording and its event's name.
func eachSample(t *testing.T, file string, do func(event string, s *perfdata.Sample)) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := perfdata.NewReader(f, file, perfdata.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for r.Next() {
		if s, ok := r.Record().(*perfdata.Sample); ok && s.Event() != nil {
			do(s.Event().Name, s)
		}
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
}

// TestRecordFilter has filters hold for the tracepoints of the list before them alone, and
// for child processes.
func TestRecordFilter(t *testing.T) {
	needTracepoints(t)
	const switches = "sched:sched_switch"
	for _, tt := range []struct {
		name                  string
		filters               []string
		shell, sleep, execute bool // switches from the shell, and from sleep; programs that begin
	}{
		{"none", nil, true, true, true},
		{"one", []string{"--filter", `prev_comm == "sleep"`}, false, true, true},
		{"two", []string{"--filter", `prev_comm == "sleep"`, "--filter", "prev_pid == 0"}, false, false, true},
	} {
		file := filepath.Join(t.TempDir(), "perf.data")
		args := append([]string{"-o", file, "-e", switches}, tt.filters...)
		recordHere(t, append(args, "-e", "sched:sched_process_exec", "--", "sh", "-c", "sleep 0.02; sleep 0.02; :")...)
		found := map[string]int{}
		eachSample(t, file, func(event string, s *perfdata.Sample) {
			if event != switches {
				found["exec"]++
			} else if raw := s.Raw(); len(raw) > 24 { // prev_comm follows the eight bytes that all have
				comm, _, _ := strings.Cut(string(raw[8:24]), "\x00")
				found[comm]++
			}
		})
		if found["sh"] > 0 != tt.shell || found["sleep"] > 0 != tt.sleep || found["exec"] > 1 != tt.execute {
			t.Errorf("%s: %v", tt.name, found)
		}
	}
}

// TestRecordFilterErrors has what is no filter be one line of error.
func TestRecordFilterErrors(t *testing.T) {
	needTracepoints(t)
	file := filepath.Join(t.TempDir(), "perf.data")
	for _, tt := range []struct{ args, want string }{
		{"--filter x -e sched:sched_switch", "tracepoints must precede it"},
		{"-e sched:sched_switch --filter=", "it is empty"},
		{"-e cpu-clock --filter prev_pid>0", `--filter: "prev_pid>0": cpu-clock is no tracepoint`},
		{"-e sched:sched_switch,page-faults --filter prev_pid>0", "page-faults is no tracepoint"},
		{"-e sched:sched_switch:k --filter prev_pid==", `the filter "prev_pid==" of sched:sched_switch:k: write FIELD > 1`},
		{"-e sched:sched_switch --filter nothing>0", "events/sched/sched_switch/format"},
	} {
		args := append(append([]string{"record", "-o", file}, strings.Fields(tt.args)...), "--", "true")
		var out, msg bytes.Buffer
		status := Main(context.Background(), args, nil, &out, &msg)
		if said := msg.String(); status != exitUsage || !strings.Contains(said, tt.want) || strings.Count(said, "\n") != 1 {
			t.Errorf("%s: status %d, %q, want %q", tt.args, status, said, tt.want)
		}
		if _, err := os.Stat(file); err == nil {
			t.Errorf("%s: it leaves a file", tt.args)
		}
	}
}

// TestRecordPhysical records physical addresses and transactions. Both the reader and perf
// find them, and the place within a page is that of the virtual address.
func TestRecordPhysical(t *testing.T) {
	needSampling(t, true)
	file := filepath.Join(t.TempDir(), "perf.data")
	for range tries {
		recordHere(t, "-o", file, "-e", "minor-faults", "-c", "1", "-d", "--phys-data", "--transaction", "--", "true")
		if !foreign(t, file) {
			break
		}
	}
	var found []uint64
	known := 0
	eachSample(t, file, func(_ string, s *perfdata.Sample) {
		if want := perfdata.SampleType(perffile.SamplePhysAddr | perffile.SampleTransaction); s.Event().SampleType&want != want {
			t.Fatalf("samples have %#x, want %#x", s.Event().SampleType, want)
		}
		if s.PhysAddr() != 0 {
			known++
			if (s.PhysAddr()^s.Addr())%4096 != 0 {
				t.Errorf("address %#x at %#x", s.Addr(), s.PhysAddr())
			}
		}
		found = append(found, s.PhysAddr())
	})
	if known == 0 {
		t.Skipf("the kernel knows no physical address of %d page faults", len(found))
	}
	perf := needPerf(t)
	var theirs []uint64
	for text := range strings.FieldsSeq(perf.output(t, "script", "-i", file, "-F", "phys_addr")) {
		n, err := strconv.ParseUint(text, 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		theirs = append(theirs, n)
	}
	slices.Sort(found) // perf sorts samples of several CPUs by time
	if slices.Sort(theirs); !slices.Equal(found, theirs) {
		t.Errorf("physical addresses: %#x, and of perf %#x", found, theirs)
	}
	if n := len(regexp.MustCompile(`(?m)^\W*transaction: 0$`).FindAllString(perf.output(t, "report", "-D", "-i", file), -1)); n != len(found) {
		t.Errorf("perf has transactions of %d of %d samples", n, len(found))
	}
}
