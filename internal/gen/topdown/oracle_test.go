package main

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/internal/gen"
	"github.com/cyclestack/cyclestack/internal/modeltest"
	"github.com/cyclestack/cyclestack/internal/testshared"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/source"
	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"
)

// An oracle is a set of counts and what another implementation of top-down
// analysis makes of it.
type oracle struct {
	CPU   string `json:"cpu"`
	Nodes map[string]struct {
		Level      int     `json:"level"`
		Value      float64 `json:"value"`
		Flagged    bool    `json:"flagged"`
		OutOfRange bool    `json:"out_of_range"`
	} `json:"nodes"`
	Info map[string]float64 `json:"info"`
}

// A difference is a line of testdata/differences.csv: a value of the other
// implementation that is not ours, and why.
type difference struct {
	cpus  string // patterns, separated by blanks, of the sets of counts
	node  string // pattern of the node's name
	right string // who is: one of the verdicts
	used  bool
}

// verdicts are who can be right about a difference. With "costs" the two differ
// in measured latencies only, and are equal if ours takes the other's.
var verdicts = []string{"ours", "theirs", "both", "costs", "unknown"}

// TestOracle compares all nodes, flags and informational figures with an independent
// implementation, for one set of counts per processor. Every difference must be listed with the
// reason.
func TestOracle(t *testing.T) {
	all := compareOracles(t, false)
	if float64(all.flagsEqual) < flagsEnough*float64(all.flags) {
		t.Errorf("%d of %d flags are equal, less than %v", all.flagsEqual, all.flags, flagsEnough)
	}
}

// TestOracleTheirCosts compares the same with the latencies of the other
// implementation, which are in testdata/costs-*.toml: the differences that are
// put down to them must be gone, and nearly all nodes equal.
func TestOracleTheirCosts(t *testing.T) {
	all := compareOracles(t, true)
	if float64(all.equal) < nodesEnough*float64(all.both) {
		t.Errorf("%d of %d nodes are equal, less than %v", all.equal, all.both, nodesEnough)
	}
}

// compareOracles compares the models with all oracles, with the costs of the
// models or the other implementation's.
func compareOracles(t *testing.T, theirCosts bool) tally {
	t.Helper()
	dir := testshared.Dir(t, "oracle", "tma")
	files, err := filepath.Glob(filepath.Join(dir, "*.csv"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no oracles in %s: %v", dir, err)
	}
	cat, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	known := readDifferences(t)
	if theirCosts {
		known = slices.DeleteFunc(known, func(d *difference) bool { return d.right == "costs" })
	}
	var all tally
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".csv")
		t.Run(name, func(t *testing.T) {
			all.add(compareOracle(t, cat, name, file, known, theirCosts))
		})
	}
	for _, d := range known {
		if !d.used {
			t.Errorf("testdata/differences.csv: %s on %s is no difference any more", d.node, d.cpus)
		}
	}
	t.Log(all)
	if all.topEqual != all.top {
		t.Errorf("%d of %d nodes of levels 1 and 2 are equal", all.topEqual, all.top)
	}
	return all
}

// A tally counts what was compared: nodes that both implementations have, those
// that only one has, flags and informational figures.
type tally struct {
	both, equal, top, topEqual, flags, flagsEqual, infos, infosEqual int

	onlyOurs, onlyTheirs []string
}

func (t *tally) add(o tally) {
	t.both += o.both
	t.onlyOurs = append(t.onlyOurs, o.onlyOurs...)
	t.onlyTheirs = append(t.onlyTheirs, o.onlyTheirs...)
	t.equal += o.equal
	t.top += o.top
	t.topEqual += o.topEqual
	t.flags += o.flags
	t.flagsEqual += o.flagsEqual
	t.infos += o.infos
	t.infosEqual += o.infosEqual
}

func (t tally) String() string {
	return fmt.Sprintf("of the nodes that both have %d of %d are equal (%.2f %%), of levels 1 and 2 %d of %d; flags %d of %d (%.2f %%); informational figures %d of %d; only ours: %s; only theirs: %s",
		t.equal, t.both, 100*float64(t.equal)/float64(t.both), t.topEqual, t.top,
		t.flagsEqual, t.flags, 100*float64(t.flagsEqual)/float64(t.flags), t.infosEqual, t.infos,
		list(t.onlyOurs), list(t.onlyTheirs))
}

func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// flagsEnough is the share of flags that must be equal, those of listed
// differences included: a node is flagged in theirs if it is flagged in ours or
// linked to one that is.
const flagsEnough = 0.985

// nodesEnough is the share of nodes that must be equal where the costs are.
const nodesEnough = 0.98

// equalEnough is the largest relative difference of equal values.
const equalEnough = 1e-6

func isEqual(a, b float64) bool {
	return math.Abs(a-b) <= equalEnough*max(math.Abs(a), math.Abs(b))
}

func compareOracle(t *testing.T, cat *model.Catalogue, name, file string, known []*difference, theirCosts bool) tally {
	var want oracle
	data, err := os.ReadFile(strings.TrimSuffix(file, ".csv") + ".expected.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	params := map[string]float64{"#smt_on": 0, "#num_cpus_online": 2}
	if theirCosts {
		addCosts(t, name, params)
	}
	a := evaluate(t, cat, want.CPU, file, params)
	c := oracleTest{t: t, set: name, known: known, a: a, m: a.Model()}
	c.theirs = want
	c.tree()
	c.infos()
	t.Log(c.tally)
	return c.tally
}

// addCosts adds the parameters of the other implementation for a set of counts,
// where they are not ours.
func addCosts(t *testing.T, set string, params map[string]float64) {
	t.Helper()
	name, _, _ := strings.Cut(set, "-")
	data, err := os.ReadFile(filepath.Join("testdata", "costs-"+name+".toml"))
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		err = toml.Unmarshal(data, &params)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// evaluate makes the account of the counts in a file.
func evaluate(t *testing.T, cat *model.Catalogue, cpuID, file string, params map[string]float64) *account.Account {
	t.Helper()
	cpu, err := cat.CPU(cpuID)
	if err != nil {
		t.Fatal(err)
	}
	m, err := cat.Model("tma", cpu.Name)
	if err != nil {
		t.Fatal(err)
	}
	events, err := cat.Events(cpu)
	if err != nil {
		t.Fatal(err)
	}
	method, err := account.Compile(m, cpu, events, account.Options{Params: params})
	if err != nil {
		t.Fatal(err)
	}
	rec, err := source.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	r := rec.Tables(0)
	if !r.Next() {
		t.Fatalf("%s: no counts: %v", file, r.Err())
	}
	table := r.Table()
	return method.Bind(table.Layout).Evaluate(table, account.Place{Self: 0}, nil).Clone()
}

// A oracleTest is of one account with one oracle.
type oracleTest struct {
	t      *testing.T
	set    string
	known  []*difference
	a      *account.Account
	m      *model.Model
	theirs oracle
	tally
}

// renamed are nodes that the vendor has given other names since.
var renamed = map[string]string{"DRAM_Bound": "L3_Miss_Bound"}

// ours returns our node for a path of theirs, by its last name: some hang below
// another node.
func (c *oracleTest) ours(p string) (int, bool) {
	name := lastName(p)
	i, ok := c.a.Node(name)
	if !ok {
		i, ok = c.a.Node(renamed[name])
	}
	if !ok || c.m.Nodes[i].Section != "" {
		return 0, false
	}
	return i, true
}

func lastName(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

// excused reports whether a difference is listed.
func (c *oracleTest) excused(node string) bool {
	for _, d := range c.known {
		if ok, _ := path.Match(d.node, node); !ok {
			continue
		}
		for _, pattern := range strings.Fields(d.cpus) {
			if ok, _ := path.Match(pattern, c.set); ok {
				d.used = true
				return true
			}
		}
	}
	return false
}

func (c *oracleTest) tree() {
	for _, p := range slices.Sorted(keys(c.theirs.Nodes)) {
		i, ok := c.ours(p)
		if !ok {
			c.onlyTheirs = append(c.onlyTheirs, c.set+" "+lastName(p))
			if !c.excused(lastName(p)) {
				c.t.Errorf("%s is in the oracle only", p)
			}
			continue
		}
		c.node(p, i)
	}
	theirs := map[string]bool{}
	for p := range c.theirs.Nodes {
		name := lastName(p)
		theirs[name], theirs[renamed[name]] = true, true
	}
	for i := range c.m.Nodes {
		n := &c.m.Nodes[i]
		if n.Section != "" || theirs[n.Name] {
			continue
		}
		c.onlyOurs = append(c.onlyOurs, c.set+" "+n.Name)
		if !c.excused(n.Name) {
			c.t.Errorf("%s is not in the oracle", n.Path)
		}
	}
}

// node compares a node that both have: theirs at a path, ours at an index.
func (c *oracleTest) node(p string, i int) {
	want := c.theirs.Nodes[p]
	got := c.a.Nodes[i].Value
	equal := isEqual(got, want.Value) || want.Value == 0 && got == 0
	c.both++
	if want.Level <= 2 {
		c.top++
	}
	if !equal {
		if !c.excused(lastName(p)) {
			c.t.Errorf("%s = %v, want %v %s", p, got, want.Value, c.a.Why(i))
		}
		return
	}
	c.equal++
	if want.Level <= 2 {
		c.topEqual++
	}
	c.flag(p, i)
}

// flag compares whether a node is over its threshold. The other implementation also flags a
// node if another with the same issue is flagged. It does not if its value is outside its
// range.
func (c *oracleTest) flag(p string, i int) {
	want := c.theirs.Nodes[p]
	got := c.a.Nodes[i].Flagged || c.a.IsLinked(i)
	if got && want.OutOfRange {
		got = want.Flagged
	}
	c.flags++
	if got == want.Flagged {
		c.flagsEqual++
		return
	}
	if !c.excused(c.m.Nodes[i].Name + "/flag") {
		c.t.Errorf("%s: flagged %v, want %v", p, got, want.Flagged)
	}
}

// infos compares the informational figures, which the other implementation
// names without their groups.
func (c *oracleTest) infos() {
	for _, name := range slices.Sorted(keys(c.theirs.Info)) {
		want := c.theirs.Info[name]
		c.tally.infos++
		got := math.NaN()
		why := "there is none"
		for i := range c.m.Nodes {
			n := &c.m.Nodes[i]
			if n.Section != "" && strings.HasSuffix(n.Name, "_"+strings.TrimPrefix(name, "PCT_")) && (math.IsNaN(got) || strings.Count(n.Name, "_") < 3) {
				got, why = c.a.Nodes[i].Value, c.a.Why(i).Text
			}
		}
		if isEqual(got, want) || isEqual(100*got, want) || got == 0 && want == 0 {
			c.infosEqual++
			continue
		}
		if !c.excused("Info_" + name) {
			c.t.Errorf("%s = %v, want %v %s", name, got, want, why)
		}
	}
}

// TestIssues compares the groups of nodes with a common issue (model/data/judgement.toml) with
// the vendor's tags in all metric files.
func TestIssues(t *testing.T) {
	dir := testshared.Dir(t, "data", "intel-perfmon")
	cat, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range processors {
		m, err := cat.Model("tma", strings.Fields(p.cpus)[0])
		if err != nil {
			t.Fatal(err)
		}
		got := map[string][]string{}
		for _, issue := range m.Issues {
			tag := issue.Source[strings.LastIndex(issue.Source, "$"):]
			for _, i := range issue.Nodes {
				got[tag] = append(got[tag], m.Nodes[i].Name)
			}
			slices.Sort(got[tag])
		}
		want := vendorIssues(t, filepath.Join(dir, p.metrics), m)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-the vendor's +ours):\n%s", p.stem, diff)
		}
	}
}

// vendorIssues returns the nodes of each issue with at least two in a model, by a metric file's
// tags.
func vendorIssues(t *testing.T, file string, m *model.Model) map[string][]string {
	t.Helper()
	var f struct {
		Metrics []struct {
			MetricName string
			Threshold  struct{ ThresholdIssues string }
		}
	}
	if err := gen.ReadJSON(file, &f); err != nil {
		t.Fatal(err)
	}
	groups := map[string][]string{}
	for _, x := range f.Metrics {
		if m.Node(x.MetricName) == nil {
			continue
		}
		for _, tag := range strings.FieldsFunc(x.Threshold.ThresholdIssues, func(r rune) bool { return r == ',' || r == ' ' || r == ';' }) {
			if strings.HasPrefix(tag, "$") {
				groups[tag] = append(groups[tag], x.MetricName)
			}
		}
	}
	for tag, nodes := range groups {
		if slices.Sort(nodes); len(nodes) < 2 {
			delete(groups, tag)
		}
	}
	return groups
}

func readDifferences(t *testing.T) []*difference {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "differences.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.Comment = '#'
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var all []*difference
	for _, row := range rows[1:] {
		if !slices.Contains(verdicts, row[2]) || row[3] == "" {
			t.Fatalf("testdata/differences.csv: %s: who is right (%q), and why (%q)?", row[1], row[2], row[3])
		}
		all = append(all, &difference{cpus: row[0], node: row[1], right: row[2]})
	}
	return all
}

func keys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// TestHandwritten runs the values of models that are not generated.
func TestHandwritten(t *testing.T) { runModelTest(t, "handwritten.test") }

// TestFallbacks runs the values of nodes that use another event if the vendor's was
// not counted.
func TestFallbacks(t *testing.T) { runModelTest(t, "fallbacks.test") }

func runModelTest(t *testing.T, file string) {
	t.Helper()
	cat, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	modeltest.Run(t, cat, filepath.Join("testdata", file))
}
