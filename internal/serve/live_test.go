package serve_test

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/internal/serve"
	"github.com/cyclestack/cyclestack/report"
)

// anAccount makes an account, and its header.
func anAccount(t *testing.T) (report.Header, *account.Account) {
	t.Helper()
	r, err := resolve.New(resolve.Choice{CPU: "generic"})
	if err != nil {
		t.Fatal(err)
	}
	table := counts.NewTable(&counts.Layout{Columns: []counts.Column{{Event: "task-clock"}}, Scopes: []counts.Scope{counts.RunScope("")}})
	table.Duration, table.Label = 1, strings.Repeat("a long name ", 5000)
	*table.Cell(0, 0) = counts.Cell{Value: 1e9, Enabled: 1e9, Running: 1e9, State: counts.Counted}
	m, err := r.Method(r.Named(), "generic")
	if err != nil {
		t.Fatal(err)
	}
	return report.Header{CPU: m.CPU, Model: m.Model, Kind: "test"}, m.Evaluate(table, account.Place{})
}

// TestSlow: a client that does not read is dropped, and told so; others are served.
func TestSlow(t *testing.T) {
	live := serve.NewLive(report.Options{})
	s, err := serve.New(serve.Options{Listen: "127.0.0.1:0", Live: live})
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	go s.Serve(ctx)
	h, a := anAccount(t)
	if err := live.Begin(h); err != nil {
		t.Fatal(err)
	}
	follow := func() *bufio.Scanner {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL()+"api/v1/live", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { answer.Body.Close() })
		lines := bufio.NewScanner(answer.Body)
		lines.Buffer(nil, 1<<20)
		if !lines.Scan() || lines.Text() != "retry: 2000" {
			t.Fatalf("begins with %q", lines.Text())
		}
		return lines
	}
	slow, quick := follow(), follow()
	read := 0
	for range 2000 { // 120 MB for each: more than the kernel holds
		if err := live.Account(a); err != nil {
			t.Fatal(err)
		}
		for quick.Scan() {
			if strings.HasPrefix(quick.Text(), "data: ") {
				read++
				break
			}
		}
	}
	if read != 2000 {
		t.Errorf("a client that reads has %d accounts of 2000", read)
	}
	told := false
	for slow.Scan() {
		told = told || slow.Text() == "event: slow"
	}
	if !told {
		t.Error("the slow client was not told")
	}
}
