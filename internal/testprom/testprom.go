// Package testprom starts real Prometheus servers for tests.
package testprom

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cyclestack/cyclestack/internal/testfleet"
)

// A Server is a Prometheus on the loopback interface. It ends with the test.
type Server struct {
	*testfleet.Server
	t testing.TB
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
	return &Server{s, t}
}

// A Sample is one series of an answer.
type Sample struct {
	Labels map[string]string
	Value  float64
}

// Query evaluates an expression now.
func (s *Server) Query(expr string) []Sample {
	s.t.Helper()
	answer, err := http.PostForm(s.URL+"/api/v1/query", url.Values{"query": {expr}})
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	var d struct {
		Status, Error string
		Data          struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	if err := json.Unmarshal(text, &d); err != nil || d.Status != "success" {
		s.t.Fatalf("%s: %v %s", expr, err, text)
	}
	var list []Sample
	for _, r := range d.Data.Result {
		value, _ := r.Value[1].(string)
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			s.t.Fatal(err)
		}
		list = append(list, Sample{r.Metric, v})
	}
	return list
}

// Wait evaluates an expression until a result is as wanted.
func (s *Server) Wait(expr string, wanted func([]Sample) bool) []Sample {
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
