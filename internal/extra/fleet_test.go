package extra_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cyclestack/cyclestack/internal/extra"
	"github.com/cyclestack/cyclestack/internal/testfleet"
)

// TestFleetFailOn: the exit status of the command says what a comparison in a real Prometheus
// found: 0, 1 for a change beyond the limit, 2 for a wrong limit, and 4 without a store.
func TestFleetFailOn(t *testing.T) {
	t.Parallel()
	s, err := testfleet.Prometheus(t.TempDir(), "")
	if errors.Is(err, testfleet.ErrNone) {
		t.Skipf("%v: apt-get install prometheus", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	f := &testfleet.Fleet{Hosts: 200, Services: 2, Levels: 2, Spread: 0.05, Seed: 7, Worse: 0.1, WorseService: 1, CanaryEvery: 4}
	times := testfleet.Times(time.Now().Add(-time.Minute), 8)
	w, last := testfleet.NewWriter(s.Write, 1), times[len(times)-1]
	for _, at := range times {
		if err := f.Step(w, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Wait(f.Series(), last); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		url, limit string
		status     int
		says       string
	}{
		{s.URL, "Memory_Bound>1%", 1, "--fail-on: Memory_Bound of service-01 changed by +"},
		{s.URL, "*_Bound>1%,Retiring<50%", 1, "_Bound of service-01 changed by +"},
		{s.URL, "Memory_Bound>90%", 0, ""},
		{s.URL, "Memory_Bound<1%", 0, ""},
		{s.URL, "Memory_Bund>1%", 2, "no such node"},
		{s.URL, "Memory_Bound>much", 2, "Memory_Bound>much"},
		{"http://127.0.0.1:1", "Memory_Bound>1%", 4, "127.0.0.1:1"},
	} {
		var out, errs strings.Builder
		status := extra.Main(t.Context(), []string{"fleet", "--prom", tt.url, "--range", "5m", "--at", last.Format(time.RFC3339),
			"--against", "version=canary", "--fail-on", tt.limit}, strings.NewReader(""), &out, &errs)
		if status != tt.status || !strings.Contains(errs.String(), tt.says) || strings.Count(errs.String(), "\n") > 1 {
			t.Errorf("--fail-on %s: status %d, %q; want %d, %q", tt.limit, status, errs.String(), tt.status, tt.says)
		}
		if asked := tt.status < 2; asked != strings.Contains(out.String(), "version=canary against the rest") {
			t.Errorf("--fail-on %s printed %q", tt.limit, out.String())
		}
	}
}
