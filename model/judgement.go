package model

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/internal/sorting"
	"github.com/cyclestack/cyclestack/internal/spelling"
)

// A Workload is a kind of program with expected shares of the slots.
type Workload string

// The kinds of programs with known ranges.
const (
	AnyWorkload Workload = "" // not said: what is expected of one of the others
	Client      Workload = "client"
	Server      Workload = "server"
	HPC         Workload = "hpc"
)

// Workloads are the kinds of programs that can be asked for.
var Workloads = []Workload{Client, Server, HPC}

// Program is what a program of the kind is called in a sentence.
func (w Workload) Program() string {
	switch w {
	case Client:
		return "a client program"
	case Server:
		return "a server program"
	case HPC:
		return "an HPC program"
	}
	return "any program"
}

// A Range is what is expected of a node's value where a well-tuned program of
// one kind spends its time.
type Range struct{ Low, High float64 }

// Expectation is what is expected of a node.
type Expectation struct {
	Ranges map[Workload]Range // one for each of Workloads; for AnyWorkload the one that spans them
	Source string             // who published it
}

// An Issue is something that several nodes show from different sides: who looks
// at one of them should see the others too.
type Issue struct {
	Name   string // in a few words: "memory bandwidth"
	Nodes  []int  // indexes in Model.Nodes, of at least two
	Lead   int    // the node that the others may cause: only its readers should look at the others; -1 for none
	Source string
}

// Leads reports whether who looks at a node should see the others of the issue.
func (s *Issue) Leads(node int) bool {
	return s.Lead == node || s.Lead < 0 && slices.Contains(s.Nodes, node)
}

// judgementFile is the file of ranges and issues in a library.
const judgementFile = "judgement.toml"

// A judgement is what data/judgement.toml says about nodes of several models.
type judgement struct {
	ranges []nodeRanges // in the order of their keys
	issues []issueTable
}

// A nodeKey names a node of a method.
type nodeKey struct{ node, method string }

func (k nodeKey) compare(other nodeKey) int {
	return cmp.Or(strings.Compare(k.node, other.node), strings.Compare(k.method, other.method))
}

// A nodeRanges says what is expected of a node of a method.
type nodeRanges struct {
	nodeKey
	source string
	ends   [3]Range // by the index in Workloads
}

// A rangeTable is one table [[range]].
type rangeTable struct {
	Node, Method, Source string
	Client, Server, HPC  map[string]float64
	line                 int
}

// An issueTable is one table [[issue]].
type issueTable struct {
	Name, Method, Source string
	Lead                 string
	Nodes                []string
	line                 int
}

// readJudgement reads the file of ranges and issues. No file is one without any.
func readJudgement(fsys fs.FS, name string) (*judgement, error) {
	data, err := readFile(fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return &judgement{}, nil
	}
	if err != nil {
		return nil, err
	}
	return parseJudgement(data, name)
}

func parseJudgement(data []byte, name string) (*judgement, error) {
	var ranges []rangeTable
	var issues []issueTable
	err := decode(data, name, schema{
		table: func(list string, at position) any {
			switch list {
			case "range":
				ranges = append(ranges, rangeTable{line: at.line})
				return &ranges[len(ranges)-1]
			case "issue":
				issues = append(issues, issueTable{line: at.line})
				return &issues[len(issues)-1]
			}
			return nil
		},
	})
	if err != nil {
		return nil, err
	}
	j := &judgement{issues: issues}
	first := make(map[nodeKey]int, len(ranges)) // lines
	var faults Errors
	fault := func(line int, format string, args ...any) {
		faults = append(faults, &Error{File: name, Line: line, Msg: fmt.Sprintf(format, args...)})
	}
	for _, t := range ranges {
		key := nodeKey{t.Node, t.Method}
		if line, twice := first[key]; twice {
			fault(t.line, "range: there is already one for node %q, method %q, at line %d", spelling.Clip(t.Node), spelling.Clip(t.Method), line)
		}
		if problem := t.problem(); problem != "" {
			fault(t.line, "range: %s", problem)
		}
		first[key] = t.line
		j.ranges = append(j.ranges, nodeRanges{key, t.Source, t.ranges()})
	}
	for _, t := range issues {
		if problem := t.problem(); problem != "" {
			fault(t.line, "issue: %s", problem)
		}
	}
	if len(faults) > 0 {
		return nil, faults
	}
	sorting.Stable(j.ranges, func(a, b nodeRanges) int { return a.compare(b.nodeKey) })
	return j, nil
}

func (t *rangeTable) problem() string {
	switch {
	case t.Node == "" || t.Method == "":
		return "it names no node, or no method"
	case t.Source == "":
		return "it does not say who published it (source)"
	}
	for i, ends := range t.ends() {
		low, hasLow := ends["low"]
		high, hasHigh := ends["high"]
		switch {
		case !hasLow || !hasHigh || len(ends) != 2:
			return fmt.Sprintf("%s is to be { low = …, high = … }", Workloads[i])
		case !(0 <= low && low < high && high <= 1):
			return fmt.Sprintf("%s: %v to %v is not a range of shares, 0 to 1", Workloads[i], low, high)
		}
	}
	return ""
}

// ends are the ends of the ranges, by the index in Workloads.
func (t *rangeTable) ends() [3]map[string]float64 {
	return [3]map[string]float64{t.Client, t.Server, t.HPC}
}

func (t *issueTable) problem() string {
	switch {
	case t.Name == "" || t.Method == "":
		return "it has no name, or no method"
	case t.Source == "":
		return "it does not say who published it (source)"
	case len(t.Nodes) < 2 && (t.Lead == "" || len(t.Nodes) == 0):
		return "it needs two nodes at least"
	case slices.Contains(t.Nodes, t.Lead):
		return "its lead is not to be among its nodes"
	}
	for i, n := range t.Nodes {
		if slices.Contains(t.Nodes[:i], n) {
			return fmt.Sprintf("the node %q is named twice", spelling.Clip(n))
		}
	}
	return ""
}

// ranges returns the ranges of a table.
func (t *rangeTable) ranges() (all [3]Range) {
	for i, ends := range t.ends() {
		all[i] = Range{ends["low"], ends["high"]}
	}
	return all
}

// expectation returns the ranges of a node, and the one that spans them.
func (t *nodeRanges) expectation() *Expectation {
	e := &Expectation{Source: t.source, Ranges: map[Workload]Range{}}
	all := Range{math.Inf(1), math.Inf(-1)}
	for i, w := range Workloads {
		r := t.ends[i]
		e.Ranges[w] = r
		all = Range{min(all.Low, r.Low), max(all.High, r.High)}
	}
	e.Ranges[AnyWorkload] = all
	return e
}

// find returns what is expected of a node, nil if nobody has said.
func (j *judgement) find(key nodeKey) *nodeRanges {
	i, ok := slices.BinarySearchFunc(j.ranges, key, func(t nodeRanges, key nodeKey) int { return t.compare(key) })
	if !ok {
		return nil
	}
	return &j.ranges[i]
}

// apply gives the nodes of m what is expected of them. It gives m the issues that have
// two or more of its nodes.
func (j *judgement) apply(m *Model) {
	at := make(map[string]int, len(m.Nodes))
	for i := range m.Nodes {
		n := &m.Nodes[i]
		at[n.Name] = i
		if t := j.find(nodeKey{n.Name, m.Name}); t != nil && m.Share(i) {
			n.Expected = t.expectation()
		}
	}
	for i := range j.issues {
		t := &j.issues[i]
		if t.Method != m.Name {
			continue
		}
		issue := Issue{Name: strings.TrimSpace(t.Name), Lead: -1, Source: t.Source}
		if i, ok := at[t.Lead]; ok {
			issue.Lead, issue.Nodes = i, []int{i}
		} else if t.Lead != "" {
			continue
		}
		for _, name := range t.Nodes {
			if i, ok := at[name]; ok {
				issue.Nodes = append(issue.Nodes, i)
			}
		}
		if len(issue.Nodes) > 1 {
			m.Issues = append(m.Issues, issue)
		}
	}
}
