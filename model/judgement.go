package model

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"

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
	node, method, source string
	ends                 map[Workload]*map[string]float64
	line                 int
}

func newRangeTable(line int) rangeTable {
	t := rangeTable{line: line, ends: map[Workload]*map[string]float64{}}
	for _, w := range Workloads {
		t.ends[w] = &map[string]float64{}
	}
	return t
}

func (t *rangeTable) field(key string) any {
	switch key {
	case "node":
		return &t.node
	case "method":
		return &t.method
	case "source":
		return &t.source
	}
	if ends, ok := t.ends[Workload(key)]; ok {
		return ends
	}
	return nil
}

// An issueTable is one table [[issue]].
type issueTable struct {
	name, method, source string
	lead                 string
	nodes                []string
	line                 int
}

func (t *issueTable) field(key string) any {
	switch key {
	case "name":
		return &t.name
	case "method":
		return &t.method
	case "lead":
		return &t.lead
	case "nodes":
		return &t.nodes
	case "source":
		return &t.source
	}
	return nil
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
		top: noField,
		table: func(list string, at position) func(key string) any {
			switch list {
			case "range":
				ranges = append(ranges, newRangeTable(at.line))
				return func(key string) any { return ranges[len(ranges)-1].field(key) }
			case "issue":
				issues = append(issues, issueTable{line: at.line})
				return func(key string) any { return issues[len(issues)-1].field(key) }
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
		key := nodeKey{t.node, t.method}
		if line, twice := first[key]; twice {
			fault(t.line, "range: there is already one for node %q, method %q, at line %d", spelling.Clip(t.node), spelling.Clip(t.method), line)
		}
		if problem := t.problem(); problem != "" {
			fault(t.line, "range: %s", problem)
		}
		first[key] = t.line
		j.ranges = append(j.ranges, nodeRanges{key, t.source, t.ranges()})
	}
	for _, t := range issues {
		if problem := t.problem(); problem != "" {
			fault(t.line, "issue: %s", problem)
		}
	}
	if len(faults) > 0 {
		return nil, faults
	}
	slices.SortFunc(j.ranges, func(a, b nodeRanges) int { return a.compare(b.nodeKey) })
	return j, nil
}

func (t *rangeTable) problem() string {
	switch {
	case t.node == "" || t.method == "":
		return "it names no node, or no method"
	case t.source == "":
		return "it does not say who published it (source)"
	}
	for _, w := range Workloads {
		ends := *t.ends[w]
		low, hasLow := ends["low"]
		high, hasHigh := ends["high"]
		switch {
		case !hasLow || !hasHigh || len(ends) != 2:
			return fmt.Sprintf("%s is to be { low = …, high = … }", w)
		case !(0 <= low && low < high && high <= 1):
			return fmt.Sprintf("%s: %v to %v is no range of shares, 0 to 1", w, low, high)
		}
	}
	return ""
}

func (t *issueTable) problem() string {
	switch {
	case t.name == "" || t.method == "":
		return "it has no name, or no method"
	case t.source == "":
		return "it does not say who published it (source)"
	case len(t.nodes) < 2 && (t.lead == "" || len(t.nodes) == 0):
		return "it needs two nodes at least"
	case slices.Contains(t.nodes, t.lead):
		return "its lead is not to be among its nodes"
	}
	for i, n := range t.nodes {
		if slices.Contains(t.nodes[:i], n) {
			return fmt.Sprintf("the node %q is named twice", spelling.Clip(n))
		}
	}
	return ""
}

// ranges returns the ranges of a table.
func (t *rangeTable) ranges() (all [3]Range) {
	for i, w := range Workloads {
		ends := *t.ends[w]
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

// apply gives the nodes of m what is expected of them, and m the issues that have at least
// two of its nodes.
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
		if t.method != m.Name {
			continue
		}
		issue := Issue{Name: strings.TrimSpace(t.name), Lead: -1, Source: t.source}
		if i, ok := at[t.lead]; ok {
			issue.Lead, issue.Nodes = i, []int{i}
		} else if t.lead != "" {
			continue
		}
		for _, name := range t.nodes {
			if i, ok := at[name]; ok {
				issue.Nodes = append(issue.Nodes, i)
			}
		}
		if len(issue.Nodes) > 1 {
			m.Issues = append(m.Issues, issue)
		}
	}
}
