package serve_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/serve"
	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
)

// start serves two files.
func start(t *testing.T, listen string) *serve.Server {
	t.Helper()
	dir := t.TempDir()
	var files []string
	for _, name := range []string{"a.data", "<b>.data"} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	s, err := serve.New(serve.Options{Listen: listen, Files: files, Page: func(w io.Writer, file string) error {
		if strings.HasSuffix(file, "a.data") {
			_, err := fmt.Fprintf(w, "the page of %s", filepath.Base(file))
			return err
		}
		return errors.New("damaged")
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	t.Cleanup(func() {
		end()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}

// get asks for a path below an address, with changes to the request.
func get(t *testing.T, base, path string, change func(*http.Request)) (int, string, http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(r)
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body), answer.Header
}

// TestServe: recordings are listed and shown; foreign hosts, origins, methods and paths are
// refused.
func TestServe(t *testing.T) {
	base := start(t, "127.0.0.1:0").URL()
	port := base[strings.LastIndex(base, ":") : len(base)-1]
	host := func(h string) func(*http.Request) { return func(r *http.Request) { r.Host = h } }
	header := func(k, v string) func(*http.Request) { return func(r *http.Request) { r.Header.Set(k, v) } }
	for _, tt := range []struct {
		path   string
		change func(*http.Request)
		status int
		body   string
	}{
		{"", nil, 200, "&lt;b&gt;.data"},
		{"recordings/0", nil, 200, "the page of a.data"},
		{"recordings/1", nil, 422, "damaged"},
		{"recordings/2", nil, 404, ""},
		{"recordings/-1", nil, 404, ""},
		{"recordings/../../etc/passwd", nil, 404, ""},
		{"recordings/..%2f..%2fetc%2fpasswd", nil, 404, ""},
		{"etc/passwd", nil, 404, ""},
		{"api/v1/recordings", nil, 200, `"name":"a.data"`},
		{"", host("localhost" + port), 200, ""},
		{"", host("localhost.evil.example" + port), 421, ""},
		{"", host("evil.example" + port), 421, ""},
		{"", host("127.0.0.1:1"), 421, ""},
		{"", host("127.0.0.1"), 421, ""},
		{"", header("Origin", "http://evil.example"), 403, ""},
		{"", header("Origin", "null"), 403, ""},
		{"", header("Origin", base[:len(base)-1]), 200, ""},
		{"", header("Sec-Fetch-Site", "cross-site"), 403, ""},
		{"", func(r *http.Request) { r.Method = http.MethodPost }, 405, ""},
		{"", func(r *http.Request) { r.Method = http.MethodDelete }, 405, ""},
	} {
		status, body, h := get(t, base, tt.path, tt.change)
		if status != tt.status || !strings.Contains(body, tt.body) {
			t.Errorf("%q: status %d, want %d; %q", tt.path, status, tt.status, body)
		}
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%q: headers %v", tt.path, h)
		}
	}
}

// TestToken: on another address than the loopback interface nothing is answered without
// the token.
func TestToken(t *testing.T) {
	base := start(t, "0.0.0.0:0").URL()
	at, err := url.Parse(base)
	if err != nil || len(at.Path) < 32 {
		t.Fatalf("%s: %v: no token", base, err)
	}
	local := "http://127.0.0.1:" + at.Port()
	for path, want := range map[string]int{"/": 403, "/api/v1/recordings": 403, at.Path[:len(at.Path)-2] + "/": 403,
		at.Path: 200, at.Path + "api/v1/recordings": 200, at.Path + "recordings/0": 200} {
		if status, _, _ := get(t, local, path, nil); status != want {
			t.Errorf("%s: status %d, want %d", path, status, want)
		}
	}
}

// TestNew: what is not there is an error of its kind.
func TestNew(t *testing.T) {
	if _, err := serve.New(serve.Options{Listen: "127.0.0.1:0", Files: []string{"/nonexistent"}}); fault.Of(err) != fault.Input {
		t.Errorf("a file that is not there: %v", err)
	}
	if _, err := serve.New(serve.Options{Listen: "203.0.113.1:1"}); fault.Of(err) != fault.Machine {
		t.Errorf("an address of another machine: %v", err)
	}
}
