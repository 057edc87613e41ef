package fleet

import (
	"cmp"
	_ "embed" // for the schema
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/fleet/series"
	"github.com/cyclestack/cyclestack/internal/page"
	"github.com/cyclestack/cyclestack/internal/shell"
	"github.com/cyclestack/cyclestack/internal/sorting"
	"github.com/cyclestack/cyclestack/report"
)

//go:embed schema/fleet.v1.json
var schema []byte

// A Report is a document: the accounts of a fleet.
type Report struct {
	Store    *Store
	Answer   *Answer
	Sets     []*Set
	Together []Combined // the first level over processors, by value of By
	Total    []Combined // the same of all that was asked for

	next func(store string, where []string) []string // see Options.Next
}

func init() {
	report.Register("tree", writeReport)
	report.Register("json", func(w io.Writer, r Report, _ report.Options) error { return page.JSON(w, r.document()) })
	report.Register("csv", writeCSV)
	report.Register("tree", writeComparison)
	report.Register("json", func(w io.Writer, c *Comparison, _ report.Options) error { return page.JSON(w, c.document()) })
	report.Register("csv", writeComparisonCSV)
	report.RegisterSchema[Report](schema)
	report.RegisterSchema[*Comparison](schema)
}

// ranked are all accounts, the one first where the most could be saved.
func (r Report) ranked() (list []*Account, of map[*Account]*Set) {
	of = map[*Account]*Set{}
	for _, s := range r.Sets {
		for _, a := range s.Accounts {
			list, of[a] = append(list, a), s
		}
	}
	value := func(f float64) float64 {
		if math.IsNaN(f) {
			return -1
		}
		return f
	}
	slices.SortStableFunc(list, func(x, y *Account) int {
		return cmp.Or(cmp.Compare(value(y.Saved), value(x.Saved)), cmp.Compare(value(y.CPUs), value(x.CPUs)))
	})
	return list, of
}

// where says what was asked of the store.
func (a *Answer) where(s *Store) string {
	text := fmt.Sprintf("%s, %s to %s", s, page.Duration(a.Range.Seconds()), a.At.UTC().Format("2006-01-02 15:04 UTC"))
	for _, m := range a.Where {
		text += ", " + page.Printable(m.String())
	}
	return text
}

// seen says how many hosts the answer is of.
func (a *Answer) seen() string {
	text, expected := page.Several(a.Seen, "host"), ""
	switch {
	case a.Seen == 0: // rules do not say
		most := 0
		for _, r := range a.Rows {
			most = max(most, r.Hosts())
		}
		return fmt.Sprintf("up to %s for an account", page.Several(most, "host"))
	case a.Expected > 0:
		expected = " of " + page.Group(fmt.Sprint(a.Expected))
	}
	if a.Expected > 0 || a.Seen >= 1000 {
		text = page.Group(fmt.Sprint(a.Seen)) + expected + " hosts"
	}
	if a.Expected > a.Seen {
		text += ", the rest sent nothing"
	}
	return text
}

// notes are those of the answer and of its sets.
func (r Report) notes() []string {
	list := slices.Clone(r.Answer.Notes)
	few := false
	for _, s := range r.Sets {
		for _, n := range s.Notes {
			if !slices.Contains(list, n) {
				list = append(list, n)
			}
		}
		few = few || slices.ContainsFunc(s.Accounts, func(a *Account) bool { return a.Row.Hosts() < 2 })
	}
	if few && r.Answer.By != instance {
		list = append(list, "no ± of a single host: it does not show how much hosts differ")
	}
	if models := r.models(); len(models) > 1 {
		list = append(list, "not summed, as their nodes differ: "+strings.Join(models, ", "))
	}
	return list
}

// models are the names of the models, with their versions.
func (r Report) models() []string {
	var list []string
	for _, s := range r.Sets {
		if n := s.Model.Name + " " + s.Model.Version; !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	return list
}

// linesMost are the accounts of a page that fits a screen.
const linesMost = 14

// column is one of a table: its heading, and whether its cells end at the right.
type column struct {
	head  string
	right bool
}

// table writes rows in columns. What is in the first column is cut to fit the width.
func table(b *strings.Builder, width int, columns []column, rows [][]string) {
	heads := make([]string, len(columns))
	for i, c := range columns {
		heads[i] = c.head
	}
	rows = append([][]string{heads}, rows...)
	sizes := page.Sizes(rows...)
	total := page.Indent
	for _, n := range sizes {
		total += n
	}
	gap := page.Gap
	if total+gap*(len(columns)-1) > width {
		gap = 1
	}
	if over := total + gap*(len(columns)-1) - width; over > 0 {
		sizes[0] = max(sizes[0]-over, 8)
	}
	for _, r := range rows {
		cells := slices.Clone(r)
		cells[0] = page.Cut(cells[0], sizes[0])
		line := page.Aligned(cells, sizes, gap, func(i int) bool { return !columns[i].right })
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

func percent(share float64) string {
	if math.IsNaN(share) {
		return "–"
	}
	return page.Rounded(100*share, 1)
}

// half is the half-width of an interval in percent.
func half(e float64) string {
	if text := percent(e); text != "0.0" || e == 0 {
		return text
	}
	return "<0.1"
}

func amount(v float64) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case math.Abs(v) < 100:
		return page.Rounded(v, 1)
	}
	return page.Group(page.Rounded(v, 0))
}

// writeReport writes the accounts for people: one as a tree, several as a table.
func writeReport(w io.Writer, r Report, o report.Options) error {
	list, of := r.ranked()
	p := page.New(w, o.Width, o.Color)
	p.Paragraph("", r.Answer.where(r.Store), 0, page.Bold)
	p.Paragraph("", r.Answer.seen()+"; "+r.Answer.String()+"; "+strings.Join(r.models(), ", "), 0, page.Plain)
	p.Out.WriteByte('\n')
	if len(list) == 1 {
		if err := p.Flush(); err != nil {
			return err
		}
		return r.tree(w, list[0], of[list[0]], o)
	}
	r.table(&p, list, of, o)
	notes(&p, r.notes(), o)
	if a := list[0]; r.next != nil && a.By != "" {
		where := []string{r.Answer.By + "=" + a.By}
		if r.Answer.By != series.Processor {
			where = append(where, series.Processor+"="+a.Row.CPU)
		}
		p.Paragraph("next", shell.Line(r.next(r.Store.String(), where)), 10, page.Plain)
	}
	return p.Flush()
}

// notes writes notes, and of many on one screen their number.
func notes(p *page.Page, list []string, o report.Options) {
	for i, n := range list {
		if o.Lines > 0 && i >= 1 && len(list) > 2 {
			p.Paragraph("note", o.Hint(page.Several(len(list)-i, "more note"), counts.Fix{Action: counts.ShowAll}), 10, page.Plain)
			return
		}
		p.Paragraph("note", n, 10, page.Plain)
	}
}

// table writes a line for each account.
func (r Report) table(p *page.Page, list []*Account, of map[*Account]*Set, o report.Options) {
	columns := []column{{r.Answer.By, false}, {"hosts", true}, {"CPUs", true}, {"lost %", true}, {"bottleneck", false}, {"%", true}, {"±", true}, {"saves ≤", true}}
	several := len(r.Sets) > 1 && r.Answer.By != "cpu"
	if several {
		columns = sorting.Insert(columns, 1, column{"cpu", false})
	}
	var rows [][]string
	for i, a := range list {
		if o.Lines > 0 && i >= linesMost {
			break
		}
		name := cmp.Or(page.Printable(a.By), "(none)")
		cells := []string{name, page.Group(fmt.Sprint(a.Row.Hosts())), amount(a.CPUs), percent(a.Lost), "–", "–", "", amount(a.Saved)}
		if math.IsNaN(a.CPUs) && !math.IsNaN(a.Saved) {
			cells[7] = percent(a.Saved) + " %"
		}
		if k := a.bottleneck(); k >= 0 {
			v := a.Account.Nodes[k]
			cells[4], cells[5] = of[a].Model.Nodes[k].Name, percent(v.Value)
			if !math.IsNaN(v.Error) {
				cells[6] = half(v.Error)
			}
		}
		if several {
			cells = sorting.Insert(cells, 1, page.Printable(a.processor()))
		}
		rows = append(rows, cells)
	}
	table(&p.Out, o.Width, columns, rows)
	if more := len(list) - len(rows); more > 0 {
		fmt.Fprintf(&p.Out, "  %s\n", o.Hint(page.Group(fmt.Sprint(more))+" more", counts.Fix{Action: counts.ShowAll}))
	}
	p.Out.WriteByte('\n')
	for _, c := range r.Total {
		text := fmt.Sprintf("%s CPUs busy", amount(c.CPUs))
		if !math.IsNaN(c.Lost) && c.Lost > 0 {
			text += fmt.Sprintf(", lost %s %%", percent(c.Lost))
			if !math.IsNaN(c.Error) {
				text += " ± " + half(c.Error)
			}
			text += fmt.Sprintf(", at most %s CPUs could be saved", amount(c.Saved))
		}
		p.Paragraph("total", text, 10, page.Plain)
	}
}

// tree writes one account as report has it.
func (r Report) tree(w io.Writer, a *Account, s *Set, o report.Options) error {
	h := report.Header{CPU: s.CPU, Model: s.Model, Kind: "prometheus", How: "of " + page.Several(a.Row.Hosts(), "host")}
	if s.CPU.Name != a.processor() {
		h.Unknown = counts.Notef("the catalogue has no processor %s", cut(a.processor()))
	}
	if o.Lines > 0 {
		o.Lines -= 3
	}
	if spell := o.Step; spell != nil { // what records a program is for its own host
		o.Step = func(h report.Header, a *account.Account, s account.Step) report.Step {
			if s.Kind != account.StepExplain {
				return report.Step{}
			}
			return spell(h, a, s)
		}
	}
	for _, n := range r.notes() {
		a.Notes = append(a.Notes, counts.Notef("%s", n))
	}
	return report.Write(w, "tree", report.Accounts{Header: h, List: []*account.Account{a.Account}}, o)
}

// writeCSV writes a line for each node.
func writeCSV(w io.Writer, r Report, _ report.Options) error {
	c := csv.NewWriter(w)
	_ = c.Write([]string{r.Answer.By, "cpu", "model", "model_version", "method", "unit", "hosts", "cpus", "coverage", "lost", "saved", "level", "path", "share", "error", "amount", "flagged"})
	list, of := r.ranked()
	for _, a := range list {
		m := of[a].Model
		for i := range m.Nodes {
			v := &a.Account.Nodes[i]
			_ = c.Write([]string{a.By, a.processor(), m.Name, m.Version, a.Method, a.Unit.Name, fmt.Sprint(a.Row.Hosts()), page.Decimal(a.CPUs), page.Decimal(a.Cover),
				page.Decimal(a.Lost), page.Decimal(a.Saved), fmt.Sprint(m.Nodes[i].Level), m.Nodes[i].Path, page.Decimal(v.Value), page.Decimal(v.Error), page.Decimal(v.Amount), fmt.Sprint(v.Flagged)})
		}
	}
	c.Flush()
	return c.Error()
}

// writeComparison writes the changes that are beyond chance for people.
func writeComparison(w io.Writer, c *Comparison, o report.Options) error {
	p := page.New(w, o.Width, o.Color)
	p.Paragraph("", fmt.Sprintf("%s against %s, by %s, %s to %s", page.Printable(c.What[1]), c.What[0], c.New.By, page.Duration(c.New.Range.Seconds()),
		c.New.At.UTC().Format("2006-01-02 15:04 UTC")), 0, page.Bold)
	p.Paragraph("", fmt.Sprintf("%s, old %s; %s; corrected for %s", c.New.seen(), c.Old.seen(), c.New.String(), page.Several(c.Tests, "test")), 0, page.Plain)
	p.Out.WriteByte('\n')
	var rows [][]string
	changed := 0
	var seen []float64
	for i := range c.Changes {
		x := &c.Changes[i]
		if !math.IsNaN(x.Seen) {
			seen = append(seen, x.Seen)
		}
		if x.Changed() {
			changed++
		}
		if !x.Changed() && !o.All || o.Lines > 0 && len(rows) >= linesMost {
			continue
		}
		rows = append(rows, []string{cmp.Or(page.Printable(x.By), "(none)"), page.Printable(x.Node), percent(x.Old), percent(x.New), signed(x.Delta), half(x.Error), chanceText(x.P), x.verdict()})
	}
	if len(rows) > 0 {
		table(&p.Out, o.Width, []column{{c.New.By, false}, {"node", false}, {"old %", true}, {"new %", true}, {"change", true}, {"±", true}, {"p", true}, {"", false}}, rows)
	} else {
		p.Out.WriteString("  no change beyond chance\n")
	}
	if changed > len(rows) {
		fmt.Fprintf(&p.Out, "  %s\n", o.Hint(fmt.Sprintf("%d more", changed-len(rows)), counts.Fix{Action: counts.ShowAll}))
	}
	p.Out.WriteByte('\n')
	if len(seen) > 0 {
		slices.Sort(seen)
		p.Paragraph("detects", fmt.Sprintf("changes of %s points, four times of five (median of nodes; %s to %s)", percent(seen[len(seen)/2]), percent(seen[0]), percent(seen[len(seen)-1])), 10, page.Plain)
	}
	notes(&p, slices.Concat(c.Notes, c.loads()), o)
	return p.Flush()
}

// loads says where the sides were not equally busy: shares change with the load.
func (c *Comparison) loads() []string {
	const apart = 0.1
	var names []string
	for i := range c.Changes {
		x := &c.Changes[i]
		if math.Abs(x.Load[1]-x.Load[0]) > apart*x.Load[0] && !slices.Contains(names, x.By) {
			names = append(names, x.By)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("hosts of the two sides are not equally busy (by over 10 %%) for %s: %s", page.Several(len(names), "value"), cut(strings.Join(names, ", ")))}
}

// verdict is a change in a word.
func (c *Change) verdict() string {
	switch {
	case c.Worse():
		return "worse"
	case c.Changed():
		return "better"
	case math.IsNaN(c.P):
		return "not tested"
	}
	return ""
}

func signed(share float64) string {
	text := percent(share)
	if share > 0 {
		text = "+" + text
	}
	return text
}

func chanceText(p float64) string {
	switch {
	case math.IsNaN(p):
		return "–"
	case p < 1e-4:
		return "<0.0001"
	}
	return page.Rounded(p, 4)
}

// writeComparisonCSV writes a line for each change.
func writeComparisonCSV(w io.Writer, c *Comparison, _ report.Options) error {
	out := csv.NewWriter(w)
	_ = out.Write([]string{c.New.By, "node", "level", "cpus", "old", "new", "delta", "error", "p", "detects", "hosts_old", "hosts_new", "verdict"})
	for i := range c.Changes {
		x := &c.Changes[i]
		_ = out.Write([]string{x.By, x.Node, fmt.Sprint(x.Level), strings.Join(x.CPUs, " "), page.Decimal(x.Old), page.Decimal(x.New), page.Decimal(x.Delta), page.Decimal(x.Error),
			page.Decimal(x.P), page.Decimal(x.Seen), page.Decimal(x.Hosts[0]), page.Decimal(x.Hosts[1]), x.verdict()})
	}
	out.Flush()
	return out.Error()
}
