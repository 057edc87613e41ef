package report

import (
	_ "embed" // for the schema
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/account"
)

// DiffSchema is the JSON Schema of the document that the json format of a
// comparison writes.
//
//go:embed schema/diff.v1.json
var DiffSchema []byte

// DiffFormats are the names that Diff takes.
var DiffFormats = []string{"tree", "markdown", "json"}

// A DiffHeader says what was compared.
type DiffHeader struct {
	Header
	Old, New string // the names of the two sides
	Per      string // the unit of work: "instruction"
}

// Diff prints a comparison in one of the DiffFormats.
func Diff(format string, w io.Writer, h DiffHeader, d *account.Difference, o Options) error {
	t := &diffWriter{tree: listing(w, o), h: h, d: d}
	switch format {
	case "tree":
		return t.text()
	case "markdown":
		return t.markdown()
	case "json":
		return t.json()
	}
	return fmt.Errorf("no format %q: there are %s", format, strings.Join(DiffFormats, ", "))
}

type diffWriter struct {
	*tree
	h DiffHeader
	d *account.Difference
}

// A diffRow is one line of a comparison.
type diffRow struct {
	name   string
	depth  int
	change *account.Change
	rest   bool // what the children of a node leave of its change
}

// rows are the lines: the total, the nodes that are known, and below each what
// its children leave of its change, unless that is next to nothing.
func (t *diffWriter) rows() []diffRow {
	rows := []diffRow{{name: "all cycles", change: &t.d.Total}}
	var roots []int
	for i := range t.d.Model.Nodes {
		if n := &t.d.Model.Nodes[i]; n.Parent == "" && n.Section == "" {
			roots = append(roots, i)
		}
	}
	if len(roots) == 1 && t.d.Model.Nodes[roots[0]].Level == 0 {
		roots = t.d.Model.Nodes[roots[0]].Children // the root is the total
	}
	return t.below(rows, 1, roots, &t.d.Total)
}

func (t *diffWriter) below(rows []diffRow, depth int, nodes []int, parent *account.Change) []diffRow {
	const nothing = 1e-4 // of all cycles
	shown := slices.DeleteFunc(slices.Clone(nodes), func(i int) bool {
		return math.IsNaN(t.d.Nodes[i].Delta) || !t.visible(i)
	})
	slices.SortStableFunc(shown, func(i, j int) int {
		a, b := math.Abs(t.d.Nodes[i].Delta), math.Abs(t.d.Nodes[j].Delta)
		switch {
		case a > b:
			return -1
		case a < b:
			return 1
		}
		return 0
	})
	left := parent.Delta
	for _, i := range shown {
		c := &t.d.Nodes[i]
		left -= c.Delta
		rows = append(rows, diffRow{t.d.Model.Nodes[i].Name, depth, c, false})
		rows = t.below(rows, depth+1, t.d.Model.Nodes[i].Children, c)
	}
	if len(shown) > 0 && math.Abs(left) > nothing*t.d.Total.Old {
		nan := math.NaN()
		rest := &account.Change{Old: nan, New: nan, Delta: left, Low: nan, High: nan, P: nan, Effect: nan}
		rows = append(rows, diffRow{"(in none of these)", depth, rest, true})
	}
	return rows
}

// visible reports whether the options ask for a node.
func (t *diffWriter) visible(i int) bool {
	return t.o.Level == 0 || t.d.Model.Nodes[i].Level <= t.o.Level
}

// ofAll is a change in parts of all of the old cycles, so that those of a
// node's children add up to its own.
func (t *diffWriter) ofAll(v float64) float64 { return v / t.d.Total.Old }

func signed(share float64) string {
	if math.IsNaN(share) {
		return "–"
	}
	return fmt.Sprintf("%+.2f %%", share*100)
}

// interval is the 95 % interval of a change, in parts of all of the old cycles.
func (t *diffWriter) interval(c *account.Change) string {
	if math.IsNaN(c.Low) {
		return ""
	}
	return fmt.Sprintf("%+.2f…%+.2f", t.ofAll(c.Low)*100, t.ofAll(c.High)*100)
}

func (t *diffWriter) cells(r diffRow) []string {
	verdict := r.change.Verdict.String()
	if r.rest {
		verdict = ""
	}
	p := ""
	if !math.IsNaN(r.change.P) {
		p = strconv.FormatFloat(r.change.P, 'g', 2, 64)
	}
	return []string{r.name, trim(r.change.Old), trim(r.change.New), signed(t.ofAll(r.change.Delta)), t.interval(r.change), p, verdict}
}

func (t *diffWriter) heads() []string {
	return []string{"cycles per " + t.h.Per, "old", "new", "change", "95 %", "p", ""}
}

func (t *diffWriter) title() string {
	return fmt.Sprintf("%s (%s) → %s (%s), on %s, %s %s", t.h.Old, several(t.d.Runs[0], "run"), t.h.New, several(t.d.Runs[1], "run"),
		t.h.CPU.Name, t.h.Model.Name, t.h.Model.Version)
}

// summary is the answer in one sentence.
func (t *diffWriter) summary() string {
	c := &t.d.Total
	took := "cycles per " + t.h.Per
	switch c.Verdict {
	case account.More, account.Less:
		return fmt.Sprintf("%s %s: %s", took, signed(c.Relative()), c.Verdict)
	case account.Same:
		return fmt.Sprintf("no change of %s: one of 1 %% or more is ruled out", took)
	}
	if d := min(t.d.Runs[0], t.d.Runs[1]); d < 4 {
		return fmt.Sprintf("cannot tell: %s %s, but with fewer than 4 runs of each, nothing says how much runs differ by chance", took, signed(c.Relative()))
	}
	return fmt.Sprintf("cannot tell: %s %s, which may be chance; more runs tell", took, signed(c.Relative()))
}

func (t *diffWriter) text() error {
	t.paragraph("", t.title(), 0, bold)
	t.out.WriteByte('\n')
	rows := t.rows()
	table := [][]string{t.heads()}
	for _, r := range rows {
		cells := t.cells(r)
		cells[0] = strings.Repeat(" ", 2*r.depth) + cells[0]
		table = append(table, cells)
	}
	width := make([]int, len(table[0]))
	for _, cells := range table {
		for k, c := range cells {
			width[k] = max(width[k], runes(c))
		}
	}
	for k, cells := range table {
		var b strings.Builder
		b.WriteString(strings.Repeat(" ", indent))
		for i, c := range cells {
			pad := strings.Repeat(" ", width[i]-runes(c))
			if left := i == 0 || i == len(cells)-1; left {
				b.WriteString(c + pad)
			} else {
				b.WriteString(pad + c)
			}
			b.WriteString(strings.Repeat(" ", gap))
		}
		st := faint
		if k > 0 {
			st = verdictStyle(rows[k-1])
		}
		t.out.WriteString(t.paint(strings.TrimRight(b.String(), " "), st) + "\n")
	}
	t.out.WriteByte('\n')
	const hang = 10
	t.paragraph("answer", t.summary(), hang, plain)
	t.paragraph("change", "in percent of all old cycles, so that those of a node's parts add up to its own", hang, faint)
	return t.flush()
}

func verdictStyle(r diffRow) style {
	switch {
	case r.rest:
		return faint
	case r.change.Verdict == account.More:
		return hot
	case r.change.Verdict == account.Less:
		return bold
	}
	return plain
}

func (t *diffWriter) markdown() error {
	fmt.Fprintf(&t.out, "**%s**\n\n", t.summary())
	t.out.WriteString("| " + strings.Join(t.heads(), " | ") + " |\n|---|--:|--:|--:|--:|--:|---|\n")
	for _, r := range t.rows() {
		cells := t.cells(r)
		cells[0] = strings.Repeat("&nbsp;&nbsp;", r.depth) + cells[0]
		for k, c := range cells {
			cells[k] = strings.ReplaceAll(c, "|", `\|`)
		}
		t.out.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	fmt.Fprintf(&t.out, "\n%s\n", t.title())
	return t.flush()
}

type jsonDiff struct {
	Schema string       `json:"schema"`
	CPU    jsonCPU      `json:"cpu"`
	Model  jsonModel    `json:"model"`
	Per    string       `json:"per"`
	Old    jsonSide     `json:"old"`
	New    jsonSide     `json:"new"`
	Total  jsonChange   `json:"total"`
	Nodes  []jsonChange `json:"nodes"`
}

type jsonSide struct {
	Name string `json:"name"`
	Runs int    `json:"runs"`
}

type jsonChange struct {
	Node     string  `json:"node,omitempty"`
	Parent   string  `json:"parent,omitempty"`
	Old      *number `json:"old,omitempty"`
	New      *number `json:"new,omitempty"`
	Change   *number `json:"change,omitempty"`
	Relative *number `json:"relative,omitempty"`
	Low      *number `json:"low,omitempty"`
	High     *number `json:"high,omitempty"`
	P        *number `json:"p,omitempty"`
	Effect   *number `json:"effect,omitempty"`
	Verdict  string  `json:"verdict"`
}

func changeOf(c *account.Change) jsonChange {
	return jsonChange{Old: known(c.Old), New: known(c.New), Change: known(c.Delta), Relative: known(c.Relative()),
		Low: known(c.Low), High: known(c.High), P: known(c.P), Effect: known(c.Effect), Verdict: c.Verdict.String()}
}

func (t *diffWriter) json() error {
	h := t.h
	doc := jsonDiff{
		Schema: "cyclestack.diff/v1",
		CPU:    jsonCPU{Name: h.CPU.Name, Vendor: h.CPU.Vendor},
		Model:  jsonModel{Name: h.Model.Name, Version: h.Model.Version, Params: h.Params},
		Per:    h.Per,
		Old:    jsonSide{h.Old, t.d.Runs[0]}, New: jsonSide{h.New, t.d.Runs[1]},
		Total: changeOf(&t.d.Total),
		Nodes: []jsonChange{},
	}
	for i := range t.d.Model.Nodes {
		if c := &t.d.Nodes[i]; !math.IsNaN(c.Delta) && t.visible(i) {
			j := changeOf(c)
			j.Node, j.Parent = t.d.Model.Nodes[i].Name, t.d.Model.Nodes[i].Parent
			doc.Nodes = append(doc.Nodes, j)
		}
	}
	e := json.NewEncoder(&t.out)
	e.SetIndent("", " ")
	e.SetEscapeHTML(false)
	if err := e.Encode(doc); err != nil {
		return err
	}
	return t.flush()
}
