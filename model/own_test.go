package model

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ownFiles are a folder of a user's own: a processor, its events and a model.
var ownFiles = map[string]string{
	"cpus.toml": "[[cpu]]\nname = \"mychip\"\ntitle = \"My chip\"\nvendor = \"me\"\nids = [\"Mine-1-2\"]\naliases = [\"mc\"]\n" +
		"pmus = [\"cpu\"]\nwidth = 2\nthreads = 1\nlayout = \"riscv\"\nevents = \"MINE\"\nmodel = \"mine\"\ncounters = \"0-3\"\nfixed = 2\n",
	"events/mychip.csv": "cpus,name,config,counters,unit,aliases\nMINE,CLOCKS,0x1,,cycles,cycles\nMINE,STALLS,0x2,,cycles,\nMINE,OPS,0x3,,instructions,instructions\n",
	"mine.toml": strings.NewReplacer(`"m"`, `"mine"`, "skylakex", "mychip").Replace(lintHead) +
		"of = \"CLOCKS\"\n" + explained("Cycles", `formula = "CLOCKS"`) + explained("Stalled", `parent = "Cycles"`, `formula = "STALLS"`),
}

func ownFolderOf(t *testing.T, changes ...string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range ownFiles {
		text = strings.NewReplacer(changes...).Replace(text)
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestOwnProcessor: a folder gives a processor that the catalogue does not have, with its
// events and its model; one of a name that the catalogue has hides it.
func TestOwnProcessor(t *testing.T) {
	cat, err := Embedded()
	if err != nil {
		t.Fatal(err)
	}
	before, _ := cat.CPU("skylakex")
	if err := cat.Add(ownFolderOf(t), ownFolderOf(t, "mychip", "skylakex", "mine", "mine2", "Mine-1-2", "GenuineIntel-6-55-4", "riscv", "intel", `"mc"`, `"mine-x"`)); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{"mychip": "mychip", "MC": "mychip", "Mine-1-2": "mychip", "skylakex": "skylakex", "GenuineIntel-6-55-4": "skylakex"} {
		p, err := cat.CPU(query)
		if err != nil || p.Name != want || p.Width != 2 || p.Counters != "0-3" || p.Fixed != 2 {
			t.Errorf("%s: %+v, %v", query, p, err)
			continue
		}
		m, err := cat.Model("", p.Name)
		if err != nil || !strings.HasPrefix(m.Name, "mine") || len(m.Nodes) != 2 {
			t.Errorf("%s: model %+v, %v", query, m, err)
		}
		table, err := cat.Events(p)
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := table.Lookup("stalls"); !ok || e.Config != 2 || len(table.Events()) != 3 {
			t.Errorf("%s: STALLS is %+v of %d", query, e, len(table.Events()))
		}
		if table.Resolve(EventRef{Name: "cycles"}).Config != 1 {
			t.Errorf("%s: cycles is not CLOCKS", query)
		}
	}
	other, err := Embedded()
	if err != nil {
		t.Fatal(err)
	}
	if p, err := other.CPU("skylakex"); err != nil || p != before {
		t.Errorf("another catalogue has %+v, %v", p, err)
	}
}

// TestLintFolder: one run names every fault in a folder, each with its line.
func TestLintFolder(t *testing.T) {
	cat := embeddedCatalogue(t)
	if found, err := LintFile(cat, ownFolderOf(t)); err != nil || len(found) > 0 {
		t.Errorf("without faults: %v, %v", found, err)
	}
	dir := ownFolderOf(t, "threads = 1\n", "threads = 0\ncolour = 1\n", "MINE,STALLS,0x2,", "MINE,STALLS,two,", "MINE,OPS", "MIEN,OPS",
		"title = \"t\"\nabout = \"a\"\nsource", "titel = \"t\"\nabout = \"a\"\nsource", `formula = "STALLS"`, `formula = "STALL + ("`)
	expectLint(t, cat, dir, []string{
		`cpus.toml:1: error: processor mychip: threads = 0: at least one`,
		`cpus.toml:10: error: unknown key "colour" in "cpu"`,
		`events/mychip.csv:3: error: config: "two" is not a number of 64 bits`,
		`events/mychip.csv:4: warning: no processor has the key "MIEN"`,
		`mine.toml:1: warning: the model has no title`,
		`mine.toml:3: error: unknown key "titel"`,
		`mine.toml:19: error: node Stalled: formula: offset 9: expected a number, a name or an expression, found the end, near "STALL + ("`,
	})

	// A second node of one name hides no other fault, in the file or in one that extends it.
	dir = ownFolderOf(t, `formula = "STALLS"`, `formula = "STALL + ("`, "of = \"CLOCKS\"\n", "of = \"CLOCKS\"\n"+explained("Cycles", `formula = "CLOCKS"`)+
		explained("Lost", `parent = "Cycle"`, `formula = "STALLS"`)+explained("Waiting", `parent = "Cycles"`, `formula = "STALLZ"`, `threshold = "Waiting > ("`))
	more := "extends = \"mine\"\nname = \"more\"\n" + explained("Extra", `parent = "Cycles"`, `formula = "OPZ"`)
	write(t, dir, "more.toml", more+explained("Extra", `parent = "Cycles"`, `formula = "OPS"`))
	expectLint(t, cat, dir, []string{
		`mine.toml:18: error: node Lost: there is no node "Cycle" to be its parent`,
		`mine.toml:27: error: node Waiting: formula: "STALLZ" is no node, parameter, input or event of mychip`,
		`mine.toml:28: error: node Waiting: threshold: offset 11: expected a number, a name or an expression, found the end, near "Waiting > ("`,
		`mine.toml:34: error: there is already a node "Cycles", at line 9`,
		`mine.toml:43: error: node Stalled: formula: offset 9: expected a number, a name or an expression, found the end, near "STALL + ("`,
		`more.toml:6: error: node Extra: formula: "OPZ" is no node, parameter, input or event of mychip`,
		`more.toml:12: error: there is already a node "Extra", at line 3`,
	})
}

// expectLint compares the findings in a folder.
func expectLint(t *testing.T, cat *Catalogue, dir string, want []string) {
	t.Helper()
	found, err := LintFile(cat, dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range found {
		got = append(got, strings.TrimPrefix(filepath.ToSlash(f.String()), filepath.ToSlash(dir)+"/"))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestLintGeneric: a model for any processor can name the kernel's events and those of
// simulators, and no others.
func TestLintGeneric(t *testing.T) {
	text := strings.Replace(lintHead, "skylakex", "generic", 1) + "of = \"cycles\"\n" + explained("Cycles", `formula = "cycles"`) +
		explained("A", `parent = "Cycles"`, `formula = "branch_mises + D1mr"`)
	file := write(t, t.TempDir(), "m.toml", text)
	found, err := LintFile(embeddedCatalogue(t), file)
	if err != nil || len(found) != 1 || found[0].Line != 19 || !strings.Contains(found[0].Msg, `generic has no event "branch_mises"`) {
		t.Errorf("%v, %v", found, err)
	}
}
