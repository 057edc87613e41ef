package perfdata_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/testshared"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// A perfTruth is what perf 6.1 prints of a file.
type perfTruth struct {
	Samples  int64            `json:"samples_D"`
	Script   map[string]int64 `json:"script_by_event"`
	ScriptRC int              `json:"script_rc"`
	Records  map[string]int64 `json:"records"`
	DumpRC   int              `json:"dump_rc"`
	Header   struct {
		Arch, Cmdline, CPUDesc, CPUID, OS string
		NrCPUs                            string `json:"nrcpus"`
		Version                           string `json:"perf_version"`
	}
	Events []string
}

// A walkTruth is what an independent walk over the records found, which does not
// look into compressed records.
type walkTruth struct {
	Err        string
	Samples    int64            `json:"raw_samples"`
	Types      map[string]int64 `json:"rectypes"`
	Compressed int64
	DataSize   int64 `json:"data_size"`
	Mode       string
}

func readTruth[T any](t *testing.T, name string) map[string]T {
	t.Helper()
	b, err := os.ReadFile(testshared.Dir(t, "corpus", "perfdata-golden", name))
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]T{}
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

type walked struct {
	events  map[string]int64
	samples int64
	stats   perfdata.Stats
	r       *perfdata.Reader
	err     error
}

// walk reads a whole file, and every field of its samples.
func walk(path string) walked {
	w := walked{events: map[string]int64{}}
	f, err := os.Open(path)
	if err != nil {
		w.err = err
		return w
	}
	defer f.Close()
	w.r, w.err = perfdata.NewReader(f, filepath.Base(path), perfdata.Options{})
	if w.err != nil {
		return w
	}
	defer w.r.Close()
	for w.r.Next() {
		if s, ok := w.r.Record().(*perfdata.Sample); ok {
			w.samples++
			w.events[s.Event().Name]++
			touch(s)
		}
	}
	w.stats, w.err = w.r.Stats(), w.r.Err()
	return w
}

// sink keeps what benchmarks read from being optimised away, touched what tests
// do: they run in parallel.
var (
	sink    uint64
	touched atomic.Uint64
)

// touch reads all of a sample.
func touch(s *perfdata.Sample) {
	sum := s.IP() + uint64(s.PID()+s.TID()+s.CPU()) + s.Time() + s.Addr() + s.ID() + s.StreamID() + s.Period()
	for c, i := s.Callchain(), 0; i < c.Len(); i++ {
		sum += c.At(i)
	}
	var reading perfdata.Reading
	if s.Read(&reading) {
		sum += uint64(len(reading.Values))
	}
	for b, i := s.Branches(), 0; i < b.Len(); i++ {
		sum += b.At(i).From
	}
	_, regs := s.RegsUser()
	_, intr := s.RegsIntr()
	sum += uint64(len(s.Raw()) + len(s.StackUser()) + len(s.Aux()) + regs.Len() + intr.Len())
	sum += s.Weight().Latency + uint64(len(perffile.DataSrc(s.DataSrc()).String())) + s.Transaction() + s.PhysAddr() + s.Cgroup() +
		s.DataPageSize()
	touched.Add(sum)
}

// TestShared compares every file of the corpus with what perf makes of it. If perf cannot read
// it, the independent walk decides.
func TestShared(t *testing.T) {
	dir := testshared.Dir(t, "corpus", "perfdata")
	perf := readTruth[perfTruth](t, "perf6.1-truth.json")
	walks := readTruth[walkTruth](t, "own-record-counts.json")
	if len(perf) != 89 {
		t.Fatalf("truth of %d files, want 89", len(perf))
	}
	for name, want := range perf {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, name)
			got := walk(path)
			if got.err != nil {
				checkError(t, got.err)
			}
			if walks[name].Err == "" {
				compareWalk(t, got, walks[name])
			}
			if want.DumpRC == 0 && want.Samples > 0 {
				comparePerf(t, got, want)
				compareHeader(t, got.r.Features(), want)
			}
			compareTables(t, path, got)
			t.Logf("%d samples %v, err %v, notes %q", got.samples, got.events, got.err, got.stats.Notes)
		})
	}
}

// withoutHost takes the letters of host and guest off an event's name: perf adds
// them to attributes by other writers, and to those of pipes.
func withoutHost(event string) string {
	base, modifiers, ok := strings.Cut(event, ":")
	if !ok {
		return event
	}
	return strings.TrimSuffix(base+":"+strings.NewReplacer("H", "", "G", "").Replace(modifiers), ":")
}

func compareHeader(t *testing.T, got *perfdata.Features, want perfTruth) {
	t.Helper()
	h := want.Header
	for _, x := range []struct{ what, got, want string }{
		{"arch", got.Arch, h.Arch}, {"cpuid", got.CPUID, h.CPUID}, {"cpudesc", got.CPUDesc, h.CPUDesc},
		{"os", got.OSRelease, h.OS}, {"perf version", got.Version, h.Version},
		{"command", strings.TrimSpace(strings.Join(got.Cmdline, " ")), h.Cmdline}, {"cpus", strconv.Itoa(got.Online), h.NrCPUs},
	} {
		if x.want != "" && x.want != "(null)" && x.got != x.want {
			t.Errorf("%s: %q, want perf's %q", x.what, x.got, x.want)
		}
	}
}

// compareTables makes a table of the file, whose samples must be those that were
// walked over, in bounded memory.
func compareTables(t *testing.T, path string, want walked) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := perfdata.NewTableReader(f, filepath.Base(path), perfdata.TableOptions{By: counts.By(0).With(counts.Thread).With(counts.CPU)})
	got := map[string]int64{}
	tables := 0
	for r.Next() {
		tables++
		table := r.Table()
		for i := range table.Scopes {
			for j, c := range table.Columns {
				got[c.Event] += table.Cell(i, j).Samples
			}
		}
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 100<<20 {
		t.Errorf("%d MB were allocated", n>>20)
	}
	if tables == 0 {
		checkError(t, r.Err())
	} else if r.Err() != nil {
		t.Errorf("an error after %d tables: %v", tables, r.Err())
	}
	for event, n := range want.events {
		if got[event] != n && !strings.Contains(strings.Join(counts.Texts(r.Table().Notes), "\n"), event+": ") {
			t.Errorf("%s: %d samples in tables, want %d; notes %q", event, got[event], n, r.Table().Notes)
		}
	}
}

func checkError(t *testing.T, err error) {
	t.Helper()
	var e *perfdata.Error
	if !errors.As(err, &e) {
		t.Errorf("error of type %T: %v", err, err)
	}
	if strings.ContainsAny(err.Error(), "\n\r") || len(err.Error()) > 300 {
		t.Errorf("an error that is not one line: %q", err)
	}
}

func compareWalk(t *testing.T, got walked, want walkTruth) {
	t.Helper()
	if want.Mode == "file" && want.DataSize == 0 {
		return // the walk does not read unterminated files
	}
	if got.err != nil {
		t.Errorf("error: %v", got.err)
	}
	if want.Compressed == 0 && want.Types["83"] == 0 && got.samples != want.Samples {
		t.Errorf("%d samples, want %d", got.samples, want.Samples)
	}
	for key, n := range want.Types {
		x, err := strconv.Atoi(key)
		if err != nil {
			t.Fatal(err)
		}
		have := got.stats.Records[perfdata.RecordType(x)]
		if have != n && (have < n || want.Compressed == 0 && want.Types["83"] == 0) {
			t.Errorf("%d records of %v, want %d", have, perfdata.RecordType(x), n)
		}
	}
}

func comparePerf(t *testing.T, got walked, want perfTruth) {
	t.Helper()
	if got.samples != want.Samples {
		t.Errorf("%d samples, want perf's %d", got.samples, want.Samples)
	}
	sum := int64(0)
	for _, n := range want.Script {
		sum += n
	}
	if want.ScriptRC == 0 && sum == want.Samples {
		for event, n := range want.Script {
			if got.events[event] == 0 {
				event = withoutHost(event)
			}
			if got.events[event] != n {
				t.Errorf("event %s: %d samples, want perf's %d (have %v)", event, got.events[event], n, got.events)
			}
		}
	}
}
