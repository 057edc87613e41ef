package testfleet

import (
	"errors"
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
	"time"
)

// ErrNone is the error of a store that is not installed.
var ErrNone = errors.New("not installed")

// A Server is a real store on the loopback interface.
type Server struct {
	URL   string
	Write string // for remote write
	cmd   *exec.Cmd
	dead  chan struct{}
	log   *os.File
}

// Prometheus starts one with the text of a configuration, in an empty directory.
func Prometheus(dir, config string, flags ...string) (*Server, error) {
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, err
	}
	return start(dir, "prometheus", "/-/ready", "/api/v1/write", func(address string) []string {
		return append([]string{"--config.file=" + file, "--storage.tsdb.path=" + filepath.Join(dir, "data"), "--web.listen-address=" + address,
			"--web.enable-remote-write-receiver", "--web.enable-lifecycle", "--storage.tsdb.retention.time=30d", "--log.level=warn"}, flags...)
	})
}

// Victoria starts a VictoriaMetrics. The configuration is one of Prometheus, for scraping.
func Victoria(dir, config string) (*Server, error) {
	file := filepath.Join(dir, "scrape.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, err
	}
	return start(dir, "victoria-metrics", "/health", "/api/v1/write", func(address string) []string {
		return []string{"-storageDataPath=" + filepath.Join(dir, "data"), "-httpListenAddr=" + address, "-retentionPeriod=1", "-promscrape.config=" + file,
			"-search.latencyOffset=0s", "-loggerLevel=WARN", "-memory.allowedPercent=10"}
	})
}

func start(dir, program, ready, write string, args func(address string) []string) (*Server, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", program, ErrNone)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := l.Addr().String()
	l.Close()
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	s := &Server{URL: "http://" + address, Write: "http://" + address + write, dead: make(chan struct{}), log: log}
	s.cmd = exec.Command(path, args(address)...)
	s.cmd.Stdout, s.cmd.Stderr, s.cmd.Dir = log, log, dir
	bind(s.cmd)
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { _ = s.cmd.Wait(); close(s.dead) }()
	for range 2400 { // on a busy machine it begins late
		if res, err := http.Get(s.URL + ready); err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return s, nil
			}
		}
		select {
		case <-s.dead:
			text, _ := os.ReadFile(log.Name())
			return nil, fmt.Errorf("%s ended: %s", program, text)
		case <-time.After(50 * time.Millisecond):
		}
	}
	s.Stop()
	return nil, fmt.Errorf("%s is not ready after 2 minutes", program)
}

// Stop ends the store.
func (s *Server) Stop() {
	_ = s.cmd.Process.Kill()
	<-s.dead
	s.log.Close()
}

// Wait waits until a query sees some series at a time. VictoriaMetrics takes a second or
// longer for that. Unless it is told to flush, it shows a part of a step's samples first.
func (s *Server) Wait(series int, at time.Time) error {
	if res, err := http.Get(s.URL + "/internal/force_flush"); err == nil { // a Prometheus has no such page
		res.Body.Close()
	}
	q := url.Values{"query": {`count({job="cyclestack"})`}, "time": {strconv.FormatInt(at.Unix(), 10)}, "nocache": {"1"}}
	text := ""
	for range 1200 {
		res, err := http.Get(s.URL + "/api/v1/query?" + q.Encode())
		if err != nil {
			return err
		}
		body, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
		res.Body.Close()
		if err != nil {
			return err
		}
		if text = string(body); strings.Contains(text, fmt.Sprintf(`"%d"`, series)) {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("not %d series after 2 minutes: %s", series, text)
}

// Reload makes a Prometheus read its configuration again.
func (s *Server) Reload() error {
	res, err := http.Post(s.URL+"/-/reload", "", nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return errors.New(res.Status)
	}
	return nil
}

// Memory is the largest and the present resident set of the store, in bytes.
func (s *Server) Memory() (peak, now float64) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		v, _ := strconv.ParseFloat(f[1], 64)
		switch f[0] {
		case "VmHWM:":
			peak = v * 1024
		case "VmRSS:":
			now = v * 1024
		}
	}
	return peak, now
}

// CPU is the processor time that the store has used.
func (s *Server) CPU() time.Duration {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	_, rest, _ := strings.Cut(string(text), ") ")
	f := strings.Fields(rest)
	if len(f) < 13 {
		return 0
	}
	user, _ := strconv.ParseFloat(f[11], 64)
	system, _ := strconv.ParseFloat(f[12], 64)
	return time.Duration((user + system) / 100 * float64(time.Second))
}
