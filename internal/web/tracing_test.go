package web_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/testbrowser"
)

// TestTraceViewer: Chromium's trace viewer, which the Go distribution has for go tool trace,
// loads the export without a warning. Its counters have the values of the JSON.
func TestTraceViewer(t *testing.T) {
	t.Parallel()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Skip(err)
	}
	static := filepath.Join(strings.TrimSpace(string(root)), "src/internal/trace/traceviewer/static")
	if _, err := os.Stat(filepath.Join(static, "trace_viewer_full.html")); err != nil {
		t.Skipf("this distribution of Go has no trace viewer: %v", err)
	}
	b := testbrowser.New(t)
	mux := http.NewServeMux()
	mux.Handle("/static/", http.StripPrefix("/static/", http.FileServer(http.Dir(static))))
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `<!DOCTYPE html><html><head><script src="/static/webcomponents.min.js"></script><link rel="import" href="/static/trace_viewer_full.html"></head><body></body></html>`)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	args := []string{"report", "--by", "interval", "--sysroot", "examples/functions", "examples/levels.data"}
	text := cyclestack(t, append(args, "--format", "chrome-trace")...)
	tab := b.Foreign(server.URL)
	tab.Wait(`typeof tr !== "undefined" && !!tr.Model && !!tr.importer && !!tr.importer.Import`)
	type counter struct {
		Process, Name string
		At, Value     []float64
	}
	var got struct {
		Warnings []string
		Counters []counter
	}
	escaped, err := json.Marshal(string(text))
	if err != nil {
		t.Fatal(err)
	}
	tab.Eval(fmt.Sprintf(`(() => {
		const m = new tr.Model(), i = new tr.importer.Import(m);
		i.importTraces([%s]);
		const counters = [];
		for (const p of Object.values(m.processes)) for (const c of Object.values(p.counters)) for (const s of c.series)
			counters.push({process: p.name || "", name: c.name, at: s.samples.map(x => x.timestamp), value: s.samples.map(x => x.value)});
		return {warnings: m.importWarnings.map(w => w.message), counters: counters};
	})()`, escaped), &got)
	if len(got.Warnings) > 0 {
		t.Errorf("the viewer warns: %q", got.Warnings)
	}
	by := map[string]counter{}
	for _, c := range got.Counters {
		if c.Process != "./prog" {
			t.Errorf("%s is of the process %q", c.Name, c.Process)
		}
		by[c.Name] = c
	}
	n, first := 0, math.NaN()
	for _, a := range accountsIn(t, documentOf(t, args[0], args[1:]...)) {
		if a.Scope.Kind != "interval" {
			continue
		}
		for _, v := range a.Nodes {
			if v.Value == nil || v.Section != "" {
				continue
			}
			if math.IsNaN(first) { // the viewer counts from the first value
				first = a.Scope.Start
			}
			c, found := by[v.Path+" (%)"], false
			for i := range c.At { // in ms
				found = found || math.Abs(c.At[i]-1e3*(a.Scope.Start-first)) < 1e-3 && math.Abs(c.Value[i]-100**v.Value) < 1e-9
			}
			if n++; !found {
				t.Errorf("%s at %v s, %v, is not in the viewer: %+v", v.Path, a.Scope.Start, *v.Value, c)
			}
		}
	}
	if n < 10 {
		t.Errorf("%d values", n)
	}
}
