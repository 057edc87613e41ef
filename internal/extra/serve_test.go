package extra_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cyclestack/cyclestack/internal/extra"
	"github.com/cyclestack/cyclestack/internal/testbrowser"
	"github.com/cyclestack/cyclestack/internal/testlong"
)

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "cyclestack-extra" {
		os.Exit(extra.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(testbrowser.Main(m))
}

// serve runs serve until the end of the test, and returns its address.
func serve(t *testing.T, args ...string) string {
	t.Helper()
	read, write := io.Pipe()
	ctx, end := context.WithCancel(t.Context())
	done := make(chan int, 1)
	go func() {
		done <- extra.Main(ctx, append([]string{"serve"}, args...), strings.NewReader(""), io.Discard, write)
		write.Close()
	}()
	lines := bufio.NewScanner(read)
	if !lines.Scan() {
		end()
		t.Fatalf("serve %v: status %d", args, <-done)
	}
	go func() {
		for lines.Scan() {
			t.Log(lines.Text())
		}
	}()
	t.Cleanup(func() {
		end()
		if status := <-done; status != 0 {
			t.Errorf("serve %v: status %d", args, status)
		}
	})
	_, rest, _ := strings.Cut(lines.Text(), "http://")
	address, _, ok := strings.Cut(rest, " ")
	if !ok {
		end()
		t.Fatalf("serve %v: %s (status %d)", args, lines.Text(), <-done)
	}
	return "http://" + address
}

// machine counts the machine by the operating system, ten times a second.
var machine = []string{"-a", "--source", "os", "-I", "100"}

// get reads a path.
func get(t *testing.T, url string) (int, []byte) {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, body
}

// TestLivePage: the page follows what is counted.
func TestLivePage(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux is counted")
	}
	b := testbrowser.New(t)
	url := serve(t, machine...)
	for status := 0; status != 200; time.Sleep(50 * time.Millisecond) {
		status, _ = get(t, url)
	}
	tab := b.Open(url)
	tab.Wait(`(document.getElementById("live-state")?.textContent.match(/live, (\d+) intervals/) || [0, 0])[1] > 5`)
	var same bool
	tab.Eval(`(() => { const list = cyclestack.documents[0].accounts, last = list[list.length - 1]; return last.nodes.filter(n => n.value !== null).every(n => document.querySelector('#tree tr[data-node="' + n.path + '"] [data-key=value]').textContent.match(/\d/)); })()`, &same)
	if !same {
		t.Error("the tree has no values of the newest account")
	}
	if n := len(tab.Texts("#when tbody tr")); n < 5 {
		t.Errorf("the table of intervals has %d rows", n)
	}
}

// clientsFor has TestClients last longer: go test ./internal/extra -run TestClients -clients 10m -v
var clientsFor = flag.Duration("clients", 0, "how long TestClients lasts")

// TestClients: twenty clients read the same for a while, and nothing grows with them.
func TestClients(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux is counted")
	}
	url := serve(t, machine...)
	for status := 0; status != 200; time.Sleep(50 * time.Millisecond) {
		status, _ = get(t, url)
	}
	span := time.Duration(testlong.Size(2, 60)) * time.Second
	if *clientsFor > 0 {
		span = *clientsFor
	}
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	const clients = 20
	ctx, end := context.WithCancel(t.Context())
	counts := make([]int, clients)
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			r, _ := http.NewRequestWithContext(ctx, http.MethodGet, url+"api/v1/live", nil)
			answer, err := http.DefaultTransport.RoundTrip(r)
			if err != nil {
				return
			}
			defer answer.Body.Close()
			lines := bufio.NewScanner(answer.Body)
			lines.Buffer(nil, 1<<20)
			for lines.Scan() {
				if data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: ")); ok && json.Valid(data) {
					counts[i]++
				}
			}
		})
	}
	time.Sleep(span / 4)
	before, threads := heap(), runtime.NumGoroutine()
	time.Sleep(span - span/4)
	after := heap()
	if n := runtime.NumGoroutine(); n > threads+5 {
		t.Errorf("%d goroutines, and %d at first", n, threads)
	}
	if after > before+16<<20 {
		t.Errorf("the heap has grown from %d to %d", before, after)
	}
	t.Logf("%d clients, %v: the heap has %.1f MB after a quarter of it and %.1f MB at the end, %d and %d goroutines", clients, span, float64(before)/1e6, float64(after)/1e6, threads, runtime.NumGoroutine())
	end()
	all.Wait()
	t.Logf("accounts read: %d to %d", slices.Min(counts), slices.Max(counts))
	for i, n := range counts {
		if n < int(span/time.Second)*3 {
			t.Errorf("client %d read %d accounts in %v", i, n, span)
		}
	}
}

// TestDrop: a recording that is dropped onto a page is shown there, as the file would be. It
// is taken from the server's own pages only.
func TestDrop(t *testing.T) {
	t.Chdir("../..")
	url := serve(t, "--sysroot", "examples/functions", "examples/levels.data")
	b := testbrowser.New(t)
	tab := b.Open(url)
	tab.Wait("window.cyclestack !== undefined")
	drop := func(name string) {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		tab.Eval(fmt.Sprintf(`(() => { const d = new DataTransfer(); d.items.add(new File([Uint8Array.from(atob(%q), c => c.charCodeAt(0))], %q));
			document.dispatchEvent(new DragEvent("drop", {dataTransfer: d, bubbles: true, cancelable: true})); })()`, base64.StdEncoding.EncodeToString(data), filepath.Base(name)), nil)
	}
	drop("examples/walk/columns-1.txt") // the text of perf stat
	tab.Wait(`document.querySelector("#what .facts")?.textContent.startsWith("./walk columns")`)
	drop("examples/stacks.data") // a perf.data
	tab.Wait(`document.querySelector("#where-function") !== null && document.querySelector(".flame") !== null`)
	if got := tab.Text("#trust dd"); strings.Contains(got, "/proc/") || strings.Contains(got, "/tmp/") {
		t.Errorf("the page says %q", got)
	}
	for what, change := range map[string]func(*http.Request){
		"without an origin":   func(r *http.Request) { r.Header.Del("Origin") },
		"from another origin": func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") },
		"from a form":         func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") },
		"from another site":   func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"too large":           func(r *http.Request) { r.ContentLength = 1 << 40 },
		"damaged":             nil,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"api/v1/page", strings.NewReader("PERFILE2 and no more"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Origin", strings.TrimSuffix(url, "/"))
		r.Header.Set("Content-Type", "application/octet-stream")
		if change != nil {
			change(r)
		}
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			if what == "too large" { // the body ends before what was promised
				continue
			}
			t.Fatal(what, err)
		}
		body, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if answer.StatusCode < 400 || bytes.Contains(body, []byte("/proc/")) || bytes.Contains(body, []byte("/tmp/")) {
			t.Errorf("%s: status %d: %s", what, answer.StatusCode, body)
		}
	}
}

// TestAPI: what the description names is answered as it says.
func TestAPI(t *testing.T) {
	t.Chdir("../..")
	url := serve(t, "--sysroot", "examples/functions", "examples/levels.data", "examples/functions.data")
	for path, want := range map[string]struct {
		status int
		has    string
	}{
		"api/v1/recordings":                                        {200, `"functions.data"`},
		"api/v1/recordings/0/accounts":                             {200, `"cyclestack.account/v1"`},
		"api/v1/recordings/1/accounts?by=function":                 {200, `"function":"wait"`},
		"api/v1/recordings/0/accounts?by=interval&time=0.015,0.02": {200, `"kind":"interval"`},
		"api/v1/recordings/0/accounts?by=nosuch":                   {400, "there are run"},
		"api/v1/recordings/0/accounts?by=--output=x":               {400, "form"},
		"api/v1/recordings/0/accounts?time=x":                      {400, "form"},
		"api/v1/recordings/7/accounts":                             {404, ""},
		"api/v1/recordings/0/nosuch":                               {404, ""},
		"api/v1/recordings/0/stacks":                               {200, `"cyclestack.stacks/v1"`},
		"api/v1/recordings/0/code?symbol=nosuch":                   {422, ""},
		"api/v1/live":                                              {404, ""},
		"compare?old=0&new=1":                                      {200, "<script"},
		"compare?old=0&new=9":                                      {400, ""},
		"recordings/1":                                             {200, "<script"},
	} {
		status, body := get(t, url+path)
		if status != want.status || !strings.Contains(string(body), want.has) {
			t.Errorf("%s: status %d, want %d: %s", path, status, want.status, body[:min(len(body), 300)])
		}
	}
	intervals := serve(t, "docs/format/intervals.csv")
	if status, body := get(t, intervals+"api/v1/recordings/0/accounts?by=interval"); status != 200 || !strings.Contains(string(body), `"cyclestack.account/v1"`) {
		t.Errorf("intervals are no document, which the page reads: status %d: %s", status, body)
	}
	var d struct{ Paths map[string]any }
	if _, body := get(t, url+"api/v1/openapi.json"); json.Unmarshal(body, &d) != nil || len(d.Paths) < 6 {
		t.Errorf("the description has %d paths", len(d.Paths))
	}
	for path := range d.Paths {
		status, _ := get(t, url+strings.TrimPrefix(strings.ReplaceAll(path, "{id}", "0"), "/")+"?symbol=wait")
		if status == 404 && !strings.HasSuffix(path, "live") {
			t.Errorf("%s is described, and not there", path)
		}
	}
}

// TestRefused: what makes no sense is one line, and a status.
func TestRefused(t *testing.T) {
	for args, want := range map[string]int{"serve": 2, "serve /nonexistent": 3, "serve -a -p 1": 2, "serve --listen nonsense -a": 4, "serve --source simulated -a": 2, "nosuch": 2} {
		var msg bytes.Buffer
		status := extra.Main(t.Context(), strings.Fields(args), strings.NewReader(""), io.Discard, &msg)
		if status != want || strings.Count(msg.String(), "\n") != 1 {
			t.Errorf("%s: status %d, want %d: %s", args, status, want, msg.String())
		}
	}
}
