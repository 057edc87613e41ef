package account_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
)

// slots is a method without a root for the whole, in lines of "name parent
// formula keys…".
func slots(t *testing.T, nodes ...string) *account.Method {
	t.Helper()
	text := "name = \"slots\"\nunit = \"slots\"\ncpus = [\"toy\"]\n"
	for _, n := range nodes {
		f := strings.Fields(n)
		text += "[[node]]\nname = \"" + f[0] + "\"\nformula = \"" + f[2] + " / CYC\"\n"
		if f[1] != "-" {
			text += "parent = \"" + f[1] + "\"\n"
		}
		for _, key := range f[3:] {
			name, value, _ := strings.Cut(key, "=")
			text += name + " = " + value + "\n"
		}
	}
	own := maps.Clone(files)
	delete(own, "models/toy.toml")
	own["models/slots.toml"] = &fstest.MapFile{Data: []byte(text)}
	return compile(t, own, account.Options{})
}

// TestStandalone: a node below an unflagged parent is flagged only if its threshold is
// standalone. The bottleneck is below flagged nodes.
func TestStandalone(t *testing.T) {
	method := slots(t,
		`A - STALL threshold="A>0.5"`,
		`Gated A STALL/1.9 threshold="Gated>0.1"`,
		`Alone A STALL/3 threshold="Alone>0.05" standalone=true`,
		`Below Alone STALL/3 threshold="Below>0.05"`,
		`Under A STALL/100 threshold="Under>0.9" standalone=true`,
		`B - MISS threshold="B>0.1"`,
	)
	for _, tt := range []struct {
		stall, miss   float64
		flagged, path string
	}{
		{200, 150, "Alone Below B", "A"}, // B is flagged, but there is more of A
		{600, 150, "A Gated Alone Below B", "A Gated"},
		{200, 50, "Alone Below", ""},
	} {
		a := run(t, method, 1, reading{event: "CYC", value: 1000}, reading{event: "STALL", value: tt.stall}, reading{event: "MISS", value: tt.miss})
		var flagged, path []string
		for i := range a.Nodes {
			if a.Nodes[i].Flagged {
				flagged = append(flagged, a.Model().Nodes[i].Name)
			}
		}
		for _, i := range a.Bottleneck {
			path = append(path, a.Model().Nodes[i].Name)
		}
		if got := strings.Join(flagged, " "); got != tt.flagged {
			t.Errorf("%v: flagged %q, want %q", tt.stall, got, tt.flagged)
		}
		if got := strings.Join(path, " "); got != tt.path {
			t.Errorf("%v: bottleneck %q, want %q", tt.stall, got, tt.path)
		}
	}
}

// TestRootsSum: roots that are shares sum to 1, whether their children overlap
// or not; another division of the whole, in a section, is not added.
func TestRootsSum(t *testing.T) {
	readings := []reading{{event: "CYC", value: 1000}, {event: "STALL", value: 600}, {event: "MISS", value: 400}}
	for _, tt := range []struct {
		name  string
		nodes []string
		want  string
	}{
		{"one whole", []string{`A - STALL`, `B - MISS`}, "level 1 sums to 1 holds"},
		{"too much", []string{`A - STALL`, `B - STALL`}, "level 1 sums to 1 fails"},
		{"overlap", []string{`A - STALL overlap=true`, `C A STALL`, `D A STALL`, `B - MISS`}, "level 1 sums to 1 holds"},
		{"overlap, too much", []string{`A - STALL overlap=true`, `B - STALL`}, "level 1 sums to 1 fails"},
		{"two divisions", []string{`A - STALL`, `B - MISS`, `Again - STALL section="Auxiliary"`}, "level 1 sums to 1 holds"},
		{"one root", []string{`A - STALL`}, ""},
		{"unknown", []string{`A - STALL`, `B - HIT`}, "level 1 sums to 1 skipped"},
	} {
		a := run(t, slots(t, tt.nodes...), 1, readings...)
		var got []string
		for _, c := range a.Checks {
			got = append(got, c.Name+" "+c.State.String())
		}
		if !slices.Equal(got, strings.FieldsFunc(tt.want, func(r rune) bool { return r == ',' })) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestClosures: which sums of parts hold, fail, and contradict the counts.
func TestClosures(t *testing.T) {
	tree := []string{`A - STALL`, `C A MISS`, `D A HIT`, `B - INST`}
	for _, tt := range []struct {
		name                    string
		nodes                   []string
		stall, miss, hit, other float64
		coverage                float64
		want                    string // the checks that fail, with a ! those that are contradictions
	}{
		{"sums", tree, 600, 300, 300, 400, 1, ""},
		{"within the tolerance", tree, 600, 310, 300, 400, 1, ""},
		{"beyond it", tree, 600, 340, 300, 400, 1, "children of A sum to it"},
		{"parts that are more than all", tree, 600, 360, 300, 400, 1, "children of A sum to it!"},
		{"parts that are less", tree, 600, 200, 300, 400, 1, "children of A sum to it"},
		{"parts that are more than all, in turns", tree, 600, 360, 300, 400, 0.3, ""},
		{"a part that is more than all", tree, 500, 560, 0, 500, 1, "children of A sum to it!, C is part of A!"},
		{"a part that is more than all, in turns", tree, 500, 560, 0, 500, 0.3, ""},
		{"level 1 is too much", tree, 600, 300, 300, 460, 1, "level 1 sums to 1!"},
		{"level 1 is too little", tree, 600, 300, 300, 340, 1, "level 1 sums to 1!"},
		{"level 1, a little", tree, 600, 300, 300, 440, 1, "level 1 sums to 1"},
		{"impossible", tree, 1100, 600, 500, 0, 1, "level 1 sums to 1!, A is possible!"},
		{"impossible, in turns", tree, 1100, 600, 500, 0, 0.3, ""},
		{"estimates that overshoot", []string{`A - STALL`, `C A MISS max=2`, `D A HIT`, `B - INST`}, 600, 360, 300, 400, 1, "children of A sum to it"},
		{"an estimate alone", []string{`A - STALL`, `C A MISS max=2`, `D A HIT`, `B - INST`}, 500, 560, 0, 500, 1, "children of A sum to it"},
		{"a rest", []string{`A - STALL`, `C A MISS`, `D A (STALL-MISS) negative="x"`, `B - INST`}, 600, 660, 0, 400, 1, "C is part of A!"},
		{"a rest that is never below 0", []string{`A - STALL`, `C A MISS`, `D A max(0,STALL-MISS)`, `B - INST`}, 600, 630, 0, 400, 1, "children of A sum to it"},
		{"in a section", []string{`A - STALL section="Other"`, `C A MISS section="Other"`, `D A HIT section="Other"`}, 600, 360, 300, 400, 1, "children of A sum to it"},
	} {
		readings := []reading{{event: "CYC", value: 1000}, {event: "STALL", value: tt.stall}, {event: "MISS", value: tt.miss},
			{event: "HIT", value: tt.hit}, {event: "INST", value: tt.other}}
		for i := range readings {
			readings[i].coverage, readings[i].group = tt.coverage, i+1
		}
		a := run(t, slots(t, tt.nodes...), 0.1, readings...)
		var got []string
		for i := range a.Checks {
			switch c := &a.Checks[i]; {
			case !c.Closure() || c.State != account.Fails:
			case c.Contradicts():
				got = append(got, c.Name+"!")
			default:
				got = append(got, c.Name)
			}
		}
		if s := strings.Join(got, ", "); s != tt.want {
			t.Errorf("%s: %q fail, want %q", tt.name, s, tt.want)
		}
	}
}

// TestClosureOfCode: by place, chance puts samples a little off where they
// belong, which contradicts nothing.
func TestClosureOfCode(t *testing.T) {
	method := slots(t, `A - STALL`, `C A MISS`, `D A HIT`, `B - INST`)
	a := run(t, method, 1, reading{event: "CYC", value: 1000}, reading{event: "STALL", value: 1200}, reading{event: "MISS", value: 1300},
		reading{event: "HIT", value: 300}, reading{event: "INST", value: 400})
	if !a.Contradicted() {
		t.Fatal("the run is not contradicted")
	}
	layout := *a.Binding.Layout
	layout.Scopes = []counts.Scope{{Kind: counts.Function, Code: &counts.Code{Function: "f"}}}
	table := counts.NewTable(&layout)
	for col, c := range a.Counts() {
		*table.Cell(0, col) = counts.Cell{Value: c.Value, State: counts.Counted}
	}
	if a := method.Bind(&layout).Evaluate(table, account.Place{}, nil); a.Contradicted() {
		t.Errorf("the function is contradicted, by %v", a.Suspects())
	}
}
