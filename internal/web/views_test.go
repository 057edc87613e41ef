package web_test

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/page"
	"github.com/cyclestack/cyclestack/internal/testbrowser"
)

// TestIcicle: the tree zooms and opens nodes by mouse and by keyboard.
func TestIcicle(t *testing.T) {
	t.Parallel()
	tab := open(t, testbrowser.New(t), htmlOf(t, "report", "examples/walk/columns-1.txt"))
	width := func(path string) (w float64) {
		tab.Eval(fmt.Sprintf(`Number(document.querySelector('#tree [data-node="%s"] rect')?.getAttribute("width") ?? 0)`, path), &w)
		return w
	}
	var all float64
	tab.Eval(`Number(document.querySelector("#tree svg").getAttribute("width"))`, &all)
	var paths []string
	tab.Eval(`[...document.querySelectorAll("#tree [role=treeitem]")].map(e => e.dataset.node)`, &paths)
	var child string
	for _, p := range paths {
		if strings.Contains(p, ".") && width(p) < all/2 {
			child = p
		}
	}
	if child == "" {
		t.Fatalf("no part of a node in %v", paths)
	}
	parent, _, _ := strings.Cut(child, ".")
	was := width(child)
	tab.Click(fmt.Sprintf(`#tree [data-node="%s"] rect`, child))
	if w := width(child); math.Abs(w-all) > 1 {
		t.Errorf("a click on %s makes it %.1f wide, of %.1f", child, w, all)
	}
	if got := tab.Text("#tree .detail h3"); !strings.HasSuffix(got, child[strings.LastIndex(child, ".")+1:]) {
		t.Errorf("a click on %s explains %q", child, got)
	}
	if got := tab.Text("#tree .detail"); !strings.Contains(got, "Formula") {
		t.Errorf("the explanation has no formula: %q", got)
	}
	tab.Press("Escape")
	if w := width(child); math.Abs(w-was) > 1 {
		tab.Click("#tree .whole")
		if w := width(child); math.Abs(w-was) > 1 {
			t.Errorf("the whole tree has %s at %.1f, was %.1f", child, w, was)
		}
	}
	tab.Focus(fmt.Sprintf(`#tree [data-node="%s"]`, parent))
	tab.Eval(fmt.Sprintf(`document.querySelector('#tree [data-node="%s"]').dispatchEvent(new MouseEvent("click", {bubbles: true}))`, parent), nil)
	tab.Press("Escape", "ArrowDown")
	var active string
	tab.Eval(`document.activeElement.dataset.node ?? ""`, &active)
	if !strings.HasPrefix(active, parent+".") {
		t.Errorf("down from %s leads to %q", parent, active)
	}
	tab.Press("ArrowUp", "Enter")
	if w := width(parent); math.Abs(w-all) > 1 {
		t.Errorf("Enter on %s makes it %.1f wide, of %.1f", parent, w, all)
	}
}

// TestStacks: each box of the flame graph is as wide as its value says, and says it.
func TestStacks(t *testing.T) {
	t.Parallel()
	args := []string{"report", "--sysroot", "examples/stacks", "examples/stacks.data"}
	tab := open(t, testbrowser.New(t), htmlOf(t, "report", args[1:]...))
	d := as[stacksOf](t, documentOf2(t, "stacks", args...))
	check := func(typ int) {
		t.Helper()
		var boxes []struct {
			Box   int
			Width float64
			Text  string
		}
		tab.Eval(`[...document.querySelectorAll(".flame .box")].map(e => ({Box: Number(e.dataset.box), Width: parseFloat(e.style.width), Text: e.getAttribute("aria-label")}))`, &boxes)
		var width float64
		tab.Eval(`Math.floor(document.querySelector(".flame").getBoundingClientRect().width)`, &width)
		if len(boxes) < 4 {
			t.Fatalf("%d boxes", len(boxes))
		}
		for _, b := range boxes {
			v, all := d.Boxes[b.Box][5+typ], d.Boxes[0][5+typ]
			if math.Abs(b.Width-width*v/all) > 1 {
				t.Errorf("type %d, box %d is %.1f wide, want %.1f", typ, b.Box, b.Width, width*v/all)
			}
			if want := d.Names[int(d.Boxes[b.Box][1])] + "  " + page.Rounded(100*v/all, 2) + " %"; b.Text != want {
				t.Errorf("type %d, box %d says %q, want %q", typ, b.Box, b.Text, want)
			}
		}
	}
	check(d.Main)
	node := slices.IndexFunc(d.Types, func(t struct{ Name, Unit, Path string }) bool { return t.Path == "Backend_Bound" })
	choose := func(label string, value any) {
		tab.Eval(fmt.Sprintf(`(e => { e.value = "%v"; e.dispatchEvent(new Event("change")); })([...document.querySelectorAll("#stacks label")].find(l => l.textContent.startsWith(%q)).querySelector("select"))`, value, label), nil)
		tab.Frames()
	}
	choose("Width", node)
	check(node)
	choose("Colour", node)
	heats := tab.Texts("#stacks .legend .swatch")
	if len(heats) != 8 {
		t.Errorf("coloured by a node, the legend is %q", heats)
	}
	// The colour of a box is the share of the node among the highest ones of its unit.
	var tones map[string]string
	tab.Eval(`Object.fromEntries([...document.querySelectorAll(".flame .box")].map(e => [e.dataset.box, [...e.classList].find(c => c.startsWith("heat"))]))`, &tones)
	for box, tone := range tones {
		var i int
		fmt.Sscan(box, &i)
		whole := 0.0
		for k, typ := range d.Types {
			if typ.Path != "" && !strings.Contains(typ.Path, ".") && typ.Unit == d.Types[node].Unit {
				whole += d.Boxes[i][5+k]
			}
		}
		if want := fmt.Sprintf("heat%d", min(7, int(8*d.Boxes[i][5+node]/whole))); tone != want {
			t.Errorf("box %d has the colour %s, want %s", i, tone, want)
		}
	}
	var wide bool
	inner := `.flame .box[data-box="2"]`
	tab.Click(inner)
	tab.Eval(fmt.Sprintf(`Math.abs(parseFloat(document.querySelector(%q).style.width) - document.querySelector(".flame").getBoundingClientRect().width) < 2`, inner), &wide)
	if !wide {
		t.Error("a click on a box does not zoom")
	}
	tab.Press("Escape")
	check(node)
	tab.Focus(`.flame [data-box="0"]`)
	tab.Press("ArrowDown", "Enter")
	var zoomed string
	tab.Eval(`document.activeElement.dataset.box`, &zoomed)
	if zoomed == "0" || zoomed == "" {
		t.Errorf("down and Enter lead to box %q", zoomed)
	}
}

// TestWhen: intervals have their values; what is selected with the mouse or with the keyboard
// is what report --time prints for that span.
func TestWhen(t *testing.T) {
	t.Parallel()
	tab := open(t, testbrowser.New(t), htmlOf(t, "report", levels...))
	var intervals []accountOf
	for _, a := range accountsIn(t, documentOf(t, "report", append([]string{"--by", "interval"}, levels...)...)) {
		if a.Scope.Kind == "interval" {
			intervals = append(intervals, a)
		}
	}
	roots := []string{"Frontend_Bound", "Bad_Speculation", "Backend_Bound", "Retiring"}
	value := func(a *accountOf, path string) *float64 {
		for _, n := range a.Nodes {
			if n.Path == path {
				return n.Value
			}
		}
		return nil
	}
	for i, a := range intervals {
		for k, root := range roots {
			got := tab.Text(fmt.Sprintf(`#when tbody tr:nth-child(%d) [data-node="%s"]`, i+1, root))
			if want := percent(value(&a, root)); got != want {
				t.Errorf("interval %d, node %d: %q, want %q", i, k, got, want)
			}
		}
	}
	shown := func() map[string]string {
		var m map[string]string
		tab.Eval(`Object.fromEntries([...document.querySelectorAll("#tree .nodes tbody tr")].map(e => [e.dataset.node, e.querySelector("[data-key=value]").textContent]))`, &m)
		return m
	}
	before := shown()
	compare := func(what string, from, to int) {
		t.Helper()
		// A sample at the end of an interval is in the next one.
		span := fmt.Sprintf("%.9f,%.9f", intervals[from].Scope.Start, intervals[to].Scope.Start+intervals[to].Scope.Duration-1e-9)
		want := accountsIn(t, documentOf(t, "report", append([]string{"--time", span}, levels...)...))[0]
		got := shown()
		n := 0
		for _, root := range roots {
			if v := value(&want, root); v != nil {
				n++
				if got[root] != percent(v) {
					t.Errorf("%s, %s: %s is %q, and report --time has %q", what, span, root, got[root], percent(v))
				}
			}
		}
		if n == 0 {
			t.Errorf("%s, %s: nothing is known there", what, span)
		}
		functions := accountsIn(t, documentOf(t, "report", append([]string{"--by", "function", "--time", span}, levels...)...))
		rows := cells(tab, "#where-function")
		if len(rows) != len(functions)-1 {
			t.Errorf("%s, %s: %d functions, want %d", what, span, len(rows), len(functions)-1)
		}
		for _, row := range rows {
			if !slices.ContainsFunc(functions[1:], func(f accountOf) bool { return strings.HasPrefix(row["name"], f.Scope.Function) }) {
				t.Errorf("%s, %s: %q is none of the functions", what, span, row["name"])
			}
			for _, f := range functions[1:] {
				if !strings.HasPrefix(strings.TrimPrefix(row["name"], "● "), f.Scope.Function) {
					continue
				}
				if row["share"] != percent(f.Scope.Share) || row["samples"] != strconv.FormatInt(f.Scope.Samples, 10) {
					t.Errorf("%s, %s: %s has %q of the samples, %q, want %s, %d", what, span, f.Scope.Function, row["share"], row["samples"], percent(f.Scope.Share), f.Scope.Samples)
				}
				for _, root := range roots {
					if v := value(&f, root); v != nil && strings.TrimRight(row[root], " ?▲") != percent(v) {
						t.Errorf("%s, %s: %s of %s is %q, want %q", what, span, root, f.Scope.Function, row[root], percent(v))
					}
				}
			}
		}
	}
	stacks := func(what string, from, to int) {
		t.Helper()
		span := fmt.Sprintf("%.9f,%.9f", intervals[from].Scope.Start, intervals[to].Scope.Start+intervals[to].Scope.Duration-1e-9)
		want := shares(as[stacksOf](t, documentOf2(t, "stacks", append([]string{"report", "--time", span}, levels...)...)))
		var labels []string
		tab.Eval(`[...document.querySelectorAll(".flame .box")].map(e => e.getAttribute("aria-label"))`, &labels)
		if slices.Sort(labels); !slices.Equal(labels, want) || len(want) < 3 {
			t.Errorf("%s, %s: the boxes are %q, and report --time has %q", what, span, labels, want)
		}
	}
	verdict := tab.Text("#what .facts")
	// Whatever is selected has the samples of these two intervals.
	with := slices.IndexFunc(intervals, func(a accountOf) bool { return a.Scope.Samples > 0 })
	tab.Focus("#when svg")
	tab.Press("Home")
	for range with {
		tab.Press("ArrowRight")
	}
	tab.Press("Enter")
	compare("one interval, by keyboard", with, with)
	stacks("one interval", with, with)
	for i, c := range intervals[with].Counts {
		got := tab.Text(fmt.Sprintf(`#trust [aria-label=counts] tbody tr:nth-child(%d) [data-key=value]`, i+1))
		if c.Value != nil && got != page.Trim(*c.Value) {
			t.Errorf("one interval: the count of %s is %s, want %s", c.Event, got, page.Trim(*c.Value))
		}
	}
	n := float64(len(intervals))
	tab.Drag("#when svg", 0.05+0.9*(float64(with)+0.3)/n, 0.05+0.9*(float64(with)+1.5)/n)
	compare("two intervals, by mouse", with, with+1)
	stacks("two intervals", with, with+1)
	for i, c := range intervals[with].Counts {
		got := tab.Text(fmt.Sprintf(`#trust [aria-label=counts] tbody tr:nth-child(%d) [data-key=value]`, i+1))
		if next := intervals[with+1].Counts[i]; c.Value != nil && next.Value != nil && (next.Event != c.Event || got != page.Trim(*c.Value+*next.Value)) {
			t.Errorf("two intervals: the count of %s is %s, want %s", c.Event, got, page.Trim(*c.Value+*next.Value))
		}
	}
	for i, c := range intervals[with].Audit {
		holds := 0
		for _, a := range intervals[with : with+2] {
			if slices.ContainsFunc(a.Audit, func(x check) bool { return x.Name == c.Name && x.State == "holds" }) {
				holds++
			}
		}
		if got := tab.Text(fmt.Sprintf(`#trust [aria-label=checks] tbody tr:nth-child(%d) [data-key=holds]`, i+1)); got != strconv.Itoa(holds) {
			t.Errorf("two intervals: %s holds in %s, want %d", c.Name, got, holds)
		}
	}
	// What is not restricted says so.
	var unmarked []string
	tab.Eval(`[...document.querySelectorAll("main section[id]")].filter(e => !e.parentElement.closest("section") && !["what", "tree", "when", "where-function", "stacks", "trust"].includes(e.id))
		.filter(e => { const x = e.querySelector("h2 .unselected"); return !x || getComputedStyle(x).display === "none"; }).map(e => e.id)`, &unmarked)
	if len(unmarked) > 0 {
		t.Errorf("two intervals: %q do not say that they are of the whole recording", unmarked)
	}
	verdicts := func(from, to int) {
		t.Helper()
		want := map[string]string{}
		for _, a := range intervals[from : to+1] {
			path := ""
			if n := len(a.Bottleneck); n > 0 {
				path = a.Bottleneck[n-1]
			}
			n, _ := strconv.Atoi(want[path])
			want[path] = strconv.Itoa(n + 1)
		}
		var got map[string]string
		tab.Eval(`Object.fromEntries([...document.querySelectorAll("#what tr[data-verdict]")].map(e => [e.dataset.verdict, e.querySelector("[data-key=intervals]").textContent]))`, &got)
		if !maps.Equal(got, want) {
			t.Errorf("intervals %d to %d: the verdicts are %v, want %v", from, to, got, want)
		}
	}
	verdicts(with, with+1)
	tab.Drag("#when svg", 0.05, 0.95)
	verdicts(0, len(intervals)-1)
	tab.Focus("#when svg")
	tab.Press("Escape")
	if after := shown(); fmt.Sprint(after) != fmt.Sprint(before) || tab.Text("#what .facts") != verdict {
		t.Errorf("Escape does not bring the whole back")
	}
}

// stacksOf is the data of a flame graph.
type stacksOf struct {
	Types []struct{ Name, Unit, Path string }
	Main  int
	Boxes [][]float64
	Names []string
}

// shares are the boxes with their shares of the main type, as the page writes them.
func shares(d stacksOf) (list []string) {
	for _, b := range d.Boxes {
		if v, all := b[5+d.Main], d.Boxes[0][5+d.Main]; v > 0 {
			list = append(list, d.Names[int(b[1])]+"  "+page.Rounded(100*v/all, 2)+" %")
		}
	}
	slices.Sort(list)
	return list
}

// TestCode: figures of lines and instructions are those of annotate; a click on a function
// leads to them.
func TestCode(t *testing.T) {
	t.Parallel()
	args := []string{"--sysroot", "examples/annotate", "examples/annotate.data"}
	tab := open(t, testbrowser.New(t), htmlOf(t, "report", args...))
	type part struct {
		Line         int
		Addr, Text   string
		Share, Error *float64
		Samples      int
		Nodes        []struct {
			Node     string
			Value    float64
			Reliable bool
			Verdict  string
		}
	}
	d := as[struct {
		Lines, Instructions []part
		Loops               []struct {
			Trips  *float64
			Share  *float64
			Events []struct {
				Event string
				Value float64
			} `json:"per_iteration"`
		}
	}](t, documentOf(t, "annotate", args...))
	events := tab.Texts("#code [aria-label^=iterations] tbody th")
	compare := func(selector string, p part) {
		t.Helper()
		text := func(v *float64) string {
			if v == nil {
				return ""
			}
			return percent(v)
		}
		if got := tab.Text(selector + " [data-key=share]"); got != text(p.Share) {
			t.Errorf("%s: share %q, want %q", selector, got, text(p.Share))
		}
		if got := tab.Text(selector + " code"); !strings.Contains(got, p.Text) {
			t.Errorf("%s: text %q, want %q", selector, got, p.Text)
		}
		for _, n := range p.Nodes {
			cell := tab.Text(fmt.Sprintf(`%s [data-key="%s"]`, selector, n.Node))
			want := page.PercentOf(n.Value)
			switch {
			case n.Verdict == "hidden":
				want += " ✗"
			case !n.Reliable:
				want += " ?"
			}
			if cell != "(no such element)" && cell != want {
				t.Errorf("%s: %s is %q, want %q", selector, n.Node, cell, want)
			}
		}
	}
	for _, l := range d.Lines {
		compare(fmt.Sprintf(`#code tr[data-line="%d"]`, l.Line), l)
	}
	for _, i := range d.Instructions {
		compare(fmt.Sprintf(`#code tr[data-addr="%s"]`, i.Addr), i)
	}
	if len(d.Lines) == 0 || len(d.Instructions) == 0 {
		t.Error("nothing was compared")
	}
	for i, l := range d.Loops {
		row := fmt.Sprintf(`#code [data-loop="%d"] `, i+1)
		if got := tab.Text(row + "[data-key=trips]"); l.Trips != nil && !strings.HasPrefix(got, page.Trim(*l.Trips)+" ± ") {
			t.Errorf("loop %d: %q iterations for each entry, want %v", i+1, got, *l.Trips)
		}
		if got := tab.Text(row + "[data-key=share]"); got != percent(l.Share) {
			t.Errorf("loop %d: share %q, want %s", i+1, got, percent(l.Share))
		}
		for k, e := range l.Events {
			if got, want := tab.Text(fmt.Sprintf(`#code [aria-label^=iterations] tbody tr:nth-child(%d) [data-key=loop%d]`, slices.Index(events, e.Event)+1, i+1)), page.Trim(e.Value); !strings.HasPrefix(got, want+" ± ") {
				t.Errorf("loop %d: event %d is %q, want %s", i+1, k, got, want)
			}
		}
	}
	tab.Eval("scrollTo(0, 0)", nil)
	tab.Click("#where-function .row .cell")
	var focused string
	if tab.Eval("document.activeElement.id", &focused); focused != "code-function" {
		t.Errorf("a click on a function leads to %q", focused)
	}
	tab.Eval("document.activeElement.blur()", nil)
	tab.Focus("#where-function .grid")
	tab.Press("Home", "ArrowDown", "ArrowUp", "Enter") // the heading sorts, and the row below it opens
	tab.Press("ArrowDown", "Enter")
	if tab.Eval("document.activeElement.id", &focused); focused != "code-function" {
		t.Errorf("Enter on a function leads to %q", focused)
	}
	tab.Click("#code-assembly")
	if n := len(tab.Texts("#code tr.instruction")); n != 0 {
		t.Errorf("%d instructions without assembly", n)
	}
}

// TestDiff: every cell of the tables of changes, the bars that add up, and the two trees.
func TestDiff(t *testing.T) {
	t.Parallel()
	b := testbrowser.New(t)
	type change struct {
		Node, Parent, Place, Module, Verdict string
		Old, New, Change, Relative           *float64
		Low, High, P                         *float64
	}
	type diff struct {
		Total         change
		Nodes, Places []change
	}
	trim := func(v *float64) string {
		if v == nil {
			return "–"
		}
		return page.Trim(*v)
	}
	signed := func(v *float64) string {
		if v != nil && *v > 0 {
			return "+" + page.Trim(*v)
		}
		return trim(v)
	}
	for _, args := range [][]string{{"--cpu", "skylakex", "examples/diff/before.csv", "examples/diff/after.csv"},
		{"--by", "function", "--sysroot", "examples/diff/names", "examples/diff/old", "examples/diff/new"}} {
		tab := open(t, b, htmlOf(t, "diff", args...))
		d := as[diff](t, documentOf(t, "diff", args...))
		for section, list := range map[string][]change{"#nodes": d.Nodes, "#places": d.Places} {
			rows := map[int]map[string]string{}
			if len(list) > 0 {
				rows = cells(tab, section)
			}
			if len(rows) != min(len(list), len(rows)) || len(list) > 0 && len(rows) == 0 {
				t.Errorf("%v: %s has %d rows, want %d", args, section, len(rows), len(list))
			}
			for i, row := range rows {
				c := list[i]
				for key, want := range map[string]string{"old": trim(c.Old), "new": trim(c.New), "change": signed(c.Change), "low": signed(c.Low), "high": signed(c.High), "p": trim(c.P)} {
					if row[key] != want {
						t.Errorf("%v: %s, row %d: %s is %q, want %q", args, section, i, key, row[key], want)
					}
				}
				if !strings.HasSuffix(row["verdict"], c.Verdict) || !strings.Contains(row["name"], c.Node+c.Place) {
					t.Errorf("%v: %s, row %d: %v", args, section, i, row)
				}
			}
		}
		if got := tab.Text("#what .verdict"); !strings.Contains(got, signed(d.Total.Change)) {
			t.Errorf("%v: %q", args, got)
		}
		if len(d.Nodes) == 0 {
			continue
		}
		sorted := func(what string) {
			t.Helper()
			rows := cells(tab, "#nodes")
			for i := 1; i < len(rows); i++ {
				if rows[i-1]["name"] > rows[i]["name"] && rows[i-1]["name"] < rows[0]["name"] {
					t.Errorf("%v: %s: row %d is %q after %q", args, what, i, rows[i]["name"], rows[i-1]["name"])
				}
			}
		}
		tab.Click(`#nodes [data-sort="name"]`)
		sorted("by mouse")
		tab.Focus("#nodes .grid")
		tab.Press("Home", "ArrowUp", "Enter")
		var order string
		tab.Eval(`document.querySelector("#nodes [role=columnheader]").getAttribute("aria-sort")`, &order)
		if order != "ascending" {
			t.Errorf("%v: by keyboard the order is %q", args, order)
		}
		at := *d.Total.Old
		bars := tab.Texts("#waterfall text.value")
		for i, c := range slices.DeleteFunc(slices.Clone(d.Nodes), func(c change) bool { return c.Parent != "" }) {
			at += *c.Change
			if !strings.HasPrefix(bars[i+1], signed(c.Change)) {
				t.Errorf("%v: bar %d is %q, want %q", args, i+1, bars[i+1], signed(c.Change))
			}
		}
		if math.Abs(at-*d.Total.New) > 1e-9 || bars[len(bars)-1] != trim(d.Total.New) {
			t.Errorf("%v: the bars end at %v, %q; want %v", args, at, bars[len(bars)-1], *d.Total.New)
		}
		for _, side := range []string{"old", "new"} {
			if n := len(tab.Texts("#tree-" + side + " [role=treeitem]")); n < 4 {
				t.Errorf("%v: the %s tree has %d nodes", args, side, n)
			}
		}
	}
}

// TestTrust: the checks and counts are those of the document.
func TestTrust(t *testing.T) {
	t.Parallel()
	args := []string{"examples/core2.txt"}
	tab := open(t, testbrowser.New(t), htmlOf(t, "report", args...))
	a := accountsIn(t, documentOf(t, "report", args...))[0]
	trim := func(v *float64) string {
		if v == nil {
			return "–"
		}
		return page.Trim(*v)
	}
	exact := func(v *float64) string {
		if v == nil {
			return "–"
		}
		return page.Exact(*v)
	}
	rows := func(label, key string) []string {
		return tab.Texts(fmt.Sprintf(`#trust [aria-label="%s"] tbody tr [data-key="%s"]`, label, key))
	}
	values, coverages := rows("counts", "value"), rows("counts", "coverage")
	if len(values) != len(a.Counts) || len(values) == 0 {
		t.Fatalf("%d counts, want %d", len(values), len(a.Counts))
	}
	for i, c := range a.Counts {
		cover := "–"
		if c.Coverage != nil {
			cover = page.Coverage(*c.Coverage)
		}
		if values[i] != trim(c.Value) || coverages[i] != cover {
			t.Errorf("%s: %q %q, want %q %q", c.Event, values[i], coverages[i], trim(c.Value), cover)
		}
	}
	left, residual := rows("checks", "left"), rows("checks", "residual")
	if len(left) != len(a.Audit) || len(left) == 0 {
		t.Fatalf("%d checks, want %d", len(left), len(a.Audit))
	}
	for i, c := range a.Audit {
		if left[i] != exact(c.Left) || residual[i] != percent(c.Residual) {
			t.Errorf("%s: %q %q, want %q %q", c.Name, left[i], residual[i], exact(c.Left), percent(c.Residual))
		}
	}
}

// TestNumbers: the page writes numbers as the reports do.
func TestNumbers(t *testing.T) {
	t.Parallel()
	tab := open(t, testbrowser.New(t), htmlOf(t, "report", "examples/power7-cpi.txt"))
	list := []float64{0, 0.5, 0.1625, 0.125, 0.0005, 0.00049999, 1, -0.0004, -1.25, 99999.5, 99999.49, 1e5, 123456.5, 123457.5, 1e15, 2.5e15, 1e-5, 9.9999e-5, 1.005, 2.675, 1234.5, 12.345, 0.045, 1.0 / 3, 2.0 / 3, 16.25, 16.75, 1e-300, 3.14159e200}
	for i := range 400 {
		list = append(list, math.Pow(1.17, float64(i-200))*float64(1-2*(i%2)))
	}
	var texts []string
	var args []string
	for _, v := range list {
		args = append(args, page.Decimal(v))
	}
	tab.Eval("["+strings.Join(args, ",")+"].flatMap(v => [cyclestack.format.trim(v), cyclestack.format.percentOf(v), cyclestack.format.coverage(v), cyclestack.format.duration(v)])", &texts)
	for i, v := range list {
		want := []string{page.Trim(v), page.PercentOf(v), page.Coverage(v), page.Duration(v)}
		if math.Abs(v) > 1e18 {
			want = want[:1] // percentages of such numbers are not written
		}
		for k := range want {
			if k > 1 && v < 0 {
				continue
			}
			if texts[4*i+k] != want[k] {
				t.Errorf("%v: %q, want %q", v, texts[4*i+k], want[k])
			}
		}
	}
}

// TestInflate: browsers without DecompressionStream show the same.
func TestInflate(t *testing.T) {
	t.Parallel()
	tab := open(t, testbrowser.New(t), htmlOf(t, "report", levels...))
	var same []bool
	tab.Eval(`Promise.all([...document.querySelectorAll("script.document")].map(async e => {
		const packed = Uint8Array.from(atob(e.textContent.trim()), c => c.charCodeAt(0));
		const want = new Uint8Array(await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer());
		const got = cyclestack.gunzip(packed);
		return got.length === want.length && got.every((b, i) => b === want[i]);
	}))`, &same)
	if len(same) < 5 || slices.Contains(same, false) {
		t.Errorf("%v", same)
	}
}

// TestAccess: axe-core finds no fault in any view, light or dark, and labels of pictures have
// enough contrast.
func TestAccess(t *testing.T) {
	t.Parallel()
	b := testbrowser.New(t)
	axe := []byte(nil)
	if modules := os.Getenv("CYCLESTACK_NODE_MODULES"); modules != "" {
		var err error
		if axe, err = os.ReadFile(filepath.Join(modules, "axe-core", "axe.min.js")); err != nil {
			t.Fatal(err)
		}
	} else {
		t.Log("axe-core is not looked for: CYCLESTACK_NODE_MODULES names no directory with it (npm install axe-core)")
	}
	for name, html := range map[string][]byte{
		"levels":   htmlOf(t, "report", levels...),
		"annotate": htmlOf(t, "report", "--sysroot", "examples/annotate", "examples/annotate.data"),
		"counts":   htmlOf(t, "report", "examples/walk/columns-1.txt"),
		"diff":     htmlOf(t, "diff", "--cpu", "skylakex", "examples/diff/before.csv", "examples/diff/after.csv"),
	} {
		tab := open(t, b, html)
		tab.Eval(`document.querySelectorAll("details").forEach(d => d.open = true)`, nil)
		for _, theme := range []string{"light", "dark"} {
			tab.Eval(fmt.Sprintf(`document.documentElement.dataset.theme = %q`, theme), nil)
			tab.Frames()
			contrast(t, tab, name+", "+theme)
			if axe == nil {
				continue
			}
			tab.Eval(string(axe)+";0", nil)
			var faults []string
			tab.Eval(`axe.run(document, {resultTypes: ["violations"]}).then(r => r.violations.flatMap(v => v.nodes.slice(0, 3).map(n => v.id + ": " + n.target + " " + n.failureSummary)))`, &faults)
			for _, f := range faults {
				t.Errorf("%s, %s: %s", name, theme, f)
			}
		}
	}
}

// contrast computes the contrast of labels with what is below them (WCAG 2.2, 1.4.3).
func contrast(t *testing.T, tab *testbrowser.Tab, what string) {
	t.Helper()
	var labels []struct {
		Text string
		A, B []float64
	}
	tab.Eval(`(() => {
		const rgb = c => (c.match(/[\d.]+/g) || []).slice(0, 3).map(Number), paper = rgb(getComputedStyle(document.documentElement).backgroundColor);
		const out = [];
		for (const g of document.querySelectorAll(".icicle .box")) { const t = g.querySelector(".label"); if (t) out.push({Text: t.textContent, A: rgb(getComputedStyle(t).color), B: rgb(getComputedStyle(g.querySelector("rect")).fill)}); }
		for (const e of document.querySelectorAll(".flame .box")) out.push({Text: e.textContent, A: rgb(getComputedStyle(e).color), B: rgb(getComputedStyle(e).backgroundColor)});
		for (const t of document.querySelectorAll(".axis text, .waterfall text")) out.push({Text: t.textContent, A: rgb(getComputedStyle(t).fill), B: paper});
		for (const e of document.querySelectorAll(".cell.flagged, .cell.doubtful, td.doubtful, .facts, .hint")) { let p = e; while (p && getComputedStyle(p).backgroundColor === "rgba(0, 0, 0, 0)") p = p.parentElement; out.push({Text: e.textContent, A: rgb(getComputedStyle(e).color), B: p ? rgb(getComputedStyle(p).backgroundColor) : paper}); }
		return out;
	})()`, &labels)
	if len(labels) < 5 {
		t.Errorf("%s: %d labels", what, len(labels))
	}
	luminance := func(c []float64) float64 {
		l := 0.0
		for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
			v := c[i] / 255
			if v <= 0.04045 {
				v /= 12.92
			} else {
				v = math.Pow((v+0.055)/1.055, 2.4)
			}
			l += weight * v
		}
		return l
	}
	for _, l := range labels {
		a, b := luminance(l.A), luminance(l.B)
		if ratio := (max(a, b) + 0.05) / (min(a, b) + 0.05); ratio < 4.5 {
			t.Errorf("%s: %q has a contrast of %.2f (%v on %v), at least 4.5", what, l.Text, ratio, l.A, l.B)
		}
	}
}

// TestLoops: the core model's cycles, limits and ports are the document's, and the picture of
// the pipeline can be seen.
func TestLoops(t *testing.T) {
	t.Parallel()
	b := testbrowser.New(t)
	args := []string{"--sysroot", "examples/annotate", "examples/annotate.data"}
	type amounts []struct{ Cycles *float64 }
	d := as[struct {
		Pieces []struct {
			Cores []struct {
				Cycles        *float64
				Limits, Ports amounts
			}
		}
	}](t, documentOf(t, "core", args...))
	if len(d.Pieces) == 0 {
		t.Fatal("no loops")
	}
	for name, html := range map[string][]byte{"core": htmlOf(t, "core", args...), "report": htmlOf(t, "report", args...)} {
		tab := open(t, b, html)
		for i, p := range d.Pieces {
			piece := fmt.Sprintf(`#loops [data-piece="%d"] `, i)
			var cycles, limits, ports []string
			for _, c := range p.Cores {
				cycles = append(cycles, page.Trim(*c.Cycles))
				for _, l := range c.Limits {
					limits = append(limits, page.Trim(*l.Cycles))
				}
				for _, l := range c.Ports {
					ports = append(ports, page.Trim(*l.Cycles))
				}
			}
			for key, want := range map[string][]string{"cycles": cycles, "limit": limits, "port": ports} {
				if got := tab.Texts(piece + "[data-key=" + key + "]"); !slices.Equal(got, want) {
					t.Errorf("%s, piece %d: %s %q, want %q", name, i, key, got, want)
				}
			}
			tab.Click(piece + "summary")
			tab.Wait("document.querySelector('" + piece + "img').naturalWidth > 100") // the picture is one
		}
	}
}
