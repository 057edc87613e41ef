package report

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/page"
	"github.com/cyclestack/cyclestack/plan"
)

// PlanSeconds is the length of the run that a printed plan's expected errors are for.
const PlanSeconds = 10

// A Plan is a document: a plan of what to count.
type Plan struct {
	*plan.Plan
	Runs    bool     // each group is counted in a run of its own
	Program []string // to count, for the perf format; none is the whole machine

	// Report spells the command that reports the files of the commands; they are a pattern if
	// each group has one of its own. Nil leaves it out.
	Report func(files string, together bool) string
}

// writePlan prints a plan for people.
func writePlan(w io.Writer, d Plan, o Options) error {
	p := d.Plan
	t := planWriter{tree: newTree(w, o), p: p, runs: d.Runs}
	t.heading()
	for i := range p.Groups {
		t.group(i)
	}
	t.always()
	t.split()
	t.missing()
	t.time()
	for i, warning := range p.Warnings {
		label := ""
		if i == 0 {
			label = "note"
		}
		t.Paragraph(label, o.note(warning), planHang, plain)
	}
	t.narrow("plan")
	return t.Flush()
}

// planHang is the indentation of what is said about a plan.
const planHang = 12

type planWriter struct {
	*tree
	p    *plan.Plan
	runs bool
}

// heading says what the plan is for and how good it is.
func (t *planWriter) heading() {
	p := t.p
	smt := "one logical processor of each core in use"
	if p.Options.SMT {
		smt = "all logical processors of each core in use"
	}
	about := []string{p.CPU.Name, p.Model.Name + " " + p.Model.Version}
	switch {
	case p.Options.Set != "":
		about = append(about, "event set "+p.Options.Set)
	default:
		about = append(about, fmt.Sprintf("%d nodes", len(p.Nodes)))
	}
	if p.CPU.Threads > 1 {
		about = append(about, smt)
	}
	t.Paragraph("", strings.Join(about, ", "), 0, bold)
	t.Out.WriteByte('\n')
	t.Paragraph("groups", t.quality(), planHang, plain)
	if together, of := p.Together(); of > 0 {
		t.Paragraph("together", fmt.Sprintf("%d of %d nodes (%s) have all their events in one group", together, of, page.Percent(float64(together)/float64(of))), planHang, plain)
	}
	t.Out.WriteByte('\n')
}

// quality says how many groups there are, and what is proved about that.
func (t *planWriter) quality() string {
	p := t.p
	n := len(p.Groups)
	switch {
	case n == 0:
		return "none: nothing needs a counter of the core"
	case n == 1:
		return "1: everything is counted at one time"
	case p.Optimal():
		return fmt.Sprintf("%d, which is optimal: fewer would split more nodes", n)
	}
	return fmt.Sprintf("%d, gap %d: fewer than %d are proved to split more nodes, %d are not",
		n, n-p.LowerBound, p.LowerBound, n-1)
}

// group prints one group: its place in the rotation, its events and its nodes.
func (t *planWriter) group(i int) {
	p, g := t.p, &t.p.Groups[i]
	head := fmt.Sprintf("group %d", i+1)
	switch {
	case t.runs:
		head = fmt.Sprintf("run %d", i+1)
	case len(p.Groups) > 1:
		head += fmt.Sprintf(": %s, seen %s of the time", page.Several(g.Turns, "turn"), page.Percent(float64(g.Turns)/float64(len(p.Rotation))))
		for k := range p.Nodes { // the nodes of one group have the same error
			if n := &p.Nodes[k]; n.Together && slices.Equal(n.Groups, []int{i}) {
				head += fmt.Sprintf(", ± %s", page.Percent(p.Error(n, PlanSeconds)))
				break
			}
		}
	}
	t.Paragraph("", head, 0, bold)
	var events []string
	for k := range g.Events {
		text := g.Events[k].Name
		if g.Counters[k] != "" {
			text += " (" + g.Counters[k] + ")"
		}
		events = append(events, text)
	}
	t.Paragraph("counts", strings.Join(events, ", "), planHang, plain)
	if len(g.Nodes) > 0 {
		t.Paragraph("for", strings.Join(t.names(g.Nodes), ", "), planHang, faint)
	}
	t.Out.WriteByte('\n')
}

func (t *planWriter) names(nodes []int) []string {
	var names []string
	for _, i := range nodes {
		names = append(names, t.p.Model.Nodes[i].Name)
	}
	return names
}

func (t *planWriter) always() {
	var names []string
	for i := range t.p.Always {
		names = append(names, t.p.Always[i].Name)
	}
	if len(names) > 0 {
		t.Paragraph("always", strings.Join(names, ", ")+": next to the groups, on no counter of the core", planHang, plain)
	}
}

// split prints the nodes whose events no group can hold.
func (t *planWriter) split() {
	label := "split"
	for i := range t.p.Nodes {
		n := &t.p.Nodes[i]
		if n.Missing != "" || n.Together {
			continue
		}
		from := "each from one of groups"
		if slices.ContainsFunc(n.Parts, func(part plan.Part) bool { return part.Loose }) {
			from = "mixed from groups"
		}
		text := fmt.Sprintf("%s: %s, %s %s", t.p.Model.Nodes[n.Index].Name, page.Several(len(n.Parts), "ratio"), from, numbers(n.Groups))
		if !t.runs {
			text += fmt.Sprintf(": %s of the time, ± %s", page.Percent(t.p.Coverage(n)), page.Percent(t.p.Error(n, PlanSeconds)))
		}
		t.Paragraph(label, text, planHang, plain)
		label = ""
	}
}

// numbers names groups as people count them.
func numbers(groups []int) string {
	var all []string
	for _, g := range groups {
		all = append(all, strconv.Itoa(g+1))
	}
	return strings.Join(all, ", ")
}

func (t *planWriter) missing() {
	label := "missing"
	for i := range t.p.Nodes {
		if n := &t.p.Nodes[i]; n.Missing != "" {
			t.Paragraph(label, t.p.Model.Nodes[n.Index].Name+": "+n.Missing, planHang, plain)
			label = ""
		}
	}
}

// time prints the order of multiplexing and the required length of a run.
func (t *planWriter) time() {
	p := t.p
	switch {
	case t.runs:
		t.Paragraph("runs", fmt.Sprintf("%d, each with one group all of the time; the same work each time, or the parts of split nodes do not belong together", p.Runs()), planHang, plain)
		return
	case len(p.Groups) < 2:
		return
	}
	var turns []string
	for _, g := range p.Rotation {
		turns = append(turns, strconv.Itoa(g+1))
	}
	t.Paragraph("order", strings.Join(turns, " "), planHang, plain)
	own, equal := p.ShortestRun(false), p.ShortestRun(true)
	if equal > 0 {
		t.Paragraph("run for", t.o.Hint(fmt.Sprintf("at least %s with this rotation, %s with perf's equal shares, for %g s of counting each; or count %d runs",
			page.Duration(own), page.Duration(equal), plan.EnoughSeconds, p.Runs()), counts.Fix{Action: counts.CountSeparately}), planHang, plain)
	}
	if least, most := t.errors(); most > 0 {
		t.Paragraph("expect", fmt.Sprintf("± %s of a node's value (%s at best) after %d s, each as above. The program's counts are taken to vary by their mean from slice to slice",
			page.Percent(most), page.Percent(least), PlanSeconds), planHang, plain)
	}
}

// errors returns the smallest and the largest expected error of a multiplexed node.
func (t *planWriter) errors() (least, most float64) {
	for i := range t.p.Nodes {
		n := &t.p.Nodes[i]
		if e := t.p.Error(n, PlanSeconds); e > 0 {
			if most == 0 || e < least {
				least = e
			}
			most = max(most, e)
		}
	}
	return least, most
}

// writePlanCommands prints the perf commands that collect what a plan is for: those
// that count, and those that take samples, of the whole machine or of a program. A
// published command, which is of the whole machine, is not for a program.
func writePlanCommands(w io.Writer, d Plan, o Options) error {
	p, runs, program := d.Plan, d.Runs, d.Program
	var b strings.Builder
	for _, warning := range p.Warnings {
		comment(&b, "note: "+o.note(warning))
	}
	for _, c := range p.Perf(runs) {
		switch {
		case c.About == "":
			c = p.For(c, program)
			b.WriteString(c.Lines() + "\n")
		case len(program) == 0:
			comment(&b, c.About)
			b.WriteString(c.String() + "\n\n")
		}
	}
	for _, assumption := range p.Assumptions() {
		comment(&b, "note: "+o.note(assumption))
	}
	b.WriteString(d.reportCommand("csv", runs))
	if record := p.Record(runs); len(record) > 0 {
		b.WriteByte('\n')
		comment(&b, recordAbout(p))
		for _, c := range record {
			c = p.For(c, program)
			b.WriteString(c.Lines() + "\n")
		}
		b.WriteString(d.reportCommand("data", runs || p.Options.Set != ""))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// recordAbout says what is different about the commands that take samples.
func recordAbout(p *plan.Plan) string {
	about := "The same by taking samples, which say where in the code."
	if len(p.Always) > 0 {
		var names []string
		for i := range p.Always {
			names = append(names, p.Always[i].Name)
		}
		about += " Not among them: " + strings.Join(names, ", ") + "."
	}
	return about
}

// reportCommand is a comment with the command that reports the file of others, or each group's
// file: the files do not say that they belong together.
func (d Plan) reportCommand(extension string, runs bool) string {
	if d.Report == nil {
		return ""
	}
	files := d.File(0, extension)
	if runs {
		files = strings.Replace(d.File(1, extension), "-1."+extension, "-*."+extension, 1)
	}
	return "# then: " + d.Report(files, runs && d.Plan.Runs() > 1) + "\n"
}

// comment writes a comment for a shell.
func comment(b *strings.Builder, text string) {
	b.WriteString("# " + strings.Join(page.Wrap(text, 98), "\n# ") + "\n")
}

type jsonPlan struct {
	Schema     string         `json:"schema"`
	CPU        jsonPlanCPU    `json:"cpu"`
	Model      jsonModel      `json:"model"`
	Level      int            `json:"level,omitempty"`
	Set        string         `json:"set,omitempty"`
	Counters   jsonCounters   `json:"counters"`
	Groups     []jsonGroup    `json:"groups"`
	Always     []jsonEvent    `json:"always"`
	Runs       int            `json:"runs"`
	LowerBound int            `json:"lower_bound"`
	Optimal    bool           `json:"optimal"`
	Gap        int            `json:"gap"`
	Rotation   []int          `json:"rotation"`
	Together   jsonTogether   `json:"together"`
	Nodes      []jsonPlanNode `json:"nodes"`
	Missing    []jsonMissing  `json:"missing"`
	Shortest   jsonShortest   `json:"shortest_run_s"`
	Warnings   []string       `json:"warnings"`
}

type jsonPlanCPU struct {
	Name   string `json:"name"`
	Vendor string `json:"vendor"`
	SMT    bool   `json:"smt"`
}

type jsonCounters struct {
	General  int  `json:"general"`
	Fixed    int  `json:"fixed"`
	Watchdog bool `json:"watchdog"`
	Assumed  bool `json:"assumed"`
}

type jsonGroup struct {
	Events   []string    `json:"events"`
	Counters []string    `json:"counters"`
	Nodes    []string    `json:"nodes"`
	Perf     string      `json:"perf"`
	Turns    int         `json:"turns"`
	Coverage page.Number `json:"coverage"`
}

type jsonEvent struct {
	Name string `json:"name"`
	Perf string `json:"perf"`
}

type jsonTogether struct {
	Nodes int         `json:"nodes"`
	Of    int         `json:"of"`
	Share page.Number `json:"share"`
}

type jsonPlanNode struct {
	Path     string      `json:"path"`
	Level    int         `json:"level"`
	Together bool        `json:"together"`
	Groups   []int       `json:"groups"`
	Coverage page.Number `json:"coverage"`
	Error    page.Number `json:"error_10s"`
	Parts    []plan.Part `json:"parts,omitempty"`
}

type jsonShortest struct {
	Rotation page.Number `json:"rotation"`
	Equal    page.Number `json:"equal_turns"`
}

// planDocument is a plan in the form of planSchema. Groups are numbered from 0, as they
// stand in the document.
func planDocument(d Plan, o Options) any {
	p := d.Plan
	out := jsonPlan{
		Schema:   "cyclestack.plan/v1",
		CPU:      jsonPlanCPU{p.CPU.Name, p.CPU.Vendor, p.Options.SMT},
		Model:    jsonModel{Name: p.Model.Name, Version: p.Model.Version},
		Level:    p.Options.Level,
		Set:      p.Options.Set,
		Counters: jsonCounters{General: p.GeneralCounters(), Fixed: p.PMU.Fixed, Watchdog: p.Options.Watchdog, Assumed: p.PMU.Assumed},
		Groups:   []jsonGroup{}, Always: []jsonEvent{}, Nodes: []jsonPlanNode{}, Missing: []jsonMissing{},
		Runs: p.Runs(), LowerBound: p.LowerBound, Optimal: p.Optimal(), Gap: len(p.Groups) - p.LowerBound,
		Rotation: append([]int{}, p.Rotation...), Warnings: append([]string{}, o.Texts(p.Warnings)...),
		Shortest: jsonShortest{page.Number(p.ShortestRun(false)), page.Number(p.ShortestRun(true))},
	}
	for i := range p.Groups {
		out.Groups = append(out.Groups, planGroup(p, i))
	}
	for i := range p.Always {
		out.Always = append(out.Always, jsonEvent{p.Always[i].Name, p.Always[i].Perf})
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Missing != "" {
			out.Missing = append(out.Missing, jsonMissing{p.Model.Nodes[n.Index].Path, n.Missing})
			continue
		}
		out.Nodes = append(out.Nodes, planNode(p, n))
	}
	together, of := p.Together()
	out.Together = jsonTogether{Nodes: together, Of: of, Share: 1}
	if of > 0 {
		out.Together.Share = page.Number(float64(together) / float64(of))
	}
	return out
}

func planGroup(p *plan.Plan, i int) jsonGroup {
	g := &p.Groups[i]
	out := jsonGroup{Counters: slices.Clone(g.Counters), Nodes: []string{}, Perf: g.Perf(), Turns: g.Turns,
		Coverage: page.Number(float64(g.Turns) / float64(len(p.Rotation)))}
	for k := range g.Events {
		out.Events = append(out.Events, g.Events[k].Name)
	}
	for _, n := range g.Nodes {
		out.Nodes = append(out.Nodes, p.Model.Nodes[n].Path)
	}
	return out
}

func planNode(p *plan.Plan, n *plan.Node) jsonPlanNode {
	m := &p.Model.Nodes[n.Index]
	return jsonPlanNode{Path: m.Path, Level: m.Level, Together: n.Together, Groups: append([]int{}, n.Groups...),
		Coverage: page.Number(p.Coverage(n)), Error: page.Number(p.Error(n, PlanSeconds)), Parts: n.Parts}
}
