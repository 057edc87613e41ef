package web_test

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/cli"
	"github.com/cyclestack/cyclestack/internal/page"
	"github.com/cyclestack/cyclestack/internal/testbrowser"
	"github.com/cyclestack/cyclestack/internal/testlong"
)

// clockOf is the count of an event in an account, and the samples behind it.
func clockOf(a *accountOf, event string) (v float64, samples int64) {
	for _, c := range a.Counts {
		if c.Event == event && c.Value != nil {
			return *c.Value, c.Samples
		}
	}
	return 0, 0
}

// selected selects intervals of a page with the keyboard.
func selected(tab *testbrowser.Tab, from, to int) {
	tab.Focus("#when svg")
	tab.Press("Escape", "Home")
	for range from {
		tab.Press("ArrowRight")
	}
	tab.Press("Enter")
	for range to - from {
		tab.Eval(`document.querySelector("#when svg").dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowRight", shiftKey: true}))`, nil)
	}
}

// TestCodeInTime: what is selected restricts the code. Figures of lines, instructions and loops
// are what report --time has of their counts.
func TestCodeInTime(t *testing.T) {
	t.Parallel()
	args := []string{"--sysroot", "examples/annotate", "examples/annotate.data"}
	tab := open(t, testbrowser.New(t), htmlOf(t, "report", args...))
	const clock = "CPU_CLK_UNHALTED.CORE"
	var intervals []accountOf
	for _, a := range accountsIn(t, documentOf(t, "report", append([]string{"--by", "interval"}, args...)...)) {
		if a.Scope.Kind == "interval" {
			intervals = append(intervals, a)
		}
	}
	whole := as[struct {
		Loops []struct {
			Loop, Inside int
		}
		Instructions []struct{ Addr string }
		Blocks       []struct{ Instructions, Loop int }
	}](t, documentOf(t, "annotate", args...))
	loopOf := []int{} // by instruction
	for _, b := range whole.Blocks {
		loopOf = append(loopOf, slices.Repeat([]int{b.Loop}, b.Instructions)...)
	}
	for i, in := range whole.Instructions {
		if got, want := tab.Text(fmt.Sprintf(`#code tr[data-addr="%s"] code`, in.Addr)), fmt.Sprintf("↻%d ", loopOf[i]); strings.HasPrefix(got, want) != (loopOf[i] > 0) {
			t.Errorf("%s is in loop %d: %q", in.Addr, loopOf[i], got)
		}
	}
	all := tab.Texts("#code [data-key=share]")
	// Ratios of events are no sums of intervals, and left out: the page says so.
	apart := map[string]bool{"Cycles.Retired": true, "Cycles.Non_Retired": true}
	compared := 0
	spans := [][2]int{{0, 0}, {0, 5}, {1, 10}, {0, len(intervals) - 1}}
	for _, span := range spans[testlong.Size(2, 0):] {
		selected(tab, span[0], span[1])
		if !strings.Contains(tab.Text("#code"), "of the whole recording only: Retired, Non_Retired, and") {
			t.Error("the page does not say what is no sum")
		}
		last := intervals[span[1]].Scope
		window := fmt.Sprintf("%.9g,%.9g", intervals[span[0]].Scope.Start, last.Start+last.Duration)
		if span[1] < len(intervals)-1 {
			window = fmt.Sprintf("%.9g,%.9g", intervals[span[0]].Scope.Start, last.Start+last.Duration-1e-9)
		}
		by := func(kind string) []accountOf {
			return accountsIn(t, documentOf(t, "report", append([]string{"--by", kind, "--time", window}, args...)...))[1:]
		}
		total := 0.0 // of the function, which is all of the run
		insts := map[string]float64{}
		for _, a := range by("instruction") {
			v, n := clockOf(&a, clock)
			insts[a.Scope.Addr] = v
			total += v
			row := fmt.Sprintf(`#code tr[data-addr="%s"] `, a.Scope.Addr)
			if n > 0 {
				if got := tab.Text(row + "[data-key=samples]"); got != fmt.Sprint(n) {
					t.Errorf("%s: %s has %q samples, want %d", window, a.Scope.Addr, got, n)
				}
			}
		}
		for addr, v := range insts {
			if got := tab.Text(fmt.Sprintf(`#code tr[data-addr="%s"] [data-key=share]`, addr)); total > 0 && got != page.PercentOf(v/total) {
				t.Errorf("%s: %s has %q, want %s", window, addr, got, page.PercentOf(v/total))
			}
			compared++
		}
		for _, a := range by("line") {
			v, _ := clockOf(&a, clock)
			row := fmt.Sprintf(`#code tr[data-line="%d"] `, a.Scope.Line)
			if got := tab.Text(row + "[data-key=share]"); total > 0 && got != page.PercentOf(v/total) {
				t.Errorf("%s: line %d has %q, want %s", window, a.Scope.Line, got, page.PercentOf(v/total))
			}
			for _, n := range a.Nodes {
				cell := tab.Text(row + `[data-key="` + n.Path + `"]`)
				if n.Value == nil || n.Unit != "cycles" || cell == "(no such element)" || v == 0 || apart[n.Path] {
					continue
				}
				if cell = strings.TrimRight(cell, " ✗?"); cell != page.PercentOf(*n.Value*v/total) {
					t.Errorf("%s: line %d: %s is %q, want %s", window, a.Scope.Line, n.Path, cell, page.PercentOf(*n.Value*v/total))
				}
				compared++
			}
		}
		for i, l := range whole.Loops {
			sum := 0.0
			for k, in := range whole.Instructions {
				for of := loopOf[k]; of > 0; of = whole.Loops[of-1].Inside {
					if of == l.Loop {
						sum += insts[in.Addr]
					}
				}
			}
			if got := tab.Text(fmt.Sprintf(`#code [data-loop="%d"] [data-key=share]`, i+1)); total > 0 && sum > 0 && got != page.PercentOf(sum/total) {
				t.Errorf("%s: loop %d is %q, want %s", window, i+1, got, page.PercentOf(sum/total))
			}
		}
		pieces(t, tab, window, func(loop int) float64 {
			sum := 0.0
			for k, in := range whole.Instructions {
				if loopOf[k] == loop {
					sum += insts[in.Addr]
				}
			}
			return sum / total
		})
	}
	if compared < 60 {
		t.Errorf("%d figures were compared", compared)
	}
	tab.Focus("#when svg")
	tab.Press("Escape")
	if after := tab.Texts("#code [data-key=share]"); fmt.Sprint(after) != fmt.Sprint(all) {
		t.Error("Escape does not bring the whole back")
	}
}

// pieces compares the shares of the loops in the core model, which have no loops inside.
func pieces(t *testing.T, tab *testbrowser.Tab, window string, share func(loop int) float64) {
	t.Helper()
	for _, heading := range tab.Texts("#loops .piece h3") {
		var loop, first, last int
		if _, err := fmt.Sscanf(heading, "solve, loop %d, lines %d–%d,", &loop, &first, &last); err != nil {
			t.Errorf("%s: %q: %v", window, heading, err)
		}
		if want := share(loop); !math.IsNaN(want) && !strings.HasSuffix(heading, ", "+page.PercentOf(want)) {
			t.Errorf("%s: %q, want %s", window, heading, page.PercentOf(want))
		}
	}
}

// TestIntervalsAlone: a page of intervals only, as of stat -I, begins with their verdicts and
// the tree of all; the time of threads follows the selection.
func TestIntervalsAlone(t *testing.T) {
	t.Parallel()
	d := documentOf(t, "report", append([]string{"--by", "interval"}, levels...)...)
	delete(d, "next")
	accounts := d["accounts"].([]any)
	list := []any{}
	processors := []float64{}
	for i, a := range accounts {
		of := a.(map[string]any)
		if of["scope"].(map[string]any)["kind"] != "interval" {
			continue
		}
		processors = append(processors, float64(i%3)+0.25)
		of["times"] = map[string]any{"model": map[string]any{"name": "os-time", "version": "1"}, "bottleneck": []any{}, "missing": []any{},
			"nodes": []any{map[string]any{"path": "Threads", "name": "Threads", "level": 0, "value": processors[len(processors)-1], "unit": "processors", "together": true, "reliable": true, "flagged": false}}}
		list = append(list, of)
	}
	d["accounts"] = list
	intervals := accountsIn(t, d)
	tab := open(t, testbrowser.New(t), pageOf(t, d, documentOf(t, "models", "--cpu", "skylakex", "--model", "tma"), documentOf(t, "models", "--cpu", "generic", "--model", "os-time")))
	if got := tab.Text("#what .verdict"); !strings.Contains(got, fmt.Sprintf("of the %d intervals", len(list))) {
		t.Errorf("the verdict is %q", got)
	}
	times := func(from, to int) {
		t.Helper()
		sum, all := 0.0, 0.0
		for i := from; i <= to; i++ {
			sum += processors[i] * intervals[i].Scope.Duration
			all += intervals[i].Scope.Duration
		}
		got := tab.Text(`#times .nodes tr[data-node="Threads"] [data-key=value]`)
		if want := page.Trim(sum / all); got != want {
			t.Errorf("intervals %d to %d: threads took %q processors, want %s", from, to, got, want)
		}
	}
	times(0, len(list)-1)
	selected(tab, 1, 1)
	times(1, 1)
	selected(tab, 0, 3)
	times(0, 3)
	tab.Press("Escape")
	times(0, len(list)-1)
}

// TestNothingCounted: a tree whose values are all 0 is drawn without an error.
func TestNothingCounted(t *testing.T) {
	t.Parallel()
	d := documentOf(t, "report", "examples/power7-cpi.txt")
	for _, n := range d["accounts"].([]any)[0].(map[string]any)["nodes"].([]any) {
		n.(map[string]any)["value"] = 0
	}
	tab := open(t, testbrowser.New(t), pageOf(t, d, documentOf(t, "models", "--cpu", "power7", "--model", "power7-cpi")))
	if rows := tab.Texts("#tree tbody tr"); len(rows) < 5 {
		t.Errorf("%d rows", len(rows))
	}
}

// TestPagesOfStat: pages of stat that have no account of all begin with the verdicts of their
// rows.
func TestPagesOfStat(t *testing.T) {
	t.Parallel()
	b := testbrowser.New(t)
	for _, args := range [][]string{{"-I", "50"}, {"-a", "--per-core"}, {"-a", "-I", "100", "--per-core"}} {
		file := filepath.Join(t.TempDir(), "rows.html")
		var msg bytes.Buffer
		args = append(append([]string{"stat", "--no-keep", "--source", "os", "--format", "html", "-o", file}, args...), "--", "sleep", "0.3")
		if status := cli.Main(t.Context(), args, strings.NewReader(""), io.Discard, &msg); status != 0 {
			t.Skipf("nothing can be counted here: %s", msg.String())
		}
		html, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tab := open(t, b, html)
		accounts := accountsIn(t, documents(tab)[0])
		if got := tab.Text("#what .verdict"); len(accounts) > 1 && !strings.Contains(got, fmt.Sprintf("of the %d ", len(accounts))) {
			t.Errorf("%q: the verdict of %d rows is %q", args, len(accounts), got)
		}
		sum := 0.0
		for _, a := range accounts {
			v, _ := clockOf(&a, "task-clock")
			sum += v
		}
		row := slices.Index(tab.Texts("#trust [aria-label=counts] tbody th"), "task-clock") + 1
		if got := tab.Text(fmt.Sprintf("#trust [aria-label=counts] tbody tr:nth-child(%d) [data-key=value]", row)); row > 0 && got != page.Trim(sum) {
			t.Errorf("%q: task-clock is %s, want %s", args, got, page.Trim(sum))
		}
	}
}

// TestFlatCourse: intervals without a method have their shares.
func TestFlatCourse(t *testing.T) {
	t.Parallel()
	d := documentOf(t, "report", append([]string{"--by", "interval"}, levels...)...)
	delete(d, "next")
	for _, a := range d["accounts"].([]any) {
		of := a.(map[string]any)
		of["nodes"], of["bottleneck"], of["audit"] = []any{}, []any{}, []any{}
	}
	tab := open(t, testbrowser.New(t), pageOf(t, d))
	rows := tab.Texts(`#when tbody [data-node="share"]`)
	n := 0
	for _, a := range accountsIn(t, d) {
		if a.Scope.Kind == "interval" {
			if rows[n] != percent(a.Scope.Share) {
				t.Errorf("interval %d has %q, want %s", n, rows[n], percent(a.Scope.Share))
			}
			n++
		}
	}
	if n == 0 || len(rows) != n {
		t.Errorf("%d rows of %d", len(rows), n)
	}
}
