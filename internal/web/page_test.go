package web_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cyclestack/cyclestack/internal/cli"
	"github.com/cyclestack/cyclestack/internal/page"
	"github.com/cyclestack/cyclestack/internal/testbrowser"
	"github.com/cyclestack/cyclestack/internal/testlong"
)

// cyclestack runs a command and returns what it prints.
func cyclestack(t *testing.T, args ...string) []byte {
	t.Helper()
	var out, msg bytes.Buffer
	if status := cli.Main(t.Context(), args, strings.NewReader(""), &out, &msg); status != 0 {
		t.Fatalf("%s: status %d\n%s", strings.Join(args, " "), status, msg.String())
	}
	return out.Bytes()
}

// htmlOf makes a page of recordings.
func htmlOf(t *testing.T, command string, args ...string) []byte {
	t.Helper()
	return cyclestack(t, append([]string{command, "--format", "html"}, args...)...)
}

// documentOf returns a document of recordings.
func documentOf(t *testing.T, command string, args ...string) map[string]any {
	t.Helper()
	var d map[string]any
	if err := json.Unmarshal(cyclestack(t, append([]string{command, "--format", "json"}, args...)...), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// open opens a page and waits for its views.
func open(t *testing.T, b *testbrowser.Browser, html []byte) *testbrowser.Tab {
	t.Helper()
	tab := b.File(html)
	tab.Wait("window.cyclestack !== undefined || document.querySelector('.error') !== null")
	if msg := tab.Texts(".error"); len(msg) > 0 {
		t.Fatal(msg[0])
	}
	drawn(tab)
	return tab
}

// drawn waits for some frames: views draw themselves a frame after their width is known.
func drawn(tab *testbrowser.Tab) {
	tab.Eval(`Promise.race([
		new Promise(done => { let n = 4; const next = () => n-- > 0 ? requestAnimationFrame(next) : done(true); next(); }),
		new Promise(done => setTimeout(() => done(false), 2000))])`, nil)
}

// documents returns the documents in a page.
func documents(tab *testbrowser.Tab) []map[string]any {
	var list []map[string]any
	tab.Eval("cyclestack.documents", &list)
	return list
}

// A node is a line of an account, as far as these tests read it.
type node struct {
	Path, Name, Unit, Section, Doubt string
	Value, Error, Coverage           *float64
	Reliable, Flagged                bool
}

type scopeOf struct {
	Kind, Function, Module, Addr string
	Line                         int
	Share, Error                 *float64
	Samples                      int64 `json:"share_samples"`
	Hotspot                      bool
	Start                        float64 `json:"start_s"`
	Duration                     float64 `json:"duration_s"`
}

type accountOf struct {
	Scope      scopeOf
	Nodes      []node
	Bottleneck []string
	Try        []string
	Events     []struct {
		Event string
		Value float64
	}
	Counts []countOf
	Audit  []check
	Times  *struct{ Nodes []node }
}

type countOf struct {
	Event           string
	Value, Coverage *float64
	Samples         int64
}

type check struct {
	Name, State    string
	Left, Residual *float64
}

func as[T any](t *testing.T, from any) T {
	t.Helper()
	text, err := json.Marshal(from)
	if err != nil {
		t.Fatal(err)
	}
	var to T
	if err := json.Unmarshal(text, &to); err != nil {
		t.Fatal(err)
	}
	return to
}

func accountsIn(t *testing.T, document map[string]any) []accountOf {
	t.Helper()
	return as[[]accountOf](t, document["accounts"])
}

// percent is a share as the reports write it.
func percent(v *float64) string {
	if v == nil {
		return "–"
	}
	return page.PercentOf(*v)
}

// levels is a recording with four methods' worth of views: functions, stacks, intervals.
var levels = []string{"--sysroot", "examples/functions", "examples/levels.data"}

// TestDocuments: the data of a page are the documents that --format json prints.
func TestDocuments(t *testing.T) {
	t.Parallel()
	b := testbrowser.New(t)
	got := documents(open(t, b, htmlOf(t, "report", levels...)))
	run := documentOf(t, "report", levels...)
	functions := documentOf(t, "report", append([]string{"--by", "function"}, levels...)...)
	intervals := documentOf(t, "report", append([]string{"--by", "interval"}, levels...)...)
	both := documentOf(t, "report", append([]string{"--by", "interval,function"}, levels...)...)
	method := documentOf(t, "models", "--cpu", "skylakex", "--model", "tma")
	stacks := documentOf2(t, "stacks", append([]string{"report"}, levels...)...)
	functionsIn(t, got[4], accountsIn(t, both)[1:])
	want := []map[string]any{run, method, functions, intervals, got[4], stacks, got[6]}
	if len(got) != len(want)+1 || got[len(want)]["schema"] != "cyclestack.page/v1" {
		t.Fatalf("%d documents", len(got))
	}
	for i := range want {
		strip(want[i])
		strip(got[i])
		if d := cmp.Diff(want[i], got[i]); d != "" {
			t.Errorf("document %d (-json +page):\n%s", i, d[:min(len(d), 2000)])
		}
	}
}

// documentOf2 returns a document of another format of JSON.
func documentOf2(t *testing.T, format string, args ...string) map[string]any {
	t.Helper()
	var d map[string]any
	if err := json.Unmarshal(cyclestack(t, append(args, "--format", format)...), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// functionsIn holds the values of functions in intervals to their accounts.
func functionsIn(t *testing.T, page map[string]any, list []accountOf) {
	t.Helper()
	type row struct {
		share, samples any
		values         map[string]float64
	}
	d := as[struct {
		Nodes     []string
		Functions [][3]string
		Intervals []struct {
			Start float64 `json:"start_s"`
			Rows  [][]any
		}
	}](t, page)
	found := map[string]row{}
	for _, in := range d.Intervals {
		for _, r := range in.Rows {
			x := row{r[1], r[2], map[string]float64{}}
			for i, path := range d.Nodes {
				if v, ok := r[i+3].(float64); ok {
					x.values[path] = v
				}
			}
			found[fmt.Sprint(in.Start, d.Functions[int(r[0].(float64))])] = x
		}
	}
	same := func(x, y float64) bool { return math.Abs(x-y) <= 1e-8*math.Abs(y) }
	compared := 0
	for _, a := range list {
		if !slices.ContainsFunc(a.Counts, func(c countOf) bool { return c.Value != nil && *c.Value > 0 }) {
			continue
		}
		name := fmt.Sprint(a.Scope.Start, [3]string{a.Scope.Function, a.Scope.Module, a.Scope.Addr})
		r, ok := found[name]
		if !ok || a.Scope.Share != nil && !same(r.share.(float64), *a.Scope.Share) || r.samples != float64(a.Scope.Samples) {
			t.Errorf("%s has %v, want %v", name, r, a.Scope)
		}
		for _, n := range a.Nodes {
			v, known := r.values[n.Path]
			if known != (n.Value != nil) || known && !same(v, *n.Value) {
				t.Errorf("%s: %s is %v, want %v", name, n.Path, v, n.Value)
			}
			compared++
		}
	}
	if compared < 50 {
		t.Errorf("%d values were compared", compared)
	}
}

// strip removes the next commands: a page has that of the account only.
func strip(d map[string]any) {
	delete(d, "next")
	list, _ := d["accounts"].([]any)
	for _, a := range list {
		delete(a.(map[string]any), "next")
	}
}

// TestTree: the verdict, every number of the table of nodes, and every box of the icicle are
// those of the document.
func TestTree(t *testing.T) {
	t.Parallel()
	b := testbrowser.New(t)
	pages := [][]string{levels, {"examples/power7-cpi.txt"}, {"--sysroot", "examples/annotate", "examples/annotate.data"}, {"examples/walk/columns-1.txt"}}
	for _, args := range pages[:testlong.Size(2, len(pages))] {
		tab := open(t, b, htmlOf(t, "report", args...))
		a := accountsIn(t, documentOf(t, "report", args...))[0]
		share := strings.Contains(args[len(args)-1], "power7") == false
		figure := func(n *node, v *float64) string {
			switch {
			case v == nil:
				return "–"
			case share && n.Section == "" && (n.Unit == "slots" || n.Unit == "cycles" || n.Unit == "uops"):
				return page.Rounded(*v*100, 1) + " %"
			case n.Unit == "cycles/instruction":
				return page.Rounded(*v, 4)
			}
			return page.Trim(*v)
		}
		type row struct{ Node, Value, Error, Coverage, Unit string }
		var rows []row
		tab.Eval(`[...document.querySelectorAll("#tree .nodes tbody tr")].map(e => ({Node: e.dataset.node, Value: e.querySelector("[data-key=value]").textContent,
			Error: e.querySelector("[data-key=error]").textContent, Coverage: e.querySelector("[data-key=coverage]").textContent,
			Unit: e.querySelector("[data-key=unit]").textContent.replace(/^of /, "")}))`, &rows)
		if len(rows) != len(a.Nodes) || len(rows) == 0 {
			t.Fatalf("%v: %d rows, %d nodes", args, len(rows), len(a.Nodes))
		}
		var widths map[string]float64
		tab.Eval(`Object.fromEntries([...document.querySelectorAll("#tree [role=treeitem]")].map(e => [e.dataset.node, Number(e.querySelector("rect").getAttribute("width"))]))`, &widths)
		var all float64
		tab.Eval(`Number(document.querySelector("#tree svg").getAttribute("width"))`, &all)
		drawn := 0
		for i := range a.Nodes {
			n := &a.Nodes[i]
			cover := "–"
			if n.Coverage != nil {
				cover = page.Coverage(*n.Coverage)
			}
			unit := *n
			if n.Section != "" && share && (n.Unit == "slots" || n.Unit == "cycles") {
				continue // what the method says of them decides: see TestShares
			}
			if want := (row{n.Path, figure(&unit, n.Value), figure(&unit, n.Error), cover, n.Unit}); rows[i] != want {
				t.Errorf("%v: row %d is %v, want %v", args, i, rows[i], want)
			}
			if w, ok := widths[n.Path]; ok && share && !strings.Contains(n.Path, ".") {
				drawn++
				if d := w/all - *n.Value; d > 0.002 || d < -0.06 { // siblings that are more than the whole are squeezed
					t.Errorf("%v: %s is %.4f wide, and %.4f is its share", args, n.Path, w/all, *n.Value)
				}
			}
		}
		if share && drawn == 0 {
			t.Errorf("%v: no box was measured", args)
		}
		if len(a.Bottleneck) > 0 {
			end := a.Bottleneck[len(a.Bottleneck)-1]
			n := a.Nodes[slices.IndexFunc(a.Nodes, func(n node) bool { return n.Path == end })]
			if got := tab.Text("#what .verdict"); !strings.Contains(got, n.Name) || !strings.Contains(got, figure(&n, n.Value)) || !strings.Contains(got, " "+n.Unit) {
				t.Errorf("%v: the verdict is %q, and the bottleneck %s %s %s", args, got, n.Name, figure(&n, n.Value), n.Unit)
			}
			try := slices.IndexFunc(a.Try, func(s string) bool { return !strings.HasPrefix(s, "follow the ") })
			if got := tab.Text("#what"); try >= 0 && !strings.Contains(got, "Try: "+a.Try[try]) {
				t.Errorf("%v: %q lacks the advice %q", args, got, a.Try[try])
			}
			if got := tab.Texts("#what .trail a"); len(got) != len(a.Bottleneck) {
				t.Errorf("%v: path %v, want %v", args, got, a.Bottleneck)
			}
		}
	}
}

// cells reads the rows of a grid that are drawn: by row, by column.
func cells(tab *testbrowser.Tab, section string) map[int]map[string]string {
	var rows map[string]map[string]string
	tab.Eval(fmt.Sprintf(`Object.fromEntries([...document.querySelectorAll("%s .row")].map(r => [Number(r.getAttribute("aria-rowindex")) - 2,
		Object.fromEntries([...r.children].map(c => [c.dataset.key, c.firstChild?.textContent ?? ""]))]))`, section), &rows)
	out := map[int]map[string]string{}
	for k, v := range rows {
		var i int
		fmt.Sscan(k, &i)
		out[i] = v
	}
	return out
}

// TestPlaces: cells of the table of functions are the document's, sorted, filtered and with
// open parts, by mouse and keyboard.
func TestPlaces(t *testing.T) {
	t.Parallel()
	b := testbrowser.New(t)
	html, list := manyFunctions(t, testlong.Size(120, 300))
	tab := open(t, b, html)
	random := rand.New(rand.NewPCG(3, 4))
	compare := func(what string, order []accountOf) {
		t.Helper()
		seen := 0
		every := strings.Contains(what, "as it opens") || strings.Contains(what, "all parts")
		tops := []int{0, random.IntN(len(order)), random.IntN(len(order)), len(order)}
		for top := 15; every && top <= 200; top += 15 { // every one of the first 200 rows
			tops = append(tops, top)
		}
		rows := map[int]bool{}
		for _, top := range tops {
			tab.Eval(fmt.Sprintf(`new Promise(done => { const g = document.querySelector(".grid"); g.scrollTop = %d * 26; requestAnimationFrame(() => requestAnimationFrame(() => done(0))); })`, top), new(int))
			for i, row := range cells(tab, "#where-function") {
				a := order[i]
				rows[i] = true
				name := a.Scope.Function
				if a.Scope.Addr != "" && a.Scope.Kind == "instruction" {
					name += " " + a.Scope.Addr
				}
				if a.Scope.Hotspot {
					name = "● " + name
				}
				if row["name"] != name || row["share"] != percent(a.Scope.Share) || row["module"] != a.Scope.Module {
					t.Fatalf("%s: row %d is %v, want %s", what, i, row, name)
				}
				for _, n := range a.Nodes {
					got, ok := row[n.Path]
					if !ok {
						continue
					}
					want := percent(n.Value)
					if n.Value != nil && !n.Reliable {
						want += " ?"
					}
					if n.Flagged && a.Scope.Hotspot {
						want += " ▲"
					}
					if got != want {
						t.Fatalf("%s: row %d: %s is %q, want %q", what, i, n.Path, got, want)
					}
					seen++
				}
			}
		}
		for i := range min(200, len(order)) {
			if every && !rows[i] {
				t.Fatalf("%s: row %d was not compared", what, i)
			}
		}
		if seen < min(len(order), 60)*4 {
			t.Fatalf("%s: %d cells were compared", what, seen)
		}
		tab.Eval(`document.querySelector(".grid").scrollTop = 0`, nil)
	}
	compare("as it opens", list)
	by := func(path string, sign float64) []accountOf {
		out := slices.Clone(list)
		slices.SortStableFunc(out, func(x, y accountOf) int { return compareNodes(&x, &y, path, sign) })
		return out
	}
	tab.Click(`[data-sort="Retiring"]`)
	compare("largest Retiring first", by("Retiring", -1))
	tab.Click(`[data-sort="Retiring"]`)
	compare("smallest Retiring first", by("Retiring", 1))
	tab.Click(`[data-expand="Backend_Bound"]`)
	if cells(tab, "#where-function")[0]["Backend_Bound.Memory_Bound"] == "" {
		t.Error("+ does not open the parts of Backend_Bound")
	}
	compare("with parts", by("Retiring", 1))
	tab.Focus(".grid")
	// The keyboard closes the parts of Backend_Bound, and opens all others.
	var columns []string
	keys := func() {
		tab.Eval(`[...document.querySelectorAll("#where-function .head .cell")].map(e => e.querySelector("[data-expand]")?.getAttribute("aria-expanded") + " " + e.querySelector("[data-sort]").dataset.sort)`, &columns)
	}
	press := func(path string) {
		keys()
		at := slices.IndexFunc(columns, func(c string) bool { return strings.HasSuffix(c, " "+path) })
		tab.Press(append(append([]string{"Home", "ArrowUp"}, slices.Repeat([]string{"ArrowRight"}, at)...), "+")...)
	}
	press("Backend_Bound")
	if keys(); slices.ContainsFunc(columns, func(c string) bool { return strings.Contains(c, "Backend_Bound.") }) {
		t.Errorf("+ on the heading leaves %v", columns)
	}
	press("Frontend_Bound")
	if keys(); !slices.ContainsFunc(columns, func(c string) bool { return strings.Contains(c, "Frontend_Bound.") }) {
		t.Errorf("+ on the heading opens nothing: %v", columns)
	}
	tab.Eval(`(() => { for (let b; (b = document.querySelector("#where-function [data-expand][aria-expanded=false]")); ) b.click(); })()`, nil) // all others
	if keys(); len(columns) < 40 {
		t.Errorf("%d columns are open", len(columns))
	}
	compare("with all parts", by("Retiring", 1))
	tab.Focus(".grid")
	tab.Press("Home", "ArrowUp", "ArrowRight", "Enter") // the heading of the share
	order := slices.Clone(list)
	slices.SortStableFunc(order, func(x, y accountOf) int { return int(1e9 * (*y.Scope.Share - *x.Scope.Share)) })
	compare("by share, with the keyboard", order)
	tab.Focus("#filter-function")
	tab.Press("1", "7")
	var some []accountOf
	for _, a := range order {
		if strings.Contains(a.Scope.Function, "17") {
			some = append(some, a)
		}
	}
	if got, want := tab.Text("#where-function [role=status]"), fmt.Sprintf("%d of %d", len(some), len(list)); got != want {
		t.Errorf("filtered: %q, want %q", got, want)
	}
	for i, row := range cells(tab, "#where-function") {
		if !strings.Contains(row["name"], some[i].Scope.Function) {
			t.Errorf("filtered: row %d is %q, want %q", i, row["name"], some[i].Scope.Function)
		}
	}
}

// compareNodes orders accounts by a node, those without it last.
func compareNodes(x, y *accountOf, path string, sign float64) int {
	at := func(a *accountOf) *float64 {
		for _, n := range a.Nodes {
			if n.Path == path {
				return n.Value
			}
		}
		return nil
	}
	switch a, b := at(x), at(y); {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	case *a == *b:
		return 0
	case (*a-*b)*sign < 0:
		return -1
	}
	return 1
}

// manyFunctions makes a page with more functions than a recording here has: the accounts of
// one, with other values.
func manyFunctions(t *testing.T, n int) ([]byte, []accountOf) {
	t.Helper()
	d := documentOf(t, "report", append([]string{"--by", "function"}, levels...)...)
	accounts := d["accounts"].([]any)
	random := rand.New(rand.NewPCG(1, 2))
	template := accounts[1].(map[string]any)
	for _, key := range []string{"audit", "counts", "missing"} { // the table shows none of these
		template[key] = []any{}
	}
	text, err := json.Marshal(template)
	if err != nil {
		t.Fatal(err)
	}
	list := accounts[:1]
	for i := range n {
		var a map[string]any
		if err := json.Unmarshal(text, &a); err != nil {
			t.Fatal(err)
		}
		scope := a["scope"].(map[string]any)
		scope["function"], scope["share"], scope["hotspot"] = fmt.Sprintf("function_%d", i), random.Float64()/float64(n), i < 5
		for _, x := range a["nodes"].([]any) {
			node := x.(map[string]any)
			switch v := random.Float64(); {
			case v < 0.1:
				node["value"] = nil
			default:
				node["value"] = v
				node["reliable"] = random.IntN(5) > 0
			}
		}
		list = append(list, a)
	}
	d["accounts"] = list
	return pageOf(t, d, documentOf(t, "models", "--cpu", "skylakex", "--model", "tma")), accountsIn(t, d)[1:]
}

// TestOwnEvents: the events of stat -e are in the page, with their counts.
func TestOwnEvents(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "own.html")
	var msg bytes.Buffer
	if status := cli.Main(t.Context(), []string{"stat", "--no-keep", "-e", "page-faults,task-clock", "--format", "html", "-o", file, "--", "true"}, strings.NewReader(""), io.Discard, &msg); status != 0 {
		t.Skipf("nothing can be counted here: %s", msg.String())
	}
	html, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	tab := open(t, testbrowser.New(t), html)
	a := accountsIn(t, documents(tab)[0])[0]
	if len(a.Events) != 2 || a.Events[0].Event != "page-faults" {
		t.Fatalf("events %+v", a.Events)
	}
	rows := tab.Texts("#own tbody tr")
	if len(rows) != 2 || !strings.Contains(rows[0], fmt.Sprintf("page-faults%.0f", a.Events[0].Value)) || !strings.HasSuffix(rows[1], "s") {
		t.Errorf("the table has %q, the document %+v", rows, a.Events)
	}
}
