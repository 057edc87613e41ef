package accounts_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/source/accounts"
	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
)

// tables reads all tables of a document.
func tables(t *testing.T, text string, keep bool) (list []*counts.Table, err error) {
	t.Helper()
	r := accounts.NewReader(strings.NewReader(text), "a.json")
	if keep {
		r.Keep(0)
	}
	for r.Next() {
		list = append(list, r.Table().Clone())
	}
	return list, r.Err()
}

const head = `{"schema":"cyclestack.account/v1","cpu":{"id":"x","name":"skylakex","vendor":"intel"},"source":{"kind":"perf-data"},"accounts":[`

func TestRuns(t *testing.T) {
	list, err := tables(t, head+`
		{"scope":{"kind":"run","label":"./app","duration_s":2,"runs":3},"nodes":[{"x":1}],"notes":["n"],"counts":[
			{"event":"CPU_CLK_UNHALTED.THREAD","as":"cycles","value":100,"coverage":0.5},
			{"event":"instructions","value":null,"state":"not counted"},
			{"event":"task-clock","value":3e9,"samples":4}]},
		{"scope":{"kind":"interval","start_s":1,"duration_s":1},"counts":[{"event":"cycles","value":7}]}]}`, true)
	if err != nil || len(list) != 2 {
		t.Fatalf("%d tables, %v", len(list), err)
	}
	a := list[0]
	if a.Label != "./app" || a.CPU != "skylakex" || a.Duration != 2 || a.Interval || len(a.Notes) != 1 {
		t.Errorf("table: %+v", a)
	}
	want := []counts.Cell{
		{Value: 100, Enabled: 2e9, Running: 1e9, Repeats: 3, State: counts.Counted},
		{State: counts.NotCounted},
		{Value: 3e9, Variance: 9e18 / 4, Samples: 4, Repeats: 3, State: counts.Counted},
	}
	for i, c := range a.Row(0) {
		if c != want[i] {
			t.Errorf("%s: %+v, want %+v", a.Columns[i].Event, c, want[i])
		}
	}
	if a.Columns[0].Event != "cycles" || a.Columns[2].Unit != "ns" {
		t.Errorf("columns %+v", a.Columns)
	}
	if b := list[1]; !b.Interval || b.Start != 1 || b.Duration != 1 || b.Cell(0, 0).Value != 7 {
		t.Errorf("interval: %+v", b)
	}
}

// TestSimulatedTimes: the time without the simulator cannot be compared with its cycles, and
// is left out of what was simulated only.
func TestSimulatedTimes(t *testing.T) {
	const rest = `"accounts":[{"scope":{"kind":"run","label":"./app"},"counts":[{"event":"Ir","value":100},{"event":"user_time","value":7}]}]}`
	for measured, columns := range map[string]int{"false": 1, "true": 2} {
		list, err := tables(t, `{"schema":"cyclestack.account/v1","cpu":{"name":"amdzen4"},"source":{"kind":"tool","measured":`+measured+`},`+rest, false)
		if err != nil || len(list) != 1 || len(list[0].Columns) != columns || len(list[0].Notes) != 2-columns {
			t.Errorf("measured %s: %v, %+v", measured, err, list)
		}
	}
}

const placed = head + `
	{"scope":{"kind":"run","share_of":"cycles","share":1},"counts":[{"event":"cycles","value":30,"samples":3}]},
	{"scope":{"kind":"function","share_of":"cycles","module":"app","function":"f","addr":"0x10"},"counts":[{"event":"cycles","value":20,"samples":2}]},
	{"scope":{"kind":"function","share_of":"cycles","module":"app","function":"g"},"counts":[{"event":"cycles","value":10,"samples":1}]}]}`

func TestPlaces(t *testing.T) {
	list, err := tables(t, placed, false)
	if err != nil || len(list) != 1 || len(list[0].Scopes) != 3 {
		t.Fatalf("%d tables, %v", len(list), err)
	}
	if c := list[0].Scopes[1].Code; c == nil || *c != (counts.Code{Module: "app", Function: "f", Addr: 0x10}) {
		t.Errorf("the first place: %+v", c)
	}
	if v := list[0].Cell(2, 0).Value; v != 10 {
		t.Errorf("the second place has %g", v)
	}
	if list, err = tables(t, placed, true); err != nil || len(list) != 1 || len(list[0].Scopes) != 1 || list[0].Cell(0, 0).Value != 30 {
		t.Errorf("the whole alone: %d tables, %v", len(list), err)
	}
}

// TestCPUs has the accounts of two processors in one table, and in another those of
// the next interval.
func TestCPUs(t *testing.T) {
	list, err := tables(t, head+`
		{"scope":{"kind":"cpu","label":"CPU0","cpu":0,"start_s":0},"counts":[{"event":"cycles","value":1}]},
		{"scope":{"kind":"cpu","label":"CPU1","cpu":1,"start_s":0},"counts":[{"event":"cycles","value":2}]},
		{"scope":{"kind":"cpu","label":"CPU0","cpu":0,"start_s":1},"counts":[{"event":"cycles","value":3}]}]}`, true)
	if err != nil || len(list) != 2 || len(list[0].Scopes) != 2 || list[0].Scopes[1].CPU != 1 || list[1].Cell(0, 0).Value != 3 {
		t.Errorf("%d tables, %v", len(list), err)
	}
}

// TestCores has cores by number, by the label that documents once had alone, and without either.
func TestCores(t *testing.T) {
	for scope, want := range map[string][3]int{
		`"label":"S1-D0-C2","core":2,"socket":1`: {1, counts.Unknown, 2},
		`"label":"S1-D0-C2"`:                     {1, 0, 2},
		`"label":"core of CPU0 and CPU2"`:        {counts.Unknown, counts.Unknown, counts.Unknown},
	} {
		list, err := tables(t, head+`{"scope":{"kind":"core",`+scope+`},"counts":[{"event":"cycles","value":1}]}]}`, false)
		if err != nil || len(list) != 1 {
			t.Fatalf("%s: %d tables, %v", scope, len(list), err)
		}
		if s := &list[0].Scopes[0]; [3]int{s.Socket, s.Die, s.Core} != want {
			t.Errorf("%s: socket, die and core are %d, %d and %d", scope, s.Socket, s.Die, s.Core)
		}
	}
}

// TestSeveralRuns has runs that begin at the same time, and one run's total next to its
// processors: none of them joins another's table.
func TestSeveralRuns(t *testing.T) {
	list, err := tables(t, head+`
		{"scope":{"kind":"run","start_s":0},"counts":[{"event":"cycles","value":1}]},
		{"scope":{"kind":"run","start_s":0},"counts":[{"event":"cycles","value":2}]},
		{"scope":{"kind":"cpu","label":"CPU0","cpu":0,"start_s":0},"counts":[{"event":"cycles","value":3}]},
		{"scope":{"kind":"cpu","label":"CPU1","cpu":1,"start_s":0},"counts":[{"event":"cycles","value":4}]}]}`, false)
	if err != nil || len(list) != 3 {
		t.Fatalf("%d tables, %v", len(list), err)
	}
	for i, want := range []float64{1, 2, 3} {
		if v := list[i].Cell(0, 0).Value; v != want {
			t.Errorf("table %d has %v, want %v", i, v, want)
		}
		if !list[i].Relative {
			t.Errorf("table %d: how long it took is not said, but taken to be known", i)
		}
	}
}

func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		head:                                 "a.json: at byte 128: the document ends before it is complete",
		head + `}`:                           "a.json: at byte 129: invalid character",
		head + `]} {}`:                       "there are data behind the document",
		head + `{"scope":7}]}`:               "accounts.scope is a number",
		head + `{"scope":{"kind":"moon"}}]}`: `an account of a "moon"`,
		head + `{"scope":{"kind":"run"},"counts":[{"event":"e"}]}]}`:                        "a count of e is not one",
		head + `{"scope":{"kind":"run"},"counts":[{"event":"e","value":-1}]}]}`:             "a count of e is not one",
		head + `{"scope":{"kind":"run"},"counts":[{"event":"e","value":1,"coverage":2}]}]}`: "the coverage of e is 2",
		head + `{"scope":{"kind":"core"},"counts":[{"event":"e","value":1,"lp":1}]}]}`:      "logical processors of a core",
		head + `{"scope":{"kind":"line","share_of":"e","addr":"here"},"counts":[]}]}`:       `"here" is not an address`,
		`{"schema":"cyclestack.diff/v1"}`:                                                   `its schema is "cyclestack.diff/v1", not cyclestack.account/v1`,
		``:                                                                                  "the document ends before it is complete",
	} {
		_, err := tables(t, text, false)
		var e *accounts.Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestDetect(t *testing.T) {
	for text, want := range map[string]bool{
		head: true,
		"\n{ \"schema\" : \"cyclestack.account/v1\"": true,
		streamHead:                        true,
		`{"schema":"cyclestack.diff/v1"}`: false,
		`{"counter-value" : "1"}`:         false,
		`cyclestack.account/v1`:           false,
		``:                                false,
	} {
		if got := accounts.Detect([]byte(text)); got != want {
			t.Errorf("Detect(%q) = %v", text, got)
		}
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(placed))
	f.Add([]byte(head + `]}`))
	f.Add([]byte(streamed))
	f.Fuzz(func(t *testing.T, text []byte) {
		r := accounts.NewReader(strings.NewReader(string(text)), "fuzz")
		for r.Next() {
			table := r.Table()
			for i := range table.Scopes {
				for _, c := range table.Row(i) {
					if c.Value < 0 || math.IsNaN(c.Value) || c.Running > c.Enabled {
						t.Errorf("a cell of %+v", c)
					}
				}
			}
		}
	})
}
