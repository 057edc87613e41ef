// Package testprom starts real Prometheus servers for tests.
package testprom

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/cyclestack/cyclestack/internal/fleet"
	"github.com/cyclestack/cyclestack/internal/testfleet"
)

// A Server is a Prometheus on the loopback interface. It ends with the test.
type Server struct {
	*testfleet.Server
	t     testing.TB
	store *fleet.Store
}

// Job is what a server scrapes.
type Job struct {
	Targets  []string // HOST:PORT
	Interval time.Duration
	Extra    string // further lines of YAML of the job, indented by four
}

// Path finds one of Prometheus's programs, or skips the test.
func Path(t testing.TB, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("%s is missing: apt-get install prometheus", program)
	}
	return path
}

// Start starts a server that scrapes.
func Start(t testing.TB, job Job) *Server {
	t.Helper()
	Path(t, "prometheus")
	config := fmt.Sprintf("global:\n  scrape_interval: %v\n  scrape_timeout: %v\nscrape_configs:\n  - job_name: cyclestack\n    static_configs:\n      - targets: [%s]\n%s",
		job.Interval, job.Interval, strings.Join(job.Targets, ", "), job.Extra)
	s, err := testfleet.Prometheus(t.TempDir(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	store, err := fleet.Open(fleet.Access{URL: s.URL, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return &Server{s, t, store}
}

// Query evaluates an expression now.
func (s *Server) Query(expr string) []fleet.Sample {
	s.t.Helper()
	list, err := s.store.Query(s.t.Context(), expr, time.Now())
	if err != nil {
		s.t.Fatalf("%s: %v", expr, err)
	}
	return list
}

// Wait evaluates an expression until a result is as wanted.
func (s *Server) Wait(expr string, wanted func([]fleet.Sample) bool) []fleet.Sample {
	s.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		list := s.Query(expr)
		if wanted(list) {
			return list
		}
		if time.Now().After(end) {
			s.t.Fatalf("%s is %v", expr, list)
		}
	}
}
