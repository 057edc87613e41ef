package agent

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/cyclestack/cyclestack/internal/fleet"
	"github.com/cyclestack/cyclestack/internal/fleet/series"
	"github.com/cyclestack/cyclestack/internal/testlong"
	"github.com/cyclestack/cyclestack/internal/testprom"
)

// scrapes is how often a Prometheus of these tests scrapes.
const scrapes = 250 * time.Millisecond

// serving returns an agent with a server that runs until the end of the test.
func serving(t *testing.T, h *fakeHost, change func(*Options)) *Agent {
	t.Helper()
	a := h.agent(func(o *Options) {
		o.Listen, o.Interval = "127.0.0.1:0", 200*time.Millisecond
		if change != nil {
			change(o)
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return a
}

// TestDeaf: scrapers that never read keep nobody out, and take no memory.
func TestDeaf(t *testing.T) {
	h := newFakeHost(t)
	a := serving(t, h, func(o *Options) { o.MaxSeries = 30000 })
	a.s.r.mu.Lock()
	for i := range 12000 {
		a.s.r.get(a.s.cpu, series.Service, fmt.Sprint("a long name of a service, number ", i), series.Mode, "user")
	}
	a.s.r.mu.Unlock()
	address := strings.TrimSuffix(strings.TrimPrefix(a.web.url(), "http://"), "/metrics")
	for range 40 {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.(*net.TCPConn).SetReadBuffer(4096)
		fmt.Fprintf(c, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
	}
	var before, after runtime.MemStats
	time.Sleep(300 * time.Millisecond)
	runtime.ReadMemStats(&before)
	for range 20 {
		answer, err := http.Get(a.web.url())
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err == nil && answer.StatusCode == http.StatusOK && strings.Contains(string(text), "cyclestack_whole_cpu_seconds_total") {
			continue
		}
		t.Errorf("%s, %d bytes, %v", answer.Status, len(text), err)
	}
	runtime.ReadMemStats(&after)
	a.web.mu.Lock()
	n := len(a.web.scrapes)
	a.web.mu.Unlock()
	if n > 2*mostScrapes {
		t.Errorf("%d scrapes are answered at a time", n)
	}
	if grown := int64(after.HeapInuse) - int64(before.HeapInuse); grown > 256<<20 {
		t.Errorf("%d MB more", grown>>20)
	}
}

// certificate makes one for the loopback interface, with its key.
func certificate(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "agent"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	pool.AppendCertsFromPEM(text)
	for name, text := range map[string][]byte{"tls.crt": text, "tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return pool
}

// TestWebConfig: a real Prometheus scrapes by TLS with a password; others get nothing. New
// certificates and users hold after a reload.
func TestWebConfig(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pool := certificate(t, dir)
	hash, err := bcrypt.GenerateFromPassword([]byte("right"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "web.yml")
	put := func(user string) {
		text := fmt.Sprintf("tls_server_config:\n  cert_file: tls.crt\n  key_file: tls.key\n  min_version: TLS12\nhttp_server_config:\n  http2: true\n  headers:\n    X-Frame-Options: deny\nbasic_auth_users:\n  %s: %s\n", user, hash)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("alice")
	h := newFakeHost(t)
	a := serving(t, h, func(o *Options) { o.WebConfig = file })
	get := func(pool *x509.CertPool, user, password string) (int, error) {
		c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: true}}
		req, err := http.NewRequest(http.MethodGet, a.web.url(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if user != "" {
			req.SetBasicAuth(user, password)
		}
		answer, err := c.Do(req)
		if err != nil {
			return 0, err
		}
		answer.Body.Close()
		if answer.Header.Get("X-Frame-Options") != "deny" {
			t.Error("the header is missing")
		}
		return answer.StatusCode, nil
	}
	for who, want := range map[[2]string]int{{"", ""}: 401, {"alice", "wrong"}: 401, {"bob", "right"}: 401, {"alice", "right"}: 200} {
		for range 2 {
			if got, err := get(pool, who[0], who[1]); got != want {
				t.Errorf("%v: %d, %v", who, got, err)
			}
		}
	}
	if _, err := http.Get(strings.Replace(a.web.url(), "https", "http", 1)); err == nil {
		if answer, _ := http.Get(strings.Replace(a.web.url(), "https", "http", 1)); answer.StatusCode == 200 {
			t.Error("it answers without TLS")
		}
	}
	put("carol")
	next := certificate(t, dir)
	if err := a.Reload(); err != nil {
		t.Fatal(err)
	}
	if _, err := get(pool, "carol", "right"); err == nil {
		t.Error("the old certificate still holds")
	}
	for who, want := range map[string]int{"alice": 401, "carol": 200} {
		if got, err := get(next, who, "right"); got != want {
			t.Errorf("%s: %d, %v", who, got, err)
		}
	}
	for _, bad := range []string{"x: 1", "tls_server_config:\n  cert_file: nothing\n", "basic_auth_users:\n  a: b\n", "- a", "tls_server_config: {cert_file: tls.crt, key_file: tls.key, min_version: TLS9}",
		"tls_server_config: {cert_file: tls.crt, key_file: tls.key, client_auth_type: Maybe}", "{}"} {
		if err := os.WriteFile(file, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := a.Reload(); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", bad, err)
		}
		if got, err := get(next, "carol", "right"); got != 200 {
			t.Fatalf("%q changed something: %d, %v", bad, got, err)
		}
	}
	address := strings.TrimSuffix(strings.TrimPrefix(a.web.url(), "https://"), "/metrics")
	p := testprom.Start(t, testprom.Job{Targets: []string{address}, Interval: scrapes, Extra: "    scheme: https\n    tls_config:\n      ca_file: " + filepath.Join(dir, "tls.crt") +
		"\n    basic_auth:\n      username: carol\n      password: right\n"})
	p.Wait("up", func(list []fleet.Sample) bool { return len(list) == 1 && list[0].Value == 1 })
}

// TestStoreGone: a Prometheus that is killed and comes back costs nothing but the time
// between; what was taken meanwhile is in the next value.
func TestStoreGone(t *testing.T) {
	t.Parallel()
	h := newFakeHost(t)
	h.use("system.slice/a.service", 0, 0)
	a := serving(t, h, nil)
	address := strings.TrimSuffix(strings.TrimPrefix(a.web.url(), "http://"), "/metrics")
	query := `cyclestack_cpu_seconds_total{service="a",mode="user"}`
	first := testprom.Start(t, testprom.Job{Targets: []string{address}, Interval: scrapes})
	first.Wait(query, func(list []fleet.Sample) bool { return len(list) == 1 && list[0].Value == 0 })
	h.use("system.slice/a.service", 1e6, 0)
	first.Wait(query, func(list []fleet.Sample) bool { return len(list) == 1 && list[0].Value == 1 })
	first.Stop()
	h.use("system.slice/a.service", 4e6, 0)
	second := testprom.Start(t, testprom.Job{Targets: []string{address}, Interval: scrapes})
	second.Wait(query, func(list []fleet.Sample) bool { return len(list) == 1 && list[0].Value == 5 })
}

// TestStoreFull: a store without room for the series refuses each scrape, and keeps nobody
// else from the sums. A real Prometheus reads a hostile name as it is.
func TestStoreFull(t *testing.T) {
	t.Parallel()
	if !testlong.Enabled() {
		t.Skip("it waits for real servers: -long runs it")
	}
	const name = "a\"b\\c\n}evil 1\n# EOF\n"
	h := newFakeHost(t)
	h.use("system.slice/"+name+".service", 0, 0)
	a := serving(t, h, nil)
	address := strings.TrimSuffix(strings.TrimPrefix(a.web.url(), "http://"), "/metrics")
	full := testprom.Start(t, testprom.Job{Targets: []string{address}, Interval: scrapes, Extra: "    sample_limit: 5\n"})
	full.Wait("up", func(list []fleet.Sample) bool { return len(list) == 1 && list[0].Value == 0 })
	h.use("system.slice/"+name+".service", 3e6, 0)
	roomy := testprom.Start(t, testprom.Job{Targets: []string{address}, Interval: scrapes})
	roomy.Wait(`cyclestack_cpu_seconds_total{mode="user",service=~"(?s)a.*"}`, func(list []fleet.Sample) bool {
		return len(list) == 1 && list[0].Labels["service"] == name && list[0].Value == 3
	})
	full.Wait("up", func(list []fleet.Sample) bool { return len(list) == 1 && list[0].Value == 0 })
}

// TestOldFormat: a scraper that does not ask for OpenMetrics gets what Prometheus had before.
func TestOldFormat(t *testing.T) {
	t.Parallel()
	h := newFakeHost(t)
	a := serving(t, h, nil)
	for accept, want := range map[string]string{"": plainText, "application/openmetrics-text;version=1.0.0,text/plain;q=0.5": openMetrics} {
		req, err := http.NewRequest(http.MethodGet, a.web.url(), nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", accept)
		answer, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		last := ""
		for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
			last = lines.Text()
		}
		answer.Body.Close()
		if got := answer.Header.Get("Content-Type"); got != want || (last == "# EOF") != (want == openMetrics) {
			t.Errorf("%q: %q, the last line is %q", accept, got, last)
		}
	}
}

// FuzzWebConfig: whatever the file has, there is an error of one line or a configuration.
func FuzzWebConfig(f *testing.F) {
	f.Add([]byte("tls_server_config:\n  cert_file: tls.crt\n  key_file: tls.key\n"))
	f.Add([]byte("basic_auth_users:\n  alice: $2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi\n"))
	f.Add([]byte("http_server_config:\n  headers:\n    a: b\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		file := filepath.Join(t.TempDir(), "web.yml")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readWebConfig(file); err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%q", err)
		}
	})
}
