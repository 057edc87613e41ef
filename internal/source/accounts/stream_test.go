package accounts_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/source/accounts"
)

const streamHead = `{"schema":"cyclestack.stream/v1","cpu":{"id":"x","name":"skylakex","vendor":"intel"},"model":{"name":"tma","version":"5"},"source":{"kind":"perf-stat-csv","measured":true}}
{"columns":{"nodes":[{"path":"A","name":"A","level":1,"unit":"slots"}],"events":[{"event":"CPU_CLK_UNHALTED.THREAD","as":"cycles","unit":"cycles"},{"event":"INST_RETIRED.ANY","as":"instructions","named":true}],"missing":[],"notes":["n"]}}
`

const streamed = streamHead + `{"scope":{"kind":"cpu","label":"CPU0","cpu":0,"start_s":0,"duration_s":2},"values":[0.5],"counts":[100,7],"count_coverage":[0.5,1]}
{"scope":{"kind":"cpu","label":"CPU1","cpu":1,"start_s":0,"duration_s":2},"values":[null],"missing":{"x":[0]},"counts":[null,null],"uncounted":{"not counted":[0]}}

{"scope":{"kind":"cpu","label":"CPU0","cpu":0,"start_s":2,"duration_s":1},"values":[0.5],"counts":[3,4],"notes":["m"]}
{"scope":{"kind":"cpu","label":"CPU1","cpu":1,"start_s":2,"duration_s":1},"values":[0.5],"counts":[5,6]}
{"columns":{"nodes":[],"events":[{"event":"page-faults"}],"missing":[]}}
{"scope":{"kind":"interval","start_s":3,"duration_s":1},"values":[],"counts":[9],"samples":[9]}`

// TestStream: the lines of an interval share a table. The next one has the same layout if it has
// the same scopes and events.
func TestStream(t *testing.T) {
	r := accounts.NewReader(strings.NewReader(streamed), "a.json")
	var list []*counts.Table
	var layouts []*counts.Layout
	for r.Next() {
		layouts, list = append(layouts, r.Table().Layout), append(list, r.Table().Clone())
	}
	if r.Err() != nil || len(list) != 3 || r.Kind() != "perf-stat-csv" {
		t.Fatalf("%d tables of %s, %v", len(list), r.Kind(), r.Err())
	}
	a, b, c := list[0], list[1], list[2]
	if !a.Interval || a.Start != 0 || a.Duration != 2 || a.CPU != "skylakex" || len(a.Scopes) != 2 || a.Scopes[1].CPU != 1 || !b.Interval || len(b.Notes) != 2 {
		t.Errorf("tables: %+v\n%+v", a, b)
	}
	for i, want := range []counts.Cell{
		{Value: 100, Enabled: 2e9, Running: 1e9, State: counts.Counted}, {Value: 7, Enabled: 2e9, Running: 2e9, State: counts.Counted},
		{State: counts.NotCounted}, {},
	} {
		if got := *a.Cell(i/2, i%2); got != want {
			t.Errorf("cell %d: %+v, want %+v", i, got, want)
		}
	}
	if !a.Columns[1].Named || a.Columns[0].Event != "cycles" || b.Cell(1, 1).Value != 6 {
		t.Errorf("columns %+v", a.Columns)
	}
	if layouts[0] != layouts[1] || layouts[1] == layouts[2] {
		t.Error("intervals of the same events have different layouts, or others the same")
	}
	if !c.Interval || len(c.Columns) != 1 || c.Cell(0, 0).Samples != 9 {
		t.Errorf("last table: %+v", c)
	}
}

// TestStreamDamaged: what is wrong with a line is said with its offset.
func TestStreamDamaged(t *testing.T) {
	row := `{"scope":{"kind":"cpu","cpu":0},"values":[1],`
	for text, want := range map[string]string{
		streamHead + row + `"counts":[1]}`:                                      "1 counts, 0 coverages and 0 numbers of samples of 2 events",
		streamHead + row + `"counts":[1,2,3,4]}`:                                "logical processors of a core",
		streamHead + row + `"counts":[1,-2]}`:                                   "a count of instructions is not one",
		streamHead + row + `"counts":[1,2],"count_coverage":[1,2]}`:             "the coverage of instructions is 2",
		streamHead + row + `"counts":[1,2],"samples":[1]}`:                      "1 numbers of samples",
		streamHead + row + `"counts":[1,null],"uncounted":{"not counted":[2]}}`: "event 2 of 2 is not counted",
		streamHead + row + `"counts":[1,null],"uncounted":{"lost":[1]}}`:        "a count of instructions is not one",
		streamHead + row + `"counts":7}`:                                        "counts is a number",
		streamHead + row + `"counts":[1`:                                        "the last line is not complete",
		streamHead + "{}x\n" + row:                                              "at byte 415: invalid character 'x'",
		streamHead + `{"values":[]}`:                                            "neither columns nor a scope",
		`{"schema":"cyclestack.stream/v1","accounts":[{}]}`:                     "no accounts in its first line",
	} {
		_, err := tables(t, text, false)
		var e *accounts.Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
