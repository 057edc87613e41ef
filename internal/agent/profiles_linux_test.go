package agent

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	pprof "github.com/google/pprof/profile"
	profiles "go.opentelemetry.io/proto/otlp/profiles/v1development"
	"google.golang.org/protobuf/encoding/protojson"

	hierarchy "github.com/cyclestack/cyclestack/internal/cgroups"
	"github.com/cyclestack/cyclestack/internal/measure"
)

// spinning starts a program of a name in a cgroup of its own, that does nothing all of the time.
func spinning(t *testing.T, mount, name string) {
	t.Helper()
	own := name + ".service"
	dir := filepath.Join(mount, own)
	for _, d := range []string{dir, filepath.Join("/sys/fs/cgroup/cpuacct", own)} { // version 1 accounts elsewhere
		if err := os.Mkdir(d, 0o755); errors.Is(err, os.ErrNotExist) {
			continue
		} else if err != nil && !errors.Is(err, os.ErrExist) {
			t.Skip(err)
		}
		t.Cleanup(func() {
			for range 100 { // until the program has left it
				if err := os.Remove(d); err == nil || errors.Is(err, os.ErrNotExist) {
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
	fd, err := os.Open(dir)
	if err != nil {
		t.Skip(err)
	}
	defer fd.Close()
	program := filepath.Join(t.TempDir(), name)
	if err := os.Symlink("/bin/sh", program); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-c", "renice -n 10 $$ > /dev/null 2>&1; while :; do :; done") // other tests need the processors
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(fd.Fd())}
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
}

// profileLength is how long a profile takes. The programs take all processors for so long.
const profileLength = 300 * time.Millisecond

// TestProfiles: what is pushed are profiles by service, as pprof and OpenTelemetry read them.
// A program's samples are in the profile of its own service.
func TestProfiles(t *testing.T) {
	t.Parallel()
	mount, err := hierarchy.Mount()
	if err != nil {
		t.Skip(err)
	}
	programs := []string{"spin-a", "spin-b"}
	for _, name := range programs {
		spinning(t, mount, name)
	}
	var mu sync.Mutex
	ingested := map[string][]byte{} // by name
	var otlp profiles.ProfilesData
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		q := r.URL.Query()
		switch {
		case r.URL.Path == "/otel/v1development/profiles" && r.Header.Get("Content-Type") == "application/json":
			z, err := gzip.NewReader(bytes.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			text, err := io.ReadAll(z)
			if err := errors.Join(err, protojson.Unmarshal(text, &otlp)); err != nil { // unknown fields are errors
				t.Errorf("%v: %.2000s", err, text)
			}
		case r.URL.Path != "/ingest" || q.Get("format") != "pprof" || q.Get("from") == "" || q.Get("until") < q.Get("from"):
			t.Errorf("%v", r.URL)
		case ingested[q.Get("name")] != nil:
			t.Errorf("%s is pushed twice", q.Get("name"))
		default:
			ingested[q.Get("name")] = body
		}
	}))
	defer server.Close()
	a, err := New(Options{Root: "/", Kernel: measure.ThisKernel(), Source: measure.OS, Settings: Usual, Labels: []string{"region=north"}})
	if err != nil {
		t.Fatal(err)
	}
	a.tick(t.Context())
	p := newPusher(a, "profiles")

	// A busy machine may not let a program run within a profile. Then another is taken.
	profiled := func(path string, read func() map[string]map[string]int64) (threads map[string]map[string]int64) {
		for range 20 {
			clear(ingested)
			if err := p.profile(t.Context(), server.URL+path, profileLength); err != nil {
				t.Skip(err) // the clock cannot be sampled here
			}
			mu.Lock()
			threads = read()
			mu.Unlock()
			if !slices.ContainsFunc(programs, func(name string) bool { return threads[name] == nil }) {
				break
			}
		}
		return threads
	}
	ownThreads(t, "pprof", profiled("", func() map[string]map[string]int64 { return ingestedThreads(t, ingested) }), programs)
	ownThreads(t, "OTLP", profiled("/otel/v1development/profiles", func() map[string]map[string]int64 { return threadsOf(t, &otlp) }), programs)
}

// ingestedThreads returns the values of pprof profiles by service and thread.
func ingestedThreads(t *testing.T, ingested map[string][]byte) map[string]map[string]int64 {
	t.Helper()
	threads := map[string]map[string]int64{}
	for name, body := range ingested {
		_, rest, ok := strings.Cut(name, ",service_name=")
		if !ok || !strings.HasPrefix(name, "cyclestack{host=") || !strings.HasSuffix(name, ",region=north}") {
			t.Errorf("%s", name)
		}
		service, _, _ := strings.Cut(rest, ",")
		prof, err := pprof.ParseData(body)
		if err != nil {
			t.Fatal(err)
		}
		if err := prof.CheckValid(); err != nil || len(prof.Sample) == 0 || len(prof.Function) == 0 {
			t.Errorf("%v, %d samples of %d functions", err, len(prof.Sample), len(prof.Function))
		}
		threads[service] = map[string]int64{}
		for _, s := range prof.Sample {
			threads[service][s.Label["thread"][0]] += s.Value[0]
		}
	}
	return threads
}

// ownThreads sees that a program's samples are in the profile of its service alone.
func ownThreads(t *testing.T, what string, threads map[string]map[string]int64, programs []string) {
	t.Helper()
	for _, name := range programs {
		if threads[name][name] == 0 || len(threads[name]) != 1 {
			t.Errorf("%s: service %s has samples of %v", what, name, threads[name])
		}
		for service, of := range threads {
			if service != name && of[name] > 0 {
				t.Errorf("%s: service %s has %d samples of %s", what, service, of[name], name)
			}
		}
	}
}

// threadsOf returns the values of OTLP profiles by service and thread. Each index is in its
// table, and each table begins with nothing.
func threadsOf(t *testing.T, data *profiles.ProfilesData) map[string]map[string]int64 {
	t.Helper()
	d := data.Dictionary
	if d.StringTable[0] != "" || d.StackTable[0].LocationIndices != nil || d.LocationTable[0].Lines != nil || d.FunctionTable[0].NameStrindex != 0 || d.AttributeTable[0].Value != nil || len(d.LinkTable) != 1 || d.MappingTable[0].FilenameStrindex != 0 {
		t.Error("a table does not begin with nothing")
	}
	threads, functions := map[string]map[string]int64{}, 0
	for _, r := range data.ResourceProfiles {
		service, region := "", ""
		for _, kv := range r.Resource.Attributes {
			switch kv.Key {
			case "service.name":
				service = kv.Value.GetStringValue()
			case "region":
				region = kv.Value.GetStringValue()
			}
		}
		if service == "" || region != "north" || threads[service] != nil || len(r.ScopeProfiles) != 1 {
			t.Errorf("%v", r.Resource)
		}
		threads[service] = map[string]int64{}
		for _, p := range r.ScopeProfiles[0].Profiles {
			if p.TimeUnixNano == 0 || p.DurationNano < uint64(profileLength) || d.StringTable[p.SampleType.TypeStrindex] == "" || d.StringTable[p.SampleType.UnitStrindex] == "" {
				t.Errorf("%v", p)
			}
			for _, s := range p.Samples {
				x := d.AttributeTable[s.AttributeIndices[0]]
				if d.StringTable[x.KeyStrindex] != "thread.name" || len(s.Values) != 1 {
					t.Errorf("%v", s)
				}
				threads[service][x.Value.GetStringValue()] += s.Values[0]
				for _, l := range d.StackTable[s.StackIndex].LocationIndices {
					for _, line := range d.LocationTable[l].Lines {
						functions += len(d.StringTable[d.FunctionTable[line.FunctionIndex].NameStrindex])
					}
					_ = d.MappingTable[d.LocationTable[l].MappingIndex]
				}
			}
		}
	}
	if functions == 0 {
		t.Error("no function has a name")
	}
	return threads
}
