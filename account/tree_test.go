package account_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/cyclestack/cyclestack/account"
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

// TestStandalone: a node is flagged below a parent that is not only if its
// threshold stands by itself, and the bottleneck is looked for below flagged
// nodes.
func TestStandalone(t *testing.T) {
	method := slots(t,
		`A - STALL threshold="A>0.5"`,
		`Gated A STALL threshold="Gated>0.1"`,
		`Alone A STALL threshold="Alone>0.1" standalone=true`,
		`Below Alone STALL threshold="Below>0.1"`,
		`Under A STALL threshold="Under>0.9" standalone=true`,
		`B - MISS threshold="B>0.1"`,
	)
	for _, tt := range []struct {
		stall, miss   float64
		flagged, path string
	}{
		{200, 150, "Alone Below B", "B"},
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
