package web_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/testbrowser"
	"github.com/cyclestack/cyclestack/internal/testlong"
)

// piecesOf is the document of stacks by interval.
type piecesOf struct {
	Types     []struct{ Name, Path string }
	Main      int
	Intervals []struct {
		Start float64 `json:"start_s"`
	}
}

// own are the values of boxes without those above them, by the lines of collapsed stacks.
func own(boxes []boxOf, typ int) map[string]float64 {
	sums, names := map[string]float64{}, make([]string, len(boxes))
	for i, b := range boxes {
		if i == 0 {
			continue
		}
		if names[i] = strings.ReplaceAll(b.Name, ";", ":"); b.Parent > 0 {
			names[i] = names[b.Parent] + ";" + names[i]
			sums[names[b.Parent]] -= b.Values[typ]
		}
		sums[names[i]] += b.Values[typ]
	}
	return sums
}

// A boxOf is a box as the page draws it.
type boxOf struct {
	Name   string
	Parent int
	Values []float64
}

// collapsedIn are the lines of collapsed stacks.
func collapsedIn(t *testing.T, data []byte) map[string]float64 {
	t.Helper()
	sums := map[string]float64{}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		at := strings.LastIndexByte(line, ' ')
		v, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			t.Fatal(err)
		}
		sums[line[:at]] += v
	}
	return sums
}

// piecesHold holds the stacks of spans of intervals to those of report --time.
func piecesHold(t *testing.T, d *piecesOf, boxes func(from, to float64) []boxOf, spans [][2]int, intervals []accountOf, till float64, nodes []string, args ...string) {
	t.Helper()
	compared := 0
	for _, span := range spans {
		first, last := intervals[span[0]].Scope, intervals[span[1]].Scope
		window := fmt.Sprintf("%.9f,%.9f", first.Start, last.Start+last.Duration-1e-9)
		if last.Start+last.Duration > till-1e-10 { // it ends with the last sample
			window = fmt.Sprintf("%.9f,%.9f", first.Start, till)
		}
		for _, node := range append([]string{""}, nodes...) {
			line, typ := append([]string{"report", "--time", window, "--format", "collapsed"}, args...), d.Main
			if node != "" {
				line = append([]string{"report", "--nodes", node}, line[1:]...)
				typ = slices.IndexFunc(d.Types, func(x struct{ Name, Path string }) bool { return x.Path == node })
			}
			want := collapsedIn(t, cyclestack(t, line...))
			got := own(boxes(first.Start, last.Start), typ)
			for stack := range got {
				if _, ok := want[stack]; !ok && got[stack] >= 1 {
					want[stack] = 0
				}
			}
			for stack, v := range want {
				if math.Abs(got[stack]-v) > 2+1e-5*v {
					t.Errorf("intervals %v, %s %s: %s has %v, want %v", span, window, node, stack, got[stack], v)
				}
				compared++
			}
		}
	}
	if compared < len(spans) {
		t.Errorf("%d stacks were compared", compared)
	}
}

// intervalsOf are the intervals of a recording that have samples, and the end of the last one.
func intervalsOf(t *testing.T, args ...string) (list []accountOf, till float64) {
	t.Helper()
	for _, a := range accountsIn(t, documentOf(t, "report", append([]string{"--by", "interval"}, args...)...)) {
		if a.Scope.Kind == "interval" {
			till = a.Scope.Start + a.Scope.Duration
			if a.Scope.Samples > 0 {
				list = append(list, a)
			}
		}
	}
	return list, till
}

// TestPieces: the stacks of any intervals are those of report --time. So are the amounts of
// nodes that are in proportion to counts.
func TestPieces(t *testing.T) {
	t.Parallel()
	b := testbrowser.New(t)
	short, least := "500us", 11
	if testlong.Enabled() {
		short, least = "100us", 51
	}
	for _, tt := range []struct {
		split []string
		args  []string
		least int
		nodes []string
	}{
		{[]string{"-I", short}, levels, least, nil},
		{nil, levels, 2, []string{"Backend_Bound", "Frontend_Bound"}},
		{[]string{"-I", "1"}, []string{"--sysroot", "examples/annotate", "examples/annotate.data"}, 2, []string{"Cycles.Stalls", "Cycles.Stalls.L2_Miss"}},
	} {
		both := slices.Concat(tt.split, tt.args)
		tab := open(t, b, htmlOf(t, "report", both...))
		var d piecesOf
		tab.Eval(`cyclestack.documents.find(d => d.schema === "cyclestack.stacks_intervals/v1")`, &d)
		boxes := func(from, to float64) (list []boxOf) {
			tab.Eval(fmt.Sprintf(`cyclestack.together(cyclestack.documents.find(d => d.schema === "cyclestack.stacks_intervals/v1"), t => t > %g - 1e-9 && t < %g + 1e-9)`, from, to), &list)
			return list
		}
		intervals, till := intervalsOf(t, both...)
		last := len(intervals) - 1
		if len(intervals) < tt.least || len(d.Intervals) < tt.least {
			t.Fatalf("%q: %d intervals, and %d have stacks", tt.args, len(intervals), len(d.Intervals))
		}
		from := rand.IntN(last + 1)
		spans := [][2]int{{from, from + rand.IntN(last+1-from)}, {last, last}, {0, last}, {last / 3, last / 2}}
		piecesHold(t, &d, boxes, spans[:testlong.Size(2, 4)], intervals, till, tt.nodes, tt.args...)
	}
}
