package report_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/testschema"
	"github.com/cyclestack/cyclestack/report"
)

// core2 makes an account of Core 2 with a missing node, an uncertain one and one over
// its threshold.
func core2(t *testing.T) (report.Header, *account.Account) {
	t.Helper()
	method, err := account.Load("core2", "core2-cycles", account.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("./app")}}
	cells := []counts.Cell{}
	for _, r := range []struct {
		event           string
		value, coverage float64
	}{{"CPU_CLK_UNHALTED.CORE", 1e9, 1}, {"RS_UOPS_DISPATCHED.CYCLES_NONE", 4e8, 1}, {"MEM_LOAD_RETIRED.L2_LINE_MISS", 2e6, 0.01},
		{"branches", 5, 1}} {
		l.Columns = append(l.Columns, counts.Column{Event: r.event})
		cells = append(cells, counts.Cell{Value: r.value, Enabled: 1e9, Running: r.coverage * 1e9, State: counts.Counted})
	}
	table := counts.NewTable(l)
	table.Label, table.Duration = "./app", 1
	copy(table.Row(0), cells)
	h := report.Header{CPU: method.CPU, Model: method.Model, Kind: "perf-stat-text", Files: []string{"a file.txt"}}
	return h, method.Bind(l).Evaluate(table, account.Place{}, nil)
}

func write(t *testing.T, format string, o report.Options) string {
	t.Helper()
	h, a := core2(t)
	var out bytes.Buffer
	o.Step = func(_ report.Header, a *account.Account, s account.Step) report.Step {
		if s.Kind != account.StepExplain {
			return report.Step{} // this reader cannot do that
		}
		return report.Step{Command: "explain " + a.Model().Nodes[s.Node].Name, Why: "what it means"}
	}
	w, err := report.New(format, &out, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Begin(h); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := w.Account(a); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.End(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestSchema checks that what the json format writes is what its schema says.
func TestSchema(t *testing.T) {
	text := write(t, "json", report.Options{})
	if err := testschema.Validate(t, report.Schema[report.Accounts](), text); err != nil {
		t.Fatalf("%#v", err)
	}
	var account struct {
		Accounts []struct {
			Nodes []struct {
				Name  string
				Value *float64
			}
			Missing []struct{ Node, Why string }
		}
	}
	if err := json.Unmarshal([]byte(text), &account); err != nil {
		t.Fatal(err)
	}
	if n := len(account.Accounts); n != 2 {
		t.Fatalf("%d accounts, want 2", n)
	}
	for _, n := range account.Accounts[1].Nodes {
		if n.Name == "Stalls" && (n.Value == nil || *n.Value != 0.4) {
			t.Errorf("Stalls = %v", n.Value)
		}
		if n.Name == "Divide" && n.Value != nil {
			t.Errorf("Divide = %v, and it was not counted", *n.Value)
		}
	}
	if len(account.Accounts[0].Missing) == 0 {
		t.Error("nothing is missing")
	}
}

// TestStreamSchema checks each line of a stream, and that the schema refuses a line with a
// misspelt key.
func TestStreamSchema(t *testing.T) {
	schema, err := os.ReadFile("schema/stream.v1.json")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(write(t, "json", report.Options{Layout: report.LayoutRows})), "\n")
	if len(lines) != 4 { // head, columns, two accounts
		t.Fatalf("%d lines: %q", len(lines), lines)
	}
	for i, key := range []string{`"model":`, `"nodes":`, `"values":`, `"counts":`} {
		if err := testschema.Validate(t, schema, lines[i]); err != nil {
			t.Errorf("%#v in %s", err, lines[i])
		}
		if testschema.Validate(t, schema, strings.Replace(lines[i], key, `"x":`, 1)) == nil {
			t.Errorf("%s may be misspelt", key)
		}
	}
	if !strings.Contains(lines[1], `"missing":[{`) || !strings.Contains(lines[2], `"doubt":{`) {
		t.Errorf("nothing is missing or in doubt: %q", lines)
	}
}

// TestSchemaRefuses checks that the schema can fail.
func TestSchemaRefuses(t *testing.T) {
	text := strings.Replace(write(t, "json", report.Options{}), `"together":`, `"togther":`, 1)
	if testschema.Validate(t, report.Schema[report.Accounts](), text) == nil {
		t.Error("a misspelt key passes")
	}
}

func TestTree(t *testing.T) {
	text := write(t, "tree", report.Options{Width: 90, Titles: true})
	for _, want := range []string{"Stalls", "40.0 %", "◄ bottleneck", "uncertain", "IDLE_DURING_DIV is not in the recording", "branches                                 5  5  BR_INST_RETIRED.ANY",
		"explain L2_Miss"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "\x1b") {
		t.Error("escape sequences without colour")
	}
	for _, line := range strings.Split(text, "\n") {
		if n := utf8.RuneCountInString(line); n > 90 {
			t.Errorf("%d columns: %s", n, line)
		}
		if strings.TrimRight(line, " ") != line {
			t.Errorf("blanks at the end of %q", line)
		}
	}
	if !strings.Contains(write(t, "tree", report.Options{Color: true}), "\x1b[1m") {
		t.Error("no bold for the bottleneck's path")
	}
}

func TestNodesAndLevel(t *testing.T) {
	text := write(t, "csv", report.Options{Nodes: "l2_*"})
	for line := range strings.Lines(text) {
		node := strings.Split(line, ",")[4]
		switch node {
		case "node", "Cycles", "Cycles.Stalls", "Cycles.Stalls.L2_Hit", "Cycles.Stalls.L2_Miss":
		default:
			t.Errorf("node %s is shown", node)
		}
	}
	if text := write(t, "csv", report.Options{Level: 1}); strings.Contains(text, "L2_Miss") {
		t.Error("level 2 is shown")
	}
	if _, err := report.New("csv", nil, report.Options{Nodes: "[a"}); err == nil {
		t.Error("a pattern that is none is taken")
	}
	if _, err := report.New("xml", nil, report.Options{}); err == nil {
		t.Error("a format that is none is taken")
	}
}

// TestJSONLines: who follows a document reads each account whole once it is written, and at the
// end has a document.
func TestJSONLines(t *testing.T) {
	h, a := core2(t)
	var out bytes.Buffer
	w, err := report.New("json", &out, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Begin(h); err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		before := out.Len()
		if err := w.Account(a); err != nil {
			t.Fatal(err)
		}
		line, ended := strings.CutSuffix(out.String()[before:], "\n")
		if !ended || strings.Contains(line, "\n") || !json.Valid([]byte(strings.TrimPrefix(line, ","))) {
			t.Errorf("account %d is not a line: %q", n, line)
		}
	}
	if err := w.End(); err != nil {
		t.Fatal(err)
	}
	if !json.Valid(out.Bytes()) {
		t.Errorf("no document: %s", &out)
	}
}

// TestScreenOfPlaces: an account with places that have long causes takes one screen.
func TestScreenOfPlaces(t *testing.T) {
	h, a := core2(t)
	cause := &account.Cause{Kind: "core", Text: strings.Repeat("waits for its last store, ", 8), Try: strings.Repeat("keep it in a register, ", 8)}
	hot := account.Hot{Function: "function", File: "file.c", Line: 1, Share: 0.3, Samples: 300, Cause: cause}
	for places := range 4 {
		a.Hotspots = &account.Hotspots{Samples: 1000, Running: 1, Places: slices.Repeat([]account.Hot{hot}, places)}
		var out strings.Builder
		w, err := report.New("tree", &out, report.Options{Width: 80, Lines: 24})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.Begin(h), w.Account(a), w.End()); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(out.String(), "\n"); n > 24 || strings.Count(out.String(), "function") < min(places, 1) {
			t.Errorf("%d places: %d lines:\n%s", places, n, out.String())
		}
	}
}
