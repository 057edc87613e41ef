package model

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// outline is a model's tree as text: level, path, and what the node is.
func outline(m *Model) []string {
	var lines []string
	for i := range m.Nodes {
		n := &m.Nodes[i]
		what := n.Formula
		if n.Rest {
			what = "rest"
		}
		lines = append(lines, fmt.Sprintf("%d %s = %s %v", n.Level, n.Path, what, n.Children))
	}
	return lines
}

func testModel(t testing.TB, name, cpu string) *Model {
	t.Helper()
	m, err := testCatalogue(t).Model(name, cpu)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestModel(t *testing.T) {
	m := testModel(t, "first", "skylakex")
	want := []string{
		"0 All = 1 [1 2 3]",
		"1 All.Frontend_Bound = IDQ_UOPS_NOT_DELIVERED.CORE / (WIDTH * CLKS) []",
		"1 All.Backend_Bound = rest []",
		"1 All.Retiring = UOPS_RETIRED.RETIRE_SLOTS / (WIDTH * CLKS) []",
	}
	if diff := cmp.Diff(want, outline(m)); diff != "" {
		t.Errorf("first (-want +got):\n%s", diff)
	}
	if p := m.Parameters[0]; p.Value == nil || *p.Value != 4 || p.Line != 11 {
		t.Errorf("WIDTH is %v, line %d; want the processor's 4, line 11", p.Value, p.Line)
	}
	n := m.Node("Frontend_Bound")
	if n == nil || n.File != "models/first.toml" || n.Line != 21 || n.Domain != "thread" {
		t.Fatalf("Frontend_Bound: %+v", n)
	}
	if e, err := n.Expr(); err != nil || e.String() != "IDQ_UOPS_NOT_DELIVERED.CORE / (WIDTH * CLKS)" {
		t.Errorf("Expr() = %v, %v", e, err)
	}
	if e, err := n.ThresholdExpr(); err != nil || e.String() != "Frontend_Bound > 0.15" {
		t.Errorf("ThresholdExpr() = %v, %v", e, err)
	}
	if e, err := m.Node("All.Retiring").ThresholdExpr(); e != nil || err != nil {
		t.Errorf("ThresholdExpr() = %v, %v", e, err)
	}
	if m.Node("Nothing") != nil {
		t.Error("Node(Nothing) is a node")
	}
	if by := (&Node{Formula: "1 +"}); true {
		if _, err := by.Expr(); err == nil {
			t.Error("a node made by hand with a broken formula has an expression")
		}
	}
}

func TestTexts(t *testing.T) {
	n := testModel(t, "second", "skylakex").Node("Retiring")
	got := fmt.Sprintf("%s | %s | %v | %v", n.Title, n.About, n.Causes, n.Try)
	if want := "Useful slots | Slots whose uops retired. | [useful work] | [less of it]"; got != want {
		t.Errorf("second, Retiring: %s, want %s", got, want)
	}
	n = testModel(t, "first", "skylakex").Node("Retiring")
	if got := n.Title + " | " + n.About; got != "Retiring | Slots whose uops retired." {
		t.Errorf("first, Retiring has a title of its own, but: %s", got)
	}
}

func TestTextErrors(t *testing.T) {
	for in, want := range map[string]string{
		"title = 1":                                          `texts.toml:1: unknown key "title"`,
		"[[text]]\ntitle = \"x\"":                            "texts.toml:1: text: it names no node",
		"[[text]]\nnode = 1":                                 `texts.toml:2: key "node" in "text": want a string`,
		"[[text]]\nnode = \"A\"\ncauses = \"x\"":             `texts.toml:3: key "causes" in "text": want a list of strings`,
		"[[text]]\nnode = \"A\"\ntry = [1]":                  `texts.toml:3: key "try" in "text": want a list of strings`,
		"[[text]]\nnode = \"A\"\ncolour = 1":                 `texts.toml:3: unknown key "colour"`,
		"[[text]]\nnode = \"A\"\n[[text]]\nnode = \"A\"":     `texts.toml:3: text: there is already one for node "A", at line 1`,
		"[[text]]\nnode = \"A\"\n[[text]]\nnode = \"B":       "texts.toml:4: ",
		"[[text]]\nnode = \"A\"\n[[word]]\nnode = \"A\"":     `texts.toml:3: unknown key "word"`,
		"[[text]]\nnode = \"A\"\nabout.more = \"x\"":         `texts.toml:3: key "about": write it as an inline table`,
		"[[text]]\nnode = \"A\"\nabout = \"\"\"\nx\n\"\"\"y": "texts.toml:5: ",
	} {
		_, err := parseTexts([]byte(in), "texts.toml")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", in, err, want)
		}
	}
}

func TestExtends(t *testing.T) {
	m := testModel(t, "family", "skylakex")
	want := []string{
		"0 Cycles = cycles [1 2 3]",
		"1 Cycles.Recovery = INT_MISC.RECOVERY_CYCLES []",
		"1 Cycles.Issue = UOPS_ISSUED.ANY * PENALTY []",
		"1 Cycles.Rest = rest []",
	}
	if diff := cmp.Diff(want, outline(m)); diff != "" {
		t.Errorf("skylakex (-want +got):\n%s", diff)
	}
	got := fmt.Sprint(m.Title, " ", m.About, " ", m.CPUs, " ", *m.Parameters[0].Value, " ", m.Parameters[0].Unit, " ",
		m.Node("Recovery").Title, " ", m.Node("Recovery").About, " ", m.Node("Recovery").File, ":", m.Node("Recovery").Line, " ", m.Node("Rest").File)
	if want := "Family, Skylake Cycles by their use. [skylakex] 12 cycles/uop " +
		"Recovery Cycles lost to recovery. models/family/skylakex.toml:16 models/family/base.toml"; got != want {
		t.Errorf("skylakex:\n got %s\nwant %s", got, want)
	}

	m = testModel(t, "family", "icelakex")
	want = []string{
		"0 Cycles = cycles [1 2]",
		"1 Cycles.Recovery = cycles - instructions []",
		"1 Cycles.Rest = rest []",
		"1 IPC = instructions / cycles []",
	}
	if diff := cmp.Diff(want, outline(m)); diff != "" {
		t.Errorf("icelakex (-want +got):\n%s", diff)
	}
	if len(m.Parameters) != 0 {
		t.Errorf("icelakex has parameters %v", m.Parameters)
	}
}

// TestRestAndFormula: in a model that extends another, either replaces the
// other.
func TestRestAndFormula(t *testing.T) {
	base := top + node("A", `formula = "cycles"`) + node("B", `parent = "A"`, "rest = true") + node("C", `parent = "A"`, `formula = "cycles / 2"`)
	over := "extends = \"base\"\ncpus = [\"skylakex\"]\n" + node("B", `formula = "cycles / 3"`) + node("C", "rest = true")
	m, err := loadModel(map[string]string{"base": strings.Replace(base, cpusKey, "", 1), "m": over})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"0 A = cycles [1 2]", "1 A.B = cycles / 3 []", "1 A.C = rest []"}
	if diff := cmp.Diff(want, outline(m)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestLevels: a root is the whole if the nodes are shares of its amount, or if
// it is the only one.
func TestLevels(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{"two roots", node("A", `formula = "1"`) + node("B", `formula = "1"`) + node("C", `formula = "1"`, `parent = "A"`),
			[]string{"1 A = 1 [1]", "2 A.C = 1 []", "1 B = 1 []"}},
		{"of", "of = \"cycles + 0\"\n" + node("A", `formula = "cycles+0"`) + node("B", `formula = "instructions"`),
			[]string{"0 A = cycles+0 []", "1 B = instructions []"}},
		{"section", node("I", `formula = "1"`, `section = "Information"`) + node("A", `formula = "1"`) + node("J", `formula = "1"`, `parent = "I"`),
			[]string{"1 I = 1 [1]", "2 I.J = 1 []", "0 A = 1 []"}},
	}
	for _, tt := range tests {
		m, err := loadModel(map[string]string{"m": top + tt.text})
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if diff := cmp.Diff(tt.want, outline(m)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	m, err := loadModel(map[string]string{"m": top + tests[2].text})
	if err != nil || m.Node("J").Section != "Information" {
		t.Errorf("a node is in its root's section: %+v, %v", m.Node("J"), err)
	}
}

const (
	cpusKey = "cpus = [\"skylakex\"]\n"
	top     = "name = \"m\"\n" + cpusKey + "unit = \"cycles\"\n" // three lines
)

// node returns a table [[node]].
func node(name string, keys ...string) string {
	return "[[node]]\nname = \"" + name + "\"\n" + strings.Join(keys, "\n") + "\n"
}

// loadModel loads the model m for skylakex from model files by their stems. Processors
// and tables are the test library's.
func loadModel(files map[string]string) (*Model, error) {
	fsys := fstest.MapFS{}
	for _, name := range []string{"cpus.toml", "events/intel.csv"} {
		data, err := os.ReadFile(filepath.Join("testdata", "library", name))
		if err != nil {
			return nil, err
		}
		fsys[name] = &fstest.MapFile{Data: data}
	}
	for stem, text := range files {
		fsys["models/"+stem+".toml"] = &fstest.MapFile{Data: []byte(text)}
	}
	cat, err := Load(fsys)
	if err != nil {
		return nil, err
	}
	return cat.Model("m", "skylakex")
}

// TestModelErrors: every fault of a model file is found, and placed.
func TestModelErrors(t *testing.T) {
	a := node("A", `formula = "cycles"`) // lines 4 to 6
	tests := []struct{ text, want string }{
		// TOML
		{top + "[[node]\n", "models/m.toml:4: "},
		{top + "colour = \"red\"\n" + a, `models/m.toml:4: unknown key "colour"`},
		{top + a + "size = 1\n", `models/m.toml:7: unknown key "size" in "node"`},
		{top + a + "max = \"much\"\n", `models/m.toml:7: key "max" in "node": want a number`},
		{top + a + "title = 1\n", `models/m.toml:7: key "title" in "node": want a string`},
		{top + a + "overlap = 1\n", `models/m.toml:7: key "overlap" in "node": want true or false`},
		{top + a + "standalone = \"yes\"\n", `models/m.toml:7: key "standalone" in "node": want true or false`},
		{top + a + "causes = \"x\"\n", `models/m.toml:7: key "causes" in "node": want a list of strings`},
		{top + a + "causes = [1]\n", "models/m.toml:7: "},
		{top + a + "formula = \"1\"\n", `models/m.toml:7: key "formula" in "node": there is one already`},
		{top + a + "[[parameter]]\nname = \"P\"\n[parameter.choices]\na = 1\n", `models/m.toml:9: table "parameter": lists of tables are written [[parameter]], tables in them inline`},
		{top + a + "[[parameter]]\nname = \"P\"\nchoices.a = 1\n", `models/m.toml:9: key "choices": write it as an inline table`},
		{top + a + "[[parameter]]\nname = \"P\"\nchoices = { a = 1, a = 2 }\n", "models/m.toml:9: "},
		{top + a + "[[leaf]]\nname = \"L\"\n", `models/m.toml:7: unknown key "leaf"`},
		{top + "node = 1\n", "models/m.toml:4: "},
		{strings.Replace(top, "cycles", "cycles/", 1) + a, `models/m.toml:3: unit "cycles/"`},
		{strings.Replace(top, "unit = \"cycles\"\n", "", 1) + a, "models/m.toml:1: unit: the model does not say"},

		// names
		{top + a + a, `models/m.toml:8: there is already a node "A", at line 4`},
		{top + node("", `formula = "1"`), "models/m.toml:5: node: it has no name"},
		{top + "[[node]]\nformula = \"1\"\n", "models/m.toml:4: node: it has no name"},
		{top + node("A.B", `formula = "1"`), `models/m.toml:5: node: "A.B" is not made of`},
		{top + node("42", `formula = "1"`), `models/m.toml:5: node: "42" is not made of`},
		{top + node("if", `formula = "1"`), `models/m.toml:5: node: "if" is not made of`},
		{top + node(strings.Repeat("A", 101), `formula = "1"`), "is longer than 100 bytes"},
		{top + a + "[[parameter]]\nname = \"A\"\n", `models/m.toml:5: node "A": there is already a parameter of that name, at line 8`},
		{top + node("TSC", `formula = "1"`), `models/m.toml:4: node "TSC" has the name of an event of skylakex`},
		{top + "[[parameter]]\nname = \"cycles\"\n" + a, `models/m.toml:4: parameter "cycles" has the name of an event`},
		{top + "[[input]]\nname = \"cycles\"\nevents = [\"instructions\"]\n" + a, `models/m.toml:4: input "cycles" has the name of an event`},

		// formulas
		{top + node("A", `formula = "1 +"`), `models/m.toml:6: node A: formula: offset 3: `},
		{top + node("A", "formula = \"\"\"\n1 +\n2 *\"\"\""), `models/m.toml:8: node A: formula: `},
		{top + node("A", "formula = '''1 +\n2 *\n'''"), `models/m.toml:8: node A: formula: `},
		{top + node("A", `formula = " "`), `models/m.toml:6: node A: formula: it is empty`},
		{top + node("A"), `models/m.toml:4: node A: it needs a formula, or rest = true`},
		{top + node("A", `formula = "1"`, "rest = true"), `models/m.toml:7: node A: either a formula or rest`},
		{top + node("A", "rest = true"), `models/m.toml:6: node A: a root cannot be the rest`},
		{top + node("A", `formula = "NO_EVENT + 1"`), `models/m.toml:6: node A: formula: "NO_EVENT" is no node, parameter, input or event of skylakex`},
		{top + node("A", `formula = 'cpu@event\=1'`), `models/m.toml:6: node A: formula: event "cpu/event=1": the slash`},
		{top + node("A", `formula = "1"`, `threshold = "A > cycles"`), `models/m.toml:7: node A: threshold: there is no node "cycles"`},
		{top + node("A", `formula = "1"`, `threshold = "A >"`), `models/m.toml:7: node A: threshold: offset 3`},
		{top + "of = \"A\"\n" + a, `models/m.toml:4: of: "A" is a node`},
		{top + "of = \"(\"\n" + a, `models/m.toml:4: of: offset 1: `},
		{top + node("A", `formula = "B"`) + node("B", `formula = "C"`) + node("C", `formula = "A"`), `models/m.toml:6: node A: its value needs itself: A ← B ← C ← A`},
		{top + node("A", `formula = "B"`) + node("B", `parent = "A"`, "rest = true"), `node A: its value needs itself: A ← B ← A`},
		{top + a + node("B", `formula = "C + 1"`, `parent = "A"`) + node("C", `parent = "A"`, "rest = true"), `node B: its value needs itself: B ← C ← B`},

		// tree
		{top + node("A", `formula = "1"`, `parent = "B"`), `models/m.toml:7: node A: there is no node "B" to be its parent`},
		{top + node("A", `formula = "1"`, `parent = "A"`), `models/m.toml:7: node A: it is its own ancestor`},
		{top + node("A", `formula = "1"`, `parent = "B"`) + node("B", `formula = "1"`, `parent = "A"`), `models/m.toml:7: node A: it is its own ancestor`},
		{top + a + node("B", `parent = "A"`, "rest = true") + node("C", `parent = "A"`, "rest = true"), `node C: B is already the rest of A`},
		{top + a + "overlap = true\n" + node("B", `parent = "A"`, "rest = true"), `models/m.toml:7: node A: children that overlap leave no rest, but B is one`},
		{top + a + node("B", `parent = "A"`, `formula = "1"`, `section = "X"`), `models/m.toml:11: node B: its parent A is not in section "X"`},
		{top + deepTree(40), "more than 32 nodes above it"},

		// values
		{top + a + "domain = \"rack\"\n", `models/m.toml:7: node A: domain "rack" is not one of thread, core, package`},
		{top + a + "min = 1\nmax = 0.5\n", `models/m.toml:7: node A: min is above max`},
		{top + a + "max = nan\n", `models/m.toml:7: node A: max: NaN is not a usable number`},
		{top + a + "unit = \"m m\"\n", `models/m.toml:7: unit "m m"`},
		{top + a + "sample = [\"cpu/x\"]\n", `models/m.toml:7: event "cpu/x": the slash`},
		{top + a + "[[parameter]]\nname = \"P\"\nvalue = inf\n", `models/m.toml:9: parameter P: value: +Inf is not a usable number`},
		{top + a + "[[parameter]]\nname = \"P\"\nchoices = { a = nan }\n", `models/m.toml:9: parameter P: a: NaN is not a usable number`},
		{top + a + "[[parameter]]\nname = \"P\"\nvalue = -1\nmin = 0\n", `models/m.toml:9: parameter P: value: -1 is less than 0, the least that it can be`},
		{top + a + "[[parameter]]\nname = \"P\"\nvalue = 3\nmax = 2\n", `models/m.toml:9: parameter P: value: 3 is more than 2, the most that it can be`},
		{top + a + "[[parameter]]\nname = \"P\"\nchoices = { a = 1, b = -1 }\nmin = 0\n", `models/m.toml:9: parameter P: b: -1 is less than 0`},
		{top + a + "[[parameter]]\nname = \"P\"\nmin = 2\nmax = 1\n", `models/m.toml:10: parameter P: min is above max`},
		{top + a + "[[parameter]]\nname = \"P\"\nmin = nan\n", `models/m.toml:9: parameter P: min: NaN is not a usable number`},
		{top + a + "[[parameter]]\nname = \"WIDTH\"\nmax = 2\n", `cpus.toml:3: processor skylakex: params: WIDTH: 4 is more than 2`},
		{top + a + "[[input]]\nname = \"I\"\n", `models/m.toml:7: input I: it names no events`},
		{top + a + "[[input]]\nname = \"I\"\nevents = [\"cycles\"]\nlp = -1\n", `models/m.toml:10: input I: lp = -1 is no logical processor`},
		{top + a + "[[input]]\nname = \"I\"\nevents = [\"cycles\"]\nlp = 0\nany = true\n", `models/m.toml:11: input I: either lp or any`},
		{top + a + "[[input]]\nname = \"I\"\nevents = [\"\"]\n", `models/m.toml:9: event "": it is empty`},
		{top + a + "[[input]]\nname = \"I\"\nevents = [\"NO_EVENT\"]\n", `models/m.toml:7: input I: "NO_EVENT" is no node`},
		{top + a + "[[relation]]\nleft = \"1\"\nright = \"1\"\n", `models/m.toml:7: relation: it has no name`},
		{top + a + "[[relation]]\nname = \"r\"\nleft = \"1\"\n", `models/m.toml:7: relation r: right: it is empty`},
		{top + a + "[[relation]]\nname = \"r\"\nleft = \"1\"\nright = \"NO_EVENT\"\n", `models/m.toml:7: relation r: "NO_EVENT" is no node`},
		{top + a + "[[relation]]\nname = \"r\"\nleft = \"1\"\nright = \"1\"\nop = \"<>\"\n", `models/m.toml:11: relation r: op "<>" is not one of`},
		{top + a + "[[relation]]\nname = \"r\"\nleft = \"1\"\nright = \"1\"\nidentity = true\nplausible = true\n", `models/m.toml:12: relation r: an identity holds always`},
		{top + a + "[[relation]]\nname = \"r\"\nleft = \"1\"\nright = \"1\"\ntolerance = -1\n", `models/m.toml:11: relation r: tolerance -1`},
		{top + a + "[[relation]]\nname = \"r\"\nleft = \"1\"\nright = \"1\"\nwhen = \"(\"\n", `models/m.toml:11: relation r: when: offset 1: `},
		{top + a + "[[event-set]]\nname = \"s\"\n", `models/m.toml:7: event-set s: it has no events`},
		{top + a + "[[event-set]]\nevents = [{event = \"cycles\"}]\n", `models/m.toml:7: event-set: it has no name`},
		{top + a + "[[event-set]]\nname = \"s\"\nruns = -1\nevents = [{event = \"cycles\"}]\n", `models/m.toml:9: event-set s: runs = -1`},
		{top + a + "[[event-set]]\nname = \"s\"\nevents = [{event = \"cycles\", every = 1}]\n", `models/m.toml:9: key "events" in "event-set": want a list of inline tables`},

		// processors
		{strings.Replace(top, "skylakex", "skylakx", 1) + a, `models/m.toml:2: cpus: unknown processor "skylakx"; did you mean skylakex?`},
		{strings.Replace(top, `["skylakex"]`, `["skylakex", "skylakex"]`, 1) + a, `models/m.toml:2: cpus: `},
		{strings.Replace(top, `["skylakex"]`, `["lunarlake"]`, 1) + a, `models/m.toml:2: cpus: unknown processor "lunarlake"`},

		// extending
		{"extends = \"nothing\"\n" + top + a, `models/m.toml:1: extends: there is no model file nothing.toml`},
		{"extends = \"../m\"\n" + top + a, `models/m.toml:1: extends: "../m" is not the path of a model file`},
		{"extends = \"m\"\n" + top + a, `models/m.toml:1: extends: m.toml extends itself`},
		{"extends = \"round\"\n" + top + a, `models/round.toml:2: extends: m.toml extends itself, by way of round.toml`},
		{"extends = \"chain1\"\n" + top + a, `models/chain8.toml:2: extends: a chain of more than 8 files`},
		{"extends = \"base\"\nremove = [\"Z\"]\n" + top + a, `models/m.toml:2: remove: base has nothing named "Z"`},
		{"extends = \"base\"\n" + top + a + a, `models/m.toml:9: there is already a node "A", at line 5`},
		{"extends = \"base\"\n" + top + node("C", `formula = "1 +"`), `models/m.toml:7: node C: formula`},
		{"extends = \"base\"\n" + top + node("B", `parent = "Z"`), `models/m.toml:7: node B: there is no node "Z"`},
		{"extends = \"bad\"\n" + top + a, `models/bad.toml:2: `},
	}
	for _, tt := range tests {
		base := "name = \"base\"\nunit = \"cycles\"\n" + node("B", `formula = "1"`)
		files := map[string]string{"m": tt.text, "base": base}
		if strings.Contains(tt.text, `"bad"`) {
			files["bad"] = "name = \"bad\"\nunit = \n"
		}
		if strings.Contains(tt.text, `"round"`) {
			files["round"] = "name = \"round\"\nextends = \"m\"\n"
		}
		if strings.Contains(tt.text, `"chain1"`) {
			for i := 1; i <= 8; i++ {
				files[fmt.Sprint("chain", i)] = fmt.Sprintf("name = \"chain\"\nextends = \"chain%d\"\n", i+1)
			}
			files["chain9"] = "name = \"chain\"\n"
		}
		m, err := loadModel(files)
		if err == nil {
			t.Errorf("%q: loaded as %v", tt.text, outline(m))
		} else if !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q:\n got %v\nwant %v", tt.text, err, tt.want)
		}
	}
}

func deepTree(depth int) string {
	text := node("N0", `formula = "1"`)
	for i := range depth {
		text += node(fmt.Sprint("N", i+1), `formula = "1"`, fmt.Sprintf("parent = \"N%d\"", i))
	}
	return text
}

// TestAllFaults: not only the first fault is reported.
func TestAllFaults(t *testing.T) {
	_, err := loadModel(map[string]string{"m": top + node("A", `formula = "1 +"`) + node("B", `formula = "2 +"`) + node("C", `parent = "D"`, `formula = "1"`)})
	var all Errors
	if !errors.As(err, &all) || len(all) != 3 {
		t.Fatalf("got %v, want three faults", err)
	}
	for i, line := range []int{6, 9, 12} {
		if all[i].Line != line {
			t.Errorf("fault %d: line %d, want %d: %v", i, all[i].Line, line, all[i])
		}
	}
	if want := "(and 2 more)"; !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v: want %q at the end", err, want)
	}
	if got := (Errors{{File: "f", Msg: "m"}}).Error(); got != "f: m" {
		t.Errorf("got %q", got)
	}
}

func TestLimits(t *testing.T) {
	big := top + node("A", `formula = "1"`, "about = \"\"\"\n"+strings.Repeat("x\n", 3<<20)+"\"\"\"")
	if _, err := loadModel(map[string]string{"m": big}); err == nil || !strings.Contains(err.Error(), "larger than 4 MiB") {
		t.Errorf("a file of 6 MiB: %v", err)
	}
	var many strings.Builder
	many.WriteString(top)
	for i := range maxNodes + 1 {
		many.WriteString(node(fmt.Sprint("N", i), `formula = "1"`))
	}
	if _, err := loadModel(map[string]string{"m": many.String()}); err == nil || !strings.Contains(err.Error(), "10001 nodes: more than 10000") {
		t.Errorf("10,001 nodes: %v", err)
	}
	long := top + "about = \"\"\"" + strings.Repeat("x", 2*headSize) + "\"\"\"\n" + node("A", `formula = "1"`)
	if _, err := loadModel(map[string]string{"m": long}); err != nil {
		t.Errorf("a head of more than %d bytes: %v", headSize, err)
	}
	var events strings.Builder
	for i := range maxEvents + 1 {
		fmt.Fprintf(&events, "\"E%d\",", i)
	}
	in := top + "[[input]]\nname = \"I\"\nevents = [" + events.String() + "]\n"
	if _, err := loadModel(map[string]string{"m": in}); err == nil || !strings.Contains(err.Error(), "1001 events in one list") {
		t.Errorf("an input of 1,001 events: %v", err)
	}
}

// FuzzLoad loads whatever is given as a model file, and what it extends.
func FuzzLoad(f *testing.F) {
	for _, name := range []string{"first", "second", "family/base", "family/skylakex", "family/icelakex"} {
		data, err := os.ReadFile(filepath.Join("testdata", "library", "models", name+".toml"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	f.Add(top + node("A", `formula = "B"`) + node("B", "rest = true", `parent = "A"`))
	f.Add("extends = \"fuzz\"\n")
	f.Add(top + "[[node]]\nname = \"\"\"two\nlines\"\"\"\n")
	f.Add("cpus = [\"skylakex\"]\nname = \"fuzz\"\n[parameter]\nname = \"x\"\n")
	f.Add("node = [{name = \"A\", formula = \"1\"}]\n" + top)
	cat := testCatalogue(f)
	f.Fuzz(func(t *testing.T, text string) {
		s := source{fsys: fstest.MapFS{"fuzz.toml": {Data: []byte(text)}}, dir: ".", stem: "fuzz"}
		s.File = "fuzz.toml"
		if err := cat.lib.scanHead(new(headReader), &s); err != nil {
			return
		}
		m, err := cat.lib.read(&s, cat.lib.named("skylakex"))
		if err != nil {
			if m != nil || strings.Contains(err.Error(), "\n") {
				t.Fatalf("%v with the error %q", m, err)
			}
			return
		}
		for i := range m.Nodes {
			n := &m.Nodes[i]
			if n.Path == "" || n.Rest == (n.expr != nil) {
				t.Fatalf("node %+v", n)
			}
			for _, c := range n.Children {
				if m.Nodes[c].Parent != n.Name || c <= i {
					t.Fatalf("node %s, child %s", n.Name, m.Nodes[c].Name)
				}
			}
		}
	})
}

// TestParameterCheck: a user's value is held to the range of the parameter. A file that
// extends another can change that.
func TestParameterCheck(t *testing.T) {
	base := "name = \"base\"\nunit = \"cycles\"\n" + node("B", `formula = "P * cycles"`) + "[[parameter]]\nname = \"P\"\nvalue = 1\nmin = 0\nmax = 10\n"
	over := "extends = \"base\"\nname = \"m\"\ncpus = [\"skylakex\"]\n[[parameter]]\nname = \"P\"\nmax = 20\n"
	m, err := loadModel(map[string]string{"base": base, "m": over})
	if err != nil {
		t.Fatal(err)
	}
	p := &m.Parameters[0]
	for _, tt := range []struct {
		v    float64
		want string
	}{
		{0, ""}, {15, ""}, {20, ""},
		{-0.5, "-0.5 is less than 0"},
		{21, "21 is more than 20"},
		{math.NaN(), "NaN is not a usable number"},
		{math.Inf(1), "+Inf is not a usable number"},
	} {
		got := ""
		if err := p.Check(tt.v); err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, tt.want) || (tt.want == "") != (got == "") {
			t.Errorf("%v: %q, want %q", tt.v, got, tt.want)
		}
	}
}

// TestStrings checks the values of strings. Strings without
// escapes are parts of the file.
func TestStrings(t *testing.T) {
	var b strings.Builder
	for i := range 200 {
		fmt.Fprintf(&b, "[[node]]\nname = \"N%d\"\ntitle = 'it'\nabout = \"\"\"\r\nab\\tc\"\"\"\nformula = \"\"\"\r\na +\n b\"\"\"\n"+
			"negative = '''\nx\ny'''\nsource = \"\"\ncauses = [\"one\", \"t\\\"wo\", '''three''', \"\"]\n", i)
	}
	f, err := decodeModel([]byte(b.String()), "x.toml")
	if err != nil {
		t.Fatal(err)
	}
	for i := range f.Nodes {
		n := &f.Nodes[i]
		got := fmt.Sprintf("%q", append([]string{n.Name, n.Title, n.About, n.Formula, n.Negative, n.Source}, n.Causes...))
		want := fmt.Sprintf("%q", []string{fmt.Sprintf("N%d", i), "it", "ab\tc", "a +\n b", "x\ny", "", "one", "t\"wo", "three", ""})
		if got != want {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
		if at := n.pos.at("source"); len(n.pos.keys) != 7 || at.line != n.pos.line+11 {
			t.Fatalf("%s: %d keys, source at %+v, table at %d", n.Name, len(n.pos.keys), at, n.pos.line)
		}
	}
}
