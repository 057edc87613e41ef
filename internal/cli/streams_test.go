package cli

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/testshared"
)

// The long form of a document of accounts, as far as streams have the same.
type longAccount struct {
	Scope      map[string]any
	Nodes      []longNode
	Bottleneck []string
	Ambiguous  []struct {
		Path, Of string
		Margin   *float64
	}
	Audit   []struct{ Name, State string }
	Missing []struct{ Node, Why string }
	Counts  []longCount
	Notes   []string
	Also    []longSet
	Times   *longSet
	Unused  []string
	Unknown []string
}

type longSet struct {
	Model      struct{ Name string }
	Nodes      []longNode
	Bottleneck []string
}

type longNode struct {
	Path, Name, Section, Unit string
	Level                     int
	Value, Error, Coverage    *float64
	Together, Reliable        bool
	Flagged                   bool
	Doubt                     string
	Assumed                   []string
}

type longCount struct {
	Event, As, Unit, State string
	LP                     *int
	Value, Coverage        *float64
	Samples                int64
}

// The lines of a stream.
type streamColumns struct {
	Nodes   []longNode
	Events  []longCount
	Missing []struct{ Node, Why string }
	Unused  []string
	Unknown []string
	Notes   []string
	Also    []longSet
	Times   *longSet
}

type streamSet struct {
	Values, Errors, Coverage   []*float64
	Missing, Doubt             map[string][]int
	Apart, Flagged, Bottleneck []int
}

type streamLine struct {
	Schema  string
	Columns *streamColumns
	Scope   map[string]any
	streamSet
	Ambiguous []struct {
		Node, Of int
		Margin   *float64
	}
	Fails         []string
	Counts        []*float64
	CountCoverage []*float64 `json:"count_coverage"`
	Samples       []int64
	Uncounted     map[string][]int
	Notes         []string
	Also          []*streamSet
	Times         *streamSet
}

// nodes are the nodes of a set, as the long form has them.
func (s *streamSet) nodes(columns []longNode) []longNode {
	doubt := map[int]string{}
	for text, list := range s.Doubt {
		for _, i := range list {
			doubt[i] = text
		}
	}
	one := 1.0
	list := slices.Clone(columns)
	for i := range list {
		n := &list[i]
		n.Value, n.Doubt, n.Flagged = s.Values[i], doubt[i], slices.Contains(s.Flagged, i)
		if s.Errors != nil {
			n.Error = s.Errors[i]
		}
		if n.Coverage = &one; s.Coverage != nil {
			n.Coverage = s.Coverage[i]
		}
		n.Together = n.Value != nil && !slices.Contains(s.Apart, i)
		n.Reliable = n.Value != nil && n.Doubt == ""
	}
	return list
}

func pathsOf(nodes []longNode, list []int) []string {
	var out []string
	for _, i := range list {
		out = append(out, nodes[i].Path)
	}
	return out
}

// sameNodes compares nodes of both forms. Those without a column are not known.
func sameNodes(long, stream []longNode) error {
	of := map[string]longNode{}
	for _, n := range stream {
		of[n.Path] = n
	}
	for _, n := range long {
		got, ok := of[n.Path]
		if !ok {
			if n.Value != nil {
				return fmt.Errorf("%s is %g, and has no column", n.Path, *n.Value)
			}
			continue
		}
		delete(of, n.Path)
		if n.Value == nil { // of what is not known the coverage says nothing
			n.Coverage, got.Coverage = nil, nil
		}
		if !reflect.DeepEqual(n, got) {
			a, _ := json.Marshal(n)
			b, _ := json.Marshal(got)
			return fmt.Errorf("long   %s\nstream %s", a, b)
		}
	}
	for path, n := range of {
		if n.Value != nil {
			return fmt.Errorf("%s is only in the stream", path)
		}
	}
	return nil
}

// same compares an account of both forms.
func same(long *longAccount, c *streamColumns, s *streamLine) error {
	if !reflect.DeepEqual(long.Scope, s.Scope) {
		return fmt.Errorf("scope %v, and %v", long.Scope, s.Scope)
	}
	nodes := s.nodes(c.Nodes)
	if err := sameNodes(long.Nodes, nodes); err != nil {
		return err
	}
	if !slices.Equal(long.Bottleneck, pathsOf(c.Nodes, s.Bottleneck)) || len(long.Ambiguous) != len(s.Ambiguous) {
		return fmt.Errorf("bottleneck %v and %v", long.Bottleneck, pathsOf(c.Nodes, s.Bottleneck))
	}
	why := map[string]string{}
	for text, list := range s.Missing {
		for _, path := range pathsOf(c.Nodes, list) {
			why[path] = text
		}
	}
	for _, m := range c.Missing { // what is missing from all accounts: one may miss more
		for _, m2 := range long.Missing {
			if m2.Node == m.Node && containsWords(m2.Why, m.Why) {
				why[m.Node] = m2.Why
			}
		}
	}
	for _, m := range long.Missing {
		if why[m.Node] != m.Why {
			return fmt.Errorf("%s is missing: %q, and %q", m.Node, m.Why, why[m.Node])
		}
	}
	var fails []string
	for _, check := range long.Audit {
		if check.State == "fails" {
			fails = append(fails, check.Name)
		}
	}
	if !slices.Equal(fails, s.Fails) {
		return fmt.Errorf("checks that fail: %q, and %q", fails, s.Fails)
	}
	notes := slices.Sorted(slices.Values(slices.Concat(c.Notes, s.Notes)))
	if slices.Sort(long.Notes); !slices.Equal(long.Notes, notes) {
		return fmt.Errorf("notes %q, and %q", long.Notes, notes)
	}
	if !slices.Equal(long.Unused, c.Unused) || !slices.Equal(long.Unknown, c.Unknown) {
		return fmt.Errorf("unused events %q %q", long.Unused, c.Unused)
	}
	if err := sameFurther(long, c, s); err != nil {
		return err
	}
	return sameCountsOf(long.Counts, c.Events, s)
}

// containsWords reports whether a text has all words of another but the verbs.
func containsWords(text, words string) bool {
	return !slices.ContainsFunc(strings.Fields(words), func(w string) bool {
		return w != "is" && w != "are" && w != "and" && !strings.Contains(text, strings.Trim(w, ",;"))
	})
}

func sameFurther(long *longAccount, c *streamColumns, s *streamLine) error {
	for _, l := range long.Also {
		at := slices.IndexFunc(c.Also, func(o longSet) bool { return o.Model == l.Model })
		if at < 0 || s.Also[at] == nil {
			if slices.ContainsFunc(l.Nodes, func(n longNode) bool { return n.Value != nil }) {
				return fmt.Errorf("nothing of %s", l.Model.Name)
			}
			continue
		}
		if err := sameNodes(l.Nodes, s.Also[at].nodes(c.Also[at].Nodes)); err != nil {
			return err
		}
	}
	if long.Times == nil {
		return nil
	}
	return sameNodes(long.Times.Nodes, s.Times.nodes(c.Times.Nodes))
}

func sameCountsOf(long, events []longCount, s *streamLine) error {
	state := map[int]string{}
	for text, list := range s.Uncounted {
		for _, i := range list {
			state[i] = text
		}
	}
	one, n := 1.000000000, 0
	for i, v := range s.Counts {
		got := events[i%len(events)]
		got.Value, got.State = v, state[i]
		if v == nil && got.State == "" {
			continue // not in the recording
		}
		if got.Coverage = &one; s.CountCoverage != nil {
			got.Coverage = s.CountCoverage[i]
		}
		if s.Samples != nil {
			got.Samples = s.Samples[i]
		}
		want := long[n]
		if n++; want.Value == nil {
			want.Coverage, got.Coverage = nil, nil
		}
		if want.LP = nil; !reflect.DeepEqual(want, got) {
			a, _ := json.Marshal(want)
			b, _ := json.Marshal(got)
			return fmt.Errorf("count %s, and %s", a, b)
		}
	}
	if n != len(long) {
		return fmt.Errorf("%d counts, and %d", len(long), n)
	}
	return nil
}

// printedBy is what a command prints, "" if it fails.
func printedBy(t *testing.T, args ...string) string {
	t.Helper()
	var out, msg bytes.Buffer
	if status := Main(context.Background(), args, strings.NewReader(""), &out, &msg); status != 0 {
		t.Logf("%v: %s", args, msg.String())
		return ""
	}
	return out.String()
}

// compareStream compares the two forms of a report, and returns its number of accounts.
func compareStream(t *testing.T, args ...string) int {
	t.Helper()
	args = append([]string{"report", "--format", "json"}, args...)
	long := printedBy(t, append(args, "-v")...)
	if long == "" {
		return 0
	}
	var want struct{ Accounts []longAccount }
	if err := json.Unmarshal([]byte(long), &want); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	var columns *streamColumns
	n := 0
	d := json.NewDecoder(strings.NewReader(printedBy(t, args...)))
	for first := true; ; first = false {
		line := &streamLine{}
		if err := d.Decode(line); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		switch {
		case first && line.Schema != "cyclestack.stream/v1":
			t.Fatalf("%v: schema %q", args, line.Schema)
		case first:
		case line.Columns != nil:
			columns = line.Columns
		default:
			if n >= len(want.Accounts) {
				t.Fatalf("%v: more than %d accounts", args, n)
			}
			if err := same(&want.Accounts[n], columns, line); err != nil {
				t.Errorf("%v: account %d: %v", args, n, err)
			}
			n++
		}
	}
	if n != len(want.Accounts) {
		t.Errorf("%v: %d accounts of %d", args, n, len(want.Accounts))
	}
	return n
}

// TestStreamsEqual: the compact form of published recordings says what the long one says,
// value for value.
func TestStreamsEqual(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(testshared.Dir(t, "corpus", "perfstat"), "*"))
	if err != nil || len(files) < 140 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	accounts := 0
	for i, file := range files {
		accounts += compareStream(t, "--by", "interval", file)
		if i%8 == 0 {
			for _, by := range []string{"cpu", "core", "thread"} {
				accounts += compareStream(t, "--by", by, file)
			}
		}
	}
	if accounts < 150 {
		t.Errorf("%d accounts were compared", accounts)
	}
}

// TestStreams: the same of recordings with what the published ones lack: columns that
// appear later, idle processors, contradictions, cores.
func TestStreams(t *testing.T) {
	power := filepath.Join(t.TempDir(), "power7.csv")
	for name, tt := range map[string]struct {
		text string
		args []string
		want int
	}{
		"intervals":      {string(recording(20, true)), []string{"--cpu", "power7", "--by", "interval,cpu"}, 40},
		"contradictions": {string(recording(20, false)), []string{"--cpu", "power7", "--by", "interval,cpu"}, 40},
		"idle": {"     1.000000000,CPU0,0,,cycles,1000000,100.00,,\n     1.000000000,CPU0,0,,instructions,1000000,100.00,,\n" +
			"     1.000000000,CPU1,<not counted>,,cycles,0,0.00,,\n     1.000000000,CPU1,<not counted>,,instructions,0,0.00,,\n" +
			"     2.000000000,CPU0,500,,cycles,1000000,50.00,,\n     2.000000000,CPU0,700,,instructions,1000000,50.00,,\n" +
			"     2.000000000,CPU1,90,,cycles,1000000,100.00,,\n     2.000000000,CPU1,<not supported>,,instructions,0,0.00,,\n", []string{"--cpu", "skylakex", "--by", "interval,cpu"}, 4},
		"other events later": {"     1.000000000,5000,,cycles,1000000,100.00,,\n     2.000000000,5000,,cycles,1000000,100.00,,\n     2.000000000,7000,,instructions,1000000,100.00,,\n" +
			"     3.000000000,5000,,cycles,1000000,100.00,,\n     3.000000000,9,,page-faults,1000000,100.00,,\n", []string{"--cpu", "skylakex", "--by", "interval"}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			put(t, power, tt.text)
			if n := compareStream(t, append(tt.args, power)...); n != tt.want {
				t.Errorf("%d accounts", n)
			}
			readBack(t, append(tt.args, "--format", "json"), power)
		})
	}
}

// readBack reports a recording as a stream, and that stream again. Both say the same, but for
// where the counts are from.
func readBack(t *testing.T, args []string, file string) {
	t.Helper()
	stream := file + ".json"
	put(t, stream, printedBy(t, append([]string{"report", file}, args...)...))
	lines := func(file string) (list []string) {
		_, text, _ := strings.Cut(printedBy(t, append([]string{"report", file}, args...)...), "\n")
		for line := range strings.Lines(text) {
			var l map[string]any
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				t.Fatal(err)
			}
			delete(l, "notes")
			if c, ok := l["columns"].(map[string]any); ok {
				delete(c, "notes")
			}
			b, _ := json.Marshal(l)
			list = append(list, string(b))
		}
		return list
	}
	want, got := lines(file), lines(stream)
	if len(want) < 2 || len(want) != len(got) {
		t.Fatalf("%d lines, read back %d", len(want), len(got))
	}
	for i := range want {
		if want[i] != got[i] {
			t.Errorf("line %d\n%s\nread back\n%s", i, want[i], got[i])
		}
	}
}

// TestStreamAsked: a stream has what was asked for: levels hold for all nodes and for what
// is missing, and counts are those of these nodes.
func TestStreamAsked(t *testing.T) {
	file := filepath.Join(t.TempDir(), "power7.csv")
	put(t, file, string(recording(2, true)))
	columns := func(args ...string) *streamColumns {
		lines := strings.Split(printedBy(t, append([]string{"report", "--cpu", "power7", "--by", "interval,cpu", "--format", "json", file}, args...)...), "\n")
		var line streamLine
		if len(lines) < 3 || json.Unmarshal([]byte(lines[1]), &line) != nil || line.Columns == nil {
			t.Fatalf("%q", lines)
		}
		return line.Columns
	}
	all := columns()
	for level := 1; level < 4; level++ {
		c := columns("--level", fmt.Sprint(level))
		nodes, want := 0, 0
		for _, n := range c.Nodes {
			if n.Level > level || n.Section != "" {
				t.Errorf("--level %d has %s", level, n.Path)
			}
			nodes++
		}
		for _, n := range all.Nodes {
			if n.Level <= level && n.Section == "" {
				want++
			}
		}
		for _, m := range c.Missing {
			if strings.Count(m.Node, ".") > level {
				t.Errorf("--level %d: %s is missing", level, m.Node)
			}
		}
		if nodes != want || len(c.Events) >= len(all.Events) {
			t.Errorf("--level %d has %d nodes, want %d, and %d events of %d", level, nodes, want, len(c.Events), len(all.Events))
		}
	}
	c := columns("--nodes", "Frontend_*")
	for _, n := range c.Nodes {
		if n.Level > 1 && !strings.Contains(n.Path, "Frontend_") {
			t.Errorf("--nodes Frontend_* has %s", n.Path)
		}
	}
	if len(c.Nodes) < 3 || len(c.Nodes) >= len(all.Nodes) || len(c.Events) >= len(all.Events) {
		t.Errorf("--nodes Frontend_* has %d nodes and %d events", len(c.Nodes), len(c.Events))
	}
}

// TestStreamCSV: each row has the values, errors and flags of the long form, or says why not.
func TestStreamCSV(t *testing.T) {
	file := filepath.Join(t.TempDir(), "power7.csv")
	put(t, file, string(recording(3, false))+"     4.000000000,CPU0,<not counted>,,r100f2,0,0.00,,\n     4.000000000,CPU0,7,,r400fa,5,100.00,,\n")
	args := []string{"report", "--cpu", "power7", "--by", "interval,cpu", "--format", "csv", file}
	wide, err := csv.NewReader(strings.NewReader(printedBy(t, args...))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	long, err := csv.NewReader(strings.NewReader(printedBy(t, append(args, "-v")...))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]int{}
	for i, name := range wide[0] {
		at[name] = i
	}
	key := func(r []string) string { return strings.Join(r[:4], ",") }
	row, compared := 1, 0
	for _, r := range long[1:] {
		if key(r) != key(wide[row]) {
			row++
		}
		w := wide[row]
		if key(r) != key(w) {
			t.Fatalf("row %v after %v", r, w)
		}
		name := r[4][strings.LastIndex(r[4], ".")+1:]
		col, ok := at[name]
		if !ok {
			if r[6] != "" {
				t.Errorf("%s = %s has no column", name, r[6])
			}
			continue
		}
		compared++
		flags := strings.Fields(w[col+2])
		is := func(flag string) string { return fmt.Sprint(slices.Contains(flags, flag)) }
		reliable := r[6] != "" && is("unreliable") == "false"
		if w[col] != r[6] || w[col+1] != r[8] || is("flagged") != r[12] || fmt.Sprint(reliable) != r[11] || r[6] != "" && is("apart") == r[10] {
			t.Errorf("%s: %v, and %v", name, r, w[col:col+3])
		}
		if why := w[at["why"]]; r[14] != "" && !strings.Contains(why, r[14]+":") || !strings.Contains(why, name) && r[14] != "" {
			t.Errorf("%s: %q is not in %q", name, r[14], why)
		}
	}
	if row != len(wide)-1 || compared < 80 {
		t.Errorf("%d rows of %d, %d values", row, len(wide)-1, compared)
	}
}

// put writes a file.
func put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
