// Package testprom starts real Prometheus servers for tests.
package testprom

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A Server is a Prometheus on the loopback interface. It ends with the test.
type Server struct {
	URL string
	t   testing.TB
	cmd *exec.Cmd
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

// Start starts a server that scrapes. Flags are added to its command line.
func Start(t testing.TB, job Job, flags ...string) *Server {
	t.Helper()
	path := Path(t, "prometheus")
	dir := t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	config := fmt.Sprintf("global:\n  scrape_interval: %v\n  scrape_timeout: %v\nscrape_configs:\n  - job_name: cyclestack\n    static_configs:\n      - targets: [%s]\n%s",
		job.Interval, job.Interval, strings.Join(job.Targets, ", "), job.Extra)
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &Server{URL: "http://" + address, t: t}
	s.cmd = exec.Command(path, append([]string{"--config.file=" + file, "--storage.tsdb.path=" + filepath.Join(dir, "data"),
		"--web.listen-address=" + address, "--log.level=error"}, flags...)...)
	var log bytes.Buffer
	s.cmd.Stdout, s.cmd.Stderr = &log, &log
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	})
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		answer, err := http.Get(s.URL + "/-/ready")
		if err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return s
			}
		}
		if time.Now().After(end) {
			_ = s.cmd.Process.Kill()
			_ = s.cmd.Wait()
			t.Fatalf("Prometheus does not become ready: %v: %s", err, log.Bytes())
		}
	}
}

// Stop stops the server as a crash would.
func (s *Server) Stop() { _ = s.cmd.Process.Kill() }

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
