package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/internal/page"
	"github.com/cyclestack/cyclestack/model"
)

// rivalMark marks a node whose error overlaps with that of its sibling on the
// bottleneck path.
const rivalMark = "◄ as likely"

// smallerMark marks a node over its threshold whose larger sibling, on the path, is not.
const smallerMark = "◄ over its threshold"

// rivalry marks a node that the bottleneck path could as well go through.
func (t *tree) rivalry(a *account.Account, i int) string {
	for _, r := range a.Rivals {
		if r.Node == i && a.Nodes[i].Flagged && !a.Nodes[r.Of].Flagged {
			return smallerMark + ", smaller than " + a.Model().Nodes[r.Of].Name
		}
		if r.Node == i {
			return rivalMark + " as " + a.Model().Nodes[r.Of].Name
		}
	}
	return ""
}

// standing says that a value is outside its expected range, with the direction and
// the kind of program. Without a kind it reports only values that need attention:
// above the range of any program, and useful work below it.
func (t *tree) standing(a *account.Account, i int) string {
	r, standing := a.Expected(i)
	kind := a.Binding.Method.Workload
	n := &a.Model().Nodes[i]
	switch {
	case standing != account.Above && standing != account.Below:
		return ""
	case kind == model.AnyWorkload && (n.Level > 1 || n.Useful() != (standing == account.Below)):
		return ""
	}
	return fmt.Sprintf("%v %s for %s", standing, rangeText(r), kind.Program())
}

// rangeText is a range of shares, as "20–60 %".
func rangeText(r model.Range) string {
	percent := func(v float64) string { return strconv.FormatFloat(math.Round(v*1000)/10, 'f', -1, 64) }
	return percent(r.Low) + "–" + percent(r.High) + " %"
}

// links shows the nodes that have an issue in common with flagged nodes, wherever in
// the account they are.
func (t *tree) links(a *account.Account) {
	m := a.Model()
	label := "see also"
	for k := range m.Issues {
		if !t.concerns(a, &m.Issues[k]) {
			continue
		}
		var parts []string
		for _, i := range m.Issues[k].Nodes {
			if v := &a.Nodes[i]; v.Known() && v.Doubt != account.DoubtRange && i != m.Issues[k].Lead {
				parts = append(parts, m.Nodes[i].Name+" "+nodeFigure(m, i, v.Value))
			}
		}
		if len(parts) > 1 || len(parts) == 1 && m.Issues[k].Lead >= 0 {
			t.Paragraph(label, m.Issues[k].Name+": "+strings.Join(parts, ", "), 12, plain)
			label = ""
		}
	}
	if label == "" {
		t.Out.WriteByte('\n')
	}
}

// concerns reports whether an issue is one of a flagged node of the main tree that
// is shown.
func (t *tree) concerns(a *account.Account, issue *model.Issue) bool {
	return slices.ContainsFunc(issue.Nodes, func(i int) bool {
		return issue.Leads(i) && a.Model().Nodes[i].Section == "" && a.Nodes[i].Flagged && a.Nodes[i].Doubt != account.DoubtRange && t.shown[i]
	})
}

// nodeFigure is a node's value with its unit, for use in a sentence.
func nodeFigure(m *model.Model, i int, v float64) string {
	s := page.Figure(m, i, v)
	if n := &m.Nodes[i]; m.Share(i) && n.Unit != "" && n.Unit != m.Unit {
		s += " of " + n.Unit
	} else if u := page.UnitBehind(m, i); !m.Share(i) && n.Unit != "" && u != "" && u != "1" {
		s += " " + u
	}
	return s
}

// judgement says what the figures come to: which categories are as they should be,
// and what decides the program's way.
func (t *tree) judgement(a *account.Account) {
	if left := a.Leave(); len(left) > 0 {
		t.Paragraph("leave", fmt.Sprintf("%s: as expected of %s, and no bottleneck",
			strings.Join(nodeNames(a, left), ", "), a.Binding.Method.Workload.Program()), 10, plain)
	} else if a.Healthy(t.h.provenance()) {
		t.healthy(a)
	}
	if s := dominanceText(a); s != "" {
		t.Paragraph("kind", s, 10, plain)
	}
}

// remedy writes what helps the hottest place, and reports whether it is known.
func (t *tree) remedy(a *account.Account) bool {
	if a.Hotspots == nil || len(a.Bottleneck) > 0 {
		return false
	}
	for i := range a.Hotspots.Places {
		p := &a.Hotspots.Places[i]
		if p.Cause != nil && p.Cause.Try != "" && account.IsHotspot(p.Share/a.Hotspots.Running) {
			t.Paragraph("try", fmt.Sprintf("in %s: %s", functionOf(p), p.Cause.Try), 10, plain)
			return true
		}
	}
	return false
}

// healthy says that nothing is over its threshold.
func (t *tree) healthy(a *account.Account) {
	if t.remedy(a) {
		return
	}
	if a.Times != nil && waited(a.Times) != "" {
		t.Paragraph("leave", "no node is over its threshold: work on what it waits for", 10, plain)
		return
	}
	t.Paragraph("try", "fewer instructions for the same work (vector instructions, another algorithm): nothing is over its threshold", 10, plain)
}

// nodeNames are the names of nodes.
func nodeNames(a *account.Account, nodes []int) []string {
	var names []string
	for _, i := range nodes {
		names = append(names, a.Model().Nodes[i].Name)
	}
	return names
}

// dominanceText says whether loops or branches dominate a program, with the figures
// behind that.
func dominanceText(a *account.Account) string {
	b := a.Branching()
	figures := fmt.Sprintf("a branch every %s instructions, a misprediction every %s branches", page.Trim(round(b.BlockLength())), page.Trim(round(b.Trips())))
	if math.IsInf(b.Trips(), 0) {
		figures = fmt.Sprintf("a branch every %s instructions, and no misprediction", page.Trim(round(b.BlockLength())))
	}
	switch b.Dominance() {
	case account.DominanceLoops:
		return "loops dominate: " + figures
	case account.DominanceBranches:
		return "branches dominate: " + figures
	case account.DominanceNeither:
		return "neither loops nor branches dominate: " + figures
	}
	return ""
}

// round leaves two significant digits.
func round(v float64) float64 {
	if v == 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return v
	}
	unit := math.Pow(10, math.Floor(math.Log10(math.Abs(v)))-1)
	return math.Round(v/unit) * unit
}
