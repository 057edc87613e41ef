package model

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/cyclestack/cyclestack/internal/sorting"
)

// lintText lints a model file given as text, and returns the findings without
// the file's name.
func lintText(t *testing.T, text string) []string {
	t.Helper()
	file := write(t, t.TempDir(), "m.toml", text)
	found, err := LintFile(testCatalogue(t), file)
	if err != nil {
		t.Fatal(err)
	}
	lines := []string{}
	for _, f := range found {
		lines = append(lines, strings.TrimPrefix(f.String(), file+":"))
	}
	return lines
}

// The pieces of model files below have no findings of their own. Their lines:
// lintHead has 7, and each table one for its header and one for each key.
const lintHead = "name = \"m\"\nversion = \"1\"\ntitle = \"t\"\nabout = \"a\"\nsource = \"s\"\ncpus = [\"skylakex\"]\nunit = \"cycles\"\n"

func explained(name string, keys ...string) string {
	return node(name, append(keys, `title = "t"`, `about = "a"`, `causes = ["c"]`, `try = ["t"]`)...)
}

func TestLint(t *testing.T) {
	whole := "of = \"cycles\"\n" + explained("Cycles", `formula = "cycles"`) // lines 8 to 15
	slots := strings.Replace(lintHead, `unit = "cycles"`, `unit = "slots"`, 1)
	tests := []struct {
		name, text string
		want       []string
	}{
		{"nothing", lintHead + whole + explained("A", `parent = "Cycles"`, `formula = "INT_MISC.RECOVERY_CYCLES"`), nil},
		{"a model that does not load", lintHead + node("A", `formula = "1 +"`) + node("B", `formula = "NO"`, "size = 1"), []string{
			"8: warning: node A has no title, about",
			`10: error: node A: formula: offset 3: expected a number, a name or an expression, found the end, near "1 +"`,
			"11: warning: node B has no title, about",
			`13: error: node B: formula: "NO" is no node, parameter, input or event of skylakex`,
			`14: error: unknown key "size" in "node"`,
		}},
		{"two faults", lintHead + node("A", `formula = "1 +"`) + node("B", `formula = "2 +"`), []string{
			"8: warning: node A has no title, about",
			`10: error: node A: formula: offset 3: expected a number, a name or an expression, found the end, near "1 +"`,
			"11: warning: node B has no title, about",
			`13: error: node B: formula: offset 3: expected a number, a name or an expression, found the end, near "2 +"`,
		}},
		{"nothing in it", lintHead, []string{"1: error: the model has neither nodes nor relations"}},
		{"texts", "name = \"m\"\ncpus = [\"skylakex\"]\nunit = \"cycles\"\n" +
			node("A", `formula = "cycles"`, `threshold = "A > 1e6"`) +
			"[[parameter]]\nname = \"P\"\nvalue = 1\n" +
			"[[relation]]\nname = \"r\"\nleft = \"cycles * P\"\nright = \"cycles\"\n", []string{
			"1: warning: the model has no about",
			"1: warning: the model has no source",
			"1: warning: the model has no title",
			"1: warning: the model has no version",
			"1: warning: the tree is a whole without parts: no node has level 1",
			"4: warning: node A has no title, about, causes, try",
			"8: warning: parameter P: it needs a unit and an about",
			"11: warning: relation r: what it means if it holds or fails is not said",
		}},
		{"unused", lintHead + whole + explained("A", `parent = "Cycles"`, `formula = "cycles if has_event(ASKED) else 0"`) +
			"[[input]]\nname = \"ASKED\"\nevents = [\"cycles\"]\n[[input]]\nname = \"IDLE\"\nevents = [\"cycles\"]\n" +
			"[[parameter]]\nname = \"P\"\nvalue = 1\nunit = \"1\"\nabout = \"a\"\n", []string{
			"27: warning: input IDLE is not used",
			"30: warning: parameter P is not used",
		}},

		// events
		{"events of one processor only", strings.Replace(lintHead, `["skylakex"]`, `["skylakex", "icelakex"]`, 1) + whole +
			explained("A", `parent = "Cycles"`, `formula = "UOPS_ISSUED.ANY"`, `sample = ["UOPS_ISSUED.ANY:pp"]`) +
			explained("B", `parent = "Cycles"`, `formula = "UOPS_ISSUED.ANY if has_event(UOPS_ISSUED.ANY) else cycles"`) +
			"[[input]]\nname = \"I\"\nevents = [\"UOPS_ISSUED.ANY\"]\n[[input]]\nname = \"J\"\nevents = [\"UOPS_ISSUED.ANY\", \"cycles\"]\n" +
			explained("C", `parent = "Cycles"`, `formula = "I + J"`), []string{
			`19: error: node A: formula comes to uops, which should be cycles`,
			`19: error: node A: formula: icelakex has no event "UOPS_ISSUED.ANY"`,
			`20: warning: node A: sample: icelakex has no event "UOPS_ISSUED.ANY:pp"`,
			`28: error: node B: formula: the operands of if have different units, uops and cycles, in "UOPS_ISSUED.ANY if has_event(UOPS_ISSUED.ANY) el…"`,
			`33: error: input I: icelakex has no event "UOPS_ISSUED.ANY"`,
			`42: error: node C: formula comes to uops, which should be cycles`,
		}},
		{"codes and terms", lintHead + whole + explained("A", `parent = "Cycles"`, `formula = 'cpu@event\=0x77\,umask\=1@'`) +
			explained("B", `parent = "Cycles"`, `formula = 'cpu@cycles\,colour\=1@'`) +
			explained("C", `parent = "Cycles"`, `formula = 'uncore_x@event\=1\,colour\=1@'`), []string{
			`19: warning: node A: formula: no event of skylakex has the code of "cpu/event=0x77,umask=1/"`,
			`27: error: node B: formula: "cpu/cycles,colour=1/" has a term that is no field of the event codes of skylakex`,
		}},
		{"no table", strings.Replace(lintHead, "skylakex", "bare", 1) + whole + explained("A", `parent = "Cycles"`, `formula = "WHATEVER"`), nil},
		{"event sets", lintHead + whole + explained("A", `parent = "Cycles"`, `formula = "INT_MISC.RECOVERY_CYCLES"`) +
			"[[event-set]]\nname = \"one\"\nruns = 1\nevents = [{event = \"L1D_PEND_MISS.PENDING\"}, {event = \"L1D_PEND_MISS.FB_FULL\"}]\n" +
			"[[event-set]]\nname = \"two\"\nruns = 2\nevents = [{event = \"L1D_PEND_MISS.PENDING\"}, {event = \"L1D_PEND_MISS.FB_FULL\"}]\n" +
			"[[event-set]]\nname = \"none\"\nevents = [{event = \"NO_EVENT\"}]\n", []string{
			"24: error: event-set one: with runs = 1, L1D_PEND_MISS.FB_FULL finds no free counter on skylakex",
			`32: error: event-set none: skylakex has no event "NO_EVENT"`,
		}},
		{"counters", lintHead + whole + explained("A", `parent = "Cycles"`, `formula = "min(L1D_PEND_MISS.PENDING, L1D_PEND_MISS.FB_FULL)"`) +
			explained("B", `parent = "Cycles"`, `formula = "min(L1D_PEND_MISS.PENDING, cycles + INT_MISC.RECOVERY_CYCLES)"`), []string{
			"19: note: node A: its events cannot be counted together on skylakex: L1D_PEND_MISS.FB_FULL finds no free counter",
		}},

		// units
		{"units", lintHead + whole + explained("A", `parent = "Cycles"`, `formula = "cycles + instructions"`) +
			explained("B", `parent = "Cycles"`, `formula = "UOPS_ISSUED.ANY * P"`) +
			explained("C", `section = "Other"`, `formula = "instructions / cycles"`, `unit = "cycles/instruction"`) +
			explained("D", `section = "Other"`, `formula = "cycles if instructions / cycles > 2 else 0"`, `unit = "cycles"`) +
			"[[parameter]]\nname = \"P\"\nvalue = 3\nunit = \"cycles/instruction\"\nabout = \"a\"\n" +
			"[[relation]]\nname = \"r\"\nleft = \"cycles\"\nright = \"instructions\"\nholds = \"h\"\nfails = \"f\"\n", []string{
			"10: error: node Cycles: its children are always more than it",
			`19: error: node A: formula: the operands of + have different units, cycles and instructions, in "cycles + instructions"`,
			`27: error: node B: formula comes to cycles*uops/instruction, which should be cycles`,
			`35: error: node C: formula comes to instructions/cycle, which should be cycles/instruction`,
			`55: error: relation r: left comes to cycles, which should be instructions`,
		}},
		{"shares", slots + explained("A", `formula = "UOPS_ISSUED.ANY / (4 * cycles)"`) + explained("B", `formula = "instructions / (4 * cycles)"`), []string{
			"10: note: node A: formula comes to slots/cycle, which should be 1",
			"17: note: node B: formula comes to instructions/cycle, which should be 1",
		}},

		// numbers
		{"children that are too much", lintHead + whole + explained("A", `parent = "Cycles"`, `formula = "cycles"`) + explained("B", `parent = "Cycles"`, `formula = "cycles / 2"`), []string{
			"10: error: node Cycles: its children are always more than it",
		}},
		{"children that are too little", lintHead + whole + explained("A", `parent = "Cycles"`, `formula = "cycles / 4"`) + explained("B", `parent = "Cycles"`, `formula = "cycles / 2"`), []string{
			"10: error: node Cycles: its children are always less than it; one with rest = true would show what they leave",
		}},
		{"children with a rest", lintHead + whole + explained("A", `parent = "Cycles"`, `formula = "cycles / 4"`) + explained("B", `parent = "Cycles"`, "rest = true"), nil},
		{"children that overlap", lintHead + strings.Replace(whole, "formula", "overlap = true\nformula", 1) + explained("A", `parent = "Cycles"`, `formula = "cycles"`) + explained("B", `parent = "Cycles"`, `formula = "cycles"`), nil},
		{"children with units of their own", lintHead + whole + explained("A", `parent = "Cycles"`, `formula = "cycles"`) + explained("B", `parent = "Cycles"`, `formula = "instructions"`, `unit = "instructions"`), nil},
		{"children that are unknown", lintHead + whole + explained("A", `parent = "Cycles"`, `formula = "cycles / 0"`) + explained("B", `parent = "Cycles"`, `formula = "cycles"`), []string{
			"10: note: node Cycles: whether its children can sum to it was not found out",
		}},
		{"thresholds", lintHead + whole +
			explained("A", `parent = "Cycles"`, `formula = "INT_MISC.RECOVERY_CYCLES"`, `threshold = "A > 1.5"`) +
			explained("B", `section = "Other"`, `formula = "instructions"`, `unit = "instructions"`, `threshold = "B > 0.2 & A > 0.1"`) +
			explained("C", `section = "Other"`, `formula = "instructions"`, `unit = "instructions"`, "min = 2", "max = 3", `threshold = "C > 1"`) +
			explained("D", `section = "Other"`, `formula = "instructions"`, `unit = "instructions"`, "max = 3", `threshold = "D > 4"`), []string{
			"20: error: node A: its threshold cannot be reached by any values within the nodes' ranges",
			"42: warning: node C: its threshold holds for all values within the nodes' ranges",
			"53: error: node D: its threshold cannot be reached by any values within the nodes' ranges",
		}},
		{"standalone", lintHead + whole +
			explained("A", `parent = "Cycles"`, `formula = "INT_MISC.RECOVERY_CYCLES"`, `threshold = "A > 0.5"`, "standalone = true") +
			explained("B", `parent = "A"`, `formula = "INT_MISC.RECOVERY_CYCLES"`, `threshold = "B > 0.5"`, "standalone = true") +
			explained("C", `parent = "A"`, `formula = "INT_MISC.RECOVERY_CYCLES - B"`, "standalone = true") +
			explained("D", `section = "Other"`, `formula = "1"`, `unit = "1"`, `threshold = "A > 0.5"`, "standalone = true"), []string{
			"21: warning: node A: standalone says nothing: its parent Cycles has no threshold",
			"40: warning: node C: standalone says nothing: it has no threshold",
			"51: warning: node D: standalone says nothing: it has no parent",
		}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(append([]string{}, tt.want...), lintText(t, tt.text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestLintHandMade: a model need not come from a file.
func TestLintHandMade(t *testing.T) {
	cat := testCatalogue(t)
	m := &Model{Name: "m", Version: "1", Title: "t", About: "a", Source: "s", CPUs: []string{"skylakex"}, Unit: "cycles", File: "m",
		Nodes: []Node{
			{Name: "A", Formula: "cycles", Level: 1, Path: "A", Title: "t", About: "a", File: "m", Line: 3},
			{Name: "B", Formula: "1 +", Level: 1, Path: "B", Title: "t", About: "a", File: "m", Line: 9},
		}}
	found := Lint(cat, m)
	if len(found) != 1 || !strings.Contains(found[0].Msg, "formula: offset 3") || found[0].Line != 9 {
		t.Errorf("got %v", found)
	}
}

func TestLintFileErrors(t *testing.T) {
	cat := testCatalogue(t)
	if _, err := LintFile(cat, filepath.Join(t.TempDir(), "absent.toml")); !os.IsNotExist(err) {
		t.Errorf("absent.toml: %v", err)
	}
	dir := t.TempDir()
	write(t, dir, "a.toml", lintHead)
	write(t, dir, "b.toml", strings.Replace(lintHead, `"m"`, `"n"`, 1)+node("A", `formula = "("`))
	found, err := LintFile(cat, dir)
	if err != nil || len(found) != 3 {
		t.Errorf("a folder: %v, %v", found, err)
	}
	write(t, dir, "c.toml", "name = \n")
	found, err = LintFile(cat, dir)
	if err != nil || len(found) != 4 || found[3].Line != 1 || found[3].File != filepath.Join(dir, "c.toml") {
		t.Errorf("a folder with a broken head: %v, %v", found, err)
	}
}

func TestLintAll(t *testing.T) {
	found, err := lintAll(testCatalogue(t))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range found {
		if f.Severity != SevNote {
			got = append(got, f.String())
		}
	}
	want := []string{`models/family/icelakex.toml:7: error: node Recovery: formula: the operands of - have different units, cycles and instructions, in "cycles - instructions"`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	broken := fstest.MapFS{
		"cpus.toml": {Data: []byte("[[cpu]]\nname=\"x\"\nlayout=\"intel\"\nthreads=1\nevents=\"X\"\nmodel=\"gone\"\n" +
			"[[cpu]]\nname=\"y\"\nlayout=\"intel\"\nthreads=1\nevents=\"Y\"\n[[cpu]]\nname=\"z\"\nlayout=\"arm\"\nthreads=1\nevents=\"Z\"\n")},
		"events/intel.csv": {Data: []byte("cpus,name,config\nX,A,0x1\nX,A,0x2\n")},
		"events/arm.csv":   {Data: []byte("cpus,name,config\nZ,A,zz\n")},
		"models/m.toml":    {Data: []byte("name = \"m\"\ncpus = [\"x\"]\nunit = \"(\"\n")},
		"texts.toml":       {Data: []byte("[[text]]\nnode = \"Gone\"\n")},
	}
	cat, err := Load(broken)
	if err != nil {
		t.Fatal(err)
	}
	if found, err = lintAll(cat); err != nil {
		t.Fatal(err)
	}
	got = nil
	for _, f := range found {
		got = append(got, f.String())
	}
	want = []string{
		`cpus.toml:1: error: processor x: event A has two encodings`,
		`cpus.toml:1: warning: processor x: there is no model "gone", its default`,
		`cpus.toml:7: warning: processor y: no event table has rows for "Y"`,
		`events/arm.csv:2: error: config: "zz" is not a number of 64 bits`,
		`models/m.toml:3: error: unit "(": "(" is not the name of a unit`,
		`texts.toml:1: warning: no model has a node "Gone"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFindingJSON(t *testing.T) {
	data, err := json.Marshal(Finding{"m.toml", 3, SevWarning, "x"})
	if want := `{"file":"m.toml","line":3,"severity":"warning","message":"x"}`; err != nil || string(data) != want {
		t.Errorf("got %s, %v, want %s", data, err, want)
	}
	if got := fmt.Sprintln(SevError, SevWarning, SevNote); got != "error warning note\n" {
		t.Errorf("got %s", got)
	}
}

// TestTextsSpellNoFlags: texts of models are for every client, and name neither commands nor
// options of the command line.
func TestTextsSpellNoFlags(t *testing.T) {
	spelled := regexp.MustCompile(`cyclestack [a-z]|--(param|penalties|by|level|nodes|model|workload)\b`)
	err := fs.WalkDir(os.DirFS("data"), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".toml" {
			return err
		}
		text, err := os.ReadFile(filepath.Join("data", name))
		for i, line := range strings.Split(string(text), "\n") {
			if found := spelled.FindString(line); found != "" && !strings.HasPrefix(line, "#") {
				t.Errorf("%s:%d: %q", name, i+1, found)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// lintAll checks a whole catalogue: its models, the event tables of all
// processors, and that texts and default models are of use.
func lintAll(cat *Catalogue) ([]Finding, error) {
	var all []Finding
	used := map[nodeKey]bool{}
	for _, s := range cat.sources("") {
		m, err := cat.load(s, cat.lib.named(s.CPUs[0]))
		if err != nil {
			found, err := faultFindings(err)
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
			continue
		}
		all = append(all, Lint(cat, m)...)
		for i := range m.Nodes {
			used[nodeKey{m.Nodes[i].Name, m.Name}] = true
			used[nodeKey{m.Nodes[i].Name, ""}] = true
		}
	}
	unused, err := cat.lib.unusedTexts(used)
	if err != nil {
		return nil, err
	}
	all = append(all, unused...)
	for _, p := range cat.CPUs() {
		found, err := lintCPU(cat, p)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	sorting.Stable(all, compareFindings)
	return slices.Compact(all), nil // what several models extend is found in each
}

// unusedTexts finds the texts that no node takes.
func (lib *library) unusedTexts(used map[nodeKey]bool) ([]Finding, error) {
	files, err := fs.Glob(lib.fsys, path.Join(textsDir, "*.toml"))
	if err != nil {
		return nil, err
	}
	var all []Finding
	for _, file := range append(files, textsFile) {
		method, model := "", "no model"
		if file != textsFile {
			method = strings.TrimSuffix(path.Base(file), ".toml")
			model += " " + method
		}
		texts, err := lib.textsOf(file)
		if err != nil {
			return nil, err
		}
		for _, t := range texts {
			if !used[nodeKey{t.Node, method}] {
				all = append(all, Finding{file, t.line, SevWarning, fmt.Sprintf("%s has a node %q", model, t.Node)})
			}
		}
	}
	return all, nil
}
