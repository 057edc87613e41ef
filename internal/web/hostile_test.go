package web_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/testbrowser"
	"github.com/cyclestack/cyclestack/internal/testlong"
	"github.com/cyclestack/cyclestack/internal/web"
)

// hostile are names that a recording can have.
var hostile = []string{
	`<script>window.hacked = 1</script>`, `</script><img src=x onerror="window.hacked=1">`, `"><svg onload="window.hacked=1">`, `javascript:window.hacked=1`,
	"\u202Egnp.exe\u2066", "a\x00b\x1b[31mc", "\xff\xfe broken", `<!--`, `<![CDATA[`, `</pre></style><iframe srcdoc="<script>parent.hacked=1</script>">`,
	`__proto__`, `constructor`, `$&`, `&lt;b&gt;`, strings.Repeat("\u0301", 5000), "line\nbreak\u2028here",
}

// huge is a name of 1 MB.
var huge = strings.Repeat("A", 1<<20)

// texts are the keys of documents with texts from recordings.
var texts = []string{"function", "module", "label", "file", "files", "process", "thread", "cgroup", "why", "command", "notes", "text", "symbol", "names", "modules", "title", "about", "causes", "try", "doubt", "how", "event", "left_out", "build_id", "place", "old", "new"}

// infect replaces texts of a document by hostile ones, in turn.
func infect(value any, key string, n *int) any {
	switch v := value.(type) {
	case string:
		if slices.Contains(texts, key) || key == "name" && !strings.Contains(v, "_Bound") {
			*n++
			if *n%100 == 0 {
				return huge
			}
			return hostile[*n%len(hostile)]
		}
	case []any:
		for i := range v {
			v[i] = infect(v[i], key, n)
		}
	case map[string]any:
		for k, inner := range v {
			v[k] = infect(inner, k, n)
		}
	}
	return value
}

// TestHostile: whatever names are, pages show text, run nothing of theirs and lay nothing out
// by it.
func TestHostile(t *testing.T) {
	b := testbrowser.New(t)
	n := 0
	infected := func(d map[string]any) map[string]any {
		out := infect(d, "", &n).(map[string]any)
		if m, ok := out["model"].(map[string]any); ok { // views find the method by its name
			m["name"] = "tma"
		}
		return out
	}
	read := func(command string, args ...string) map[string]any { return infected(documentOf(t, command, args...)) }
	annotation := []string{"--sysroot", "examples/annotate", "examples/annotate.data"}
	documents := [][]any{
		{read("report", levels...), read("models", "--cpu", "skylakex", "--model", "tma"), read("report", append([]string{"--by", "function"}, levels...)...),
			read("report", append([]string{"--by", "interval"}, levels...)...), read("annotate", annotation...),
			infected(documentOf2(t, "stacks", append([]string{"report"}, levels...)...)),
			map[string]any{"schema": "cyclestack.page/v1", "version": hostile[1], "command": hostile, "left_out": []any{map[string]any{"view": hostile[0], "why": hostile[1]}}}},
		{read("diff", "--by", "function", "--sysroot", "examples/diff/names", "examples/diff/old", "examples/diff/new")},
		{read("diff", "--cpu", "skylakex", "examples/diff/before.csv", "examples/diff/after.csv")},
	}
	if n < 100 {
		t.Fatalf("%d names were replaced", n)
	}
	for i, list := range documents {
		var html bytes.Buffer
		p := web.New(&html, hostile[i])
		for _, h := range hostile {
			fmt.Fprintln(p.Plain(), h)
		}
		for _, d := range list {
			if err := p.Add(func(w io.Writer) error { return json.NewEncoder(w).Encode(d) }); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.Finish(); err != nil {
			t.Fatal(err)
		}
		tab := open(t, b, html.Bytes())
		tab.Eval(`document.querySelectorAll("details").forEach(d => d.open = true)`, nil)
		for _, where := range []string{"#where-function .row .cell", "#tree [role=treeitem] rect", ".flame .box"} {
			var there bool
			if tab.Eval(fmt.Sprintf("document.querySelector(%q) !== null", where), &there); there {
				tab.Click(where)
			}
		}
		var found struct {
			Hacked  bool
			Foreign []string
			Hidden  int
			Wide    bool
			Links   []string
		}
		tab.Eval(`({Hacked: window.hacked !== undefined,
			Foreign: [...document.querySelectorAll("img, iframe, object, embed, link, base, form, svg[onload], [onerror], script:not(.document)")].map(e => e.tagName).slice(1),
			Hidden: (document.getElementById("page").innerText.match(/[\u202a-\u202e\u2066-\u2069\u0000\u001b]/g) || []).length,
			Wide: document.documentElement.scrollWidth > innerWidth + 1,
			Links: [...document.querySelectorAll("a[href]")].map(e => e.getAttribute("href")).filter(h => !h.startsWith("#"))})`, &found)
		if found.Hacked || len(found.Foreign) > 0 || found.Hidden > 0 || len(found.Links) > 0 {
			t.Errorf("page %d: %+v", i, found)
		}
		if found.Wide {
			t.Errorf("page %d is wider than the window", i)
		}
	}
}

// TestSpeed: a page with 20,000 functions and 5,000 intervals opens within a second, sorts
// within 200 ms and scrolls smoothly. Without -long it is a tenth of that, and only has to
// work.
func TestSpeed(t *testing.T) {
	functions, intervals := testlong.Size(200, 20000), testlong.Size(50, 5000)
	many := manyAccounts(t, "function", functions)
	course := manyAccounts(t, "interval", intervals)
	html := pageOf(t, documentOf(t, "report", levels...), documentOf(t, "models", "--cpu", "skylakex", "--model", "tma"), lines(t, many), lines(t, course))
	tab := open(t, testbrowser.New(t), html)
	var opened, sorted, frames float64
	tab.Eval(`performance.measure("open", {start: 0, end: cyclestack.opened}).duration`, &opened)
	tab.Eval(`(() => { const before = performance.now(); document.querySelector("[data-sort=Retiring]").click(); return performance.now() - before; })()`, &sorted)
	tab.Eval(fmt.Sprintf(`new Promise(done => { const g = document.querySelector("#where-function .grid"); g.scrollIntoView(); let n = 0; const began = performance.now();
		const step = () => { g.scrollTop += 130; n++; const took = performance.now() - began; took < %d ? requestAnimationFrame(step) : done(1000 * n / took); }; requestAnimationFrame(step); })`, testlong.Size(300, 2000)), &frames)
	t.Logf("%d functions, %d intervals, %.1f MB: opened in %.0f ms, sorted in %.0f ms, %.0f frames a second", functions, intervals, float64(len(html))/1e6, opened, sorted, frames)
	if rows := len(tab.Texts("#where-function .row")); rows < 10 || rows > 200 {
		t.Errorf("%d rows are drawn", rows)
	}
}

// lines lays a document out as the writer of accounts does: one on each line.
func lines(t *testing.T, d map[string]any) json.RawMessage {
	t.Helper()
	list := d["accounts"].([]any)
	delete(d, "accounts")
	marshal := func(v any) []byte {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	head := marshal(d)
	b := bytes.NewBuffer(append(head[:len(head)-1], ",\n\"accounts\":[\n"...))
	for i, a := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(marshal(a))
		b.WriteByte('\n')
	}
	b.WriteString("]}\n")
	return b.Bytes()
}

// manyAccounts makes a document of many accounts of 40 nodes.
func manyAccounts(t *testing.T, kind string, n int) map[string]any {
	t.Helper()
	d := documentOf(t, "report", append([]string{"--by", kind}, levels...)...)
	accounts := d["accounts"].([]any)
	template := as[map[string]any](t, accounts[len(accounts)-2])
	nodes := template["nodes"].([]any)
	template["nodes"] = nodes[:min(40, len(nodes))]
	delete(template, "missing")
	template["missing"], template["audit"] = []any{}, []any{}
	list := accounts[:1]
	for i := range n {
		a, scope := maps.Clone(template), maps.Clone(template["scope"].(map[string]any))
		nodes := make([]any, len(template["nodes"].([]any)))
		a["scope"], a["nodes"] = scope, nodes
		scope["kind"], scope["label"] = kind, fmt.Sprintf("%s %d", kind, i)
		if kind == "function" {
			scope["function"] = fmt.Sprintf("function_%d", i)
		}
		scope["start_s"], scope["duration_s"], scope["share"] = float64(i)*0.01, 0.01, 1/float64(n)
		for k, x := range template["nodes"].([]any) {
			node := maps.Clone(x.(map[string]any))
			node["value"], node["error"] = float64((i*7919+k*104729)%10007)/40000, 0.01
			nodes[k] = node
		}
		list = append(list, a)
	}
	d["accounts"] = list
	return d
}
