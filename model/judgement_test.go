package model

import (
	"slices"
	"strings"
	"testing"
)

func TestJudgementErrors(t *testing.T) {
	const ends = "client = { low = 0.1, high = 0.2 }\nserver = { low = 0.1, high = 0.2 }\nhpc = { low = 0.1, high = 0.2 }\n"
	const good = "[[range]]\nnode = \"A\"\nmethod = \"m\"\nsource = \"s\"\n" + ends
	for in, want := range map[string]string{
		"source = 1":                                       `judgement.toml:1: unknown key "source"`,
		"[[rank]]":                                         `judgement.toml:1: unknown key "rank"`,
		"[[range]]\nnode = \"A\"":                          "judgement.toml:1: range: it names no node, or no method",
		"[[range]]\nnode = 1":                              `judgement.toml:2: key "node" in "range": want a string`,
		"[[range]]\nclient = [0.1, 0.2]":                   "want an inline table of numbers",
		"[[range]]\ndesktop = { low = 0 }":                 `judgement.toml:2: unknown key "desktop"`,
		"\n" + good + good:                                 `judgement.toml:9: range: there is already one for node "A", method "m", at line 2`,
		strings.Replace(good, "s\"", "\"", 1):              "judgement.toml:1: range: it does not say who published it",
		strings.Replace(good, "high = 0.2", "up = 0.2", 1): "range: client is to be { low = …, high = … }",
		strings.Replace(good, "high = 0.2", "high = 0.2, mid = 0.1", 1):                          "range: client is to be { low = …, high = … }",
		strings.Replace(good, "high = 0.2", "high = 20", 1):                                      "range: client: 0.1 to 20 is not a range of shares",
		strings.Replace(good, "low = 0.1", "low = 0.3", 1):                                       "range: client: 0.3 to 0.2 is not a range of shares",
		strings.Replace(good, "low = 0.1", "low = nan", 1):                                       "range: client: NaN to 0.2 is not a range of shares",
		"[[issue]]\nnodes = [\"A\", \"B\"]":                                                      "judgement.toml:1: issue: it has no name, or no method",
		"[[issue]]\nname = \"n\"\nmethod = \"m\"\nnodes = [\"A\", \"B\"]":                        "issue: it does not say who published it",
		"[[issue]]\nname = \"n\"\nmethod = \"m\"\nsource = \"s\"\nnodes = [\"A\"]":               "issue: it needs two nodes at least",
		"[[issue]]\nname = \"n\"\nmethod = \"m\"\nsource = \"s\"\nnodes = [\"A\", \"B\", \"A\"]": `issue: the node "A" is named twice`,
	} {
		_, err := parseJudgement([]byte(in), "judgement.toml")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", in, err, want)
		}
	}
	j, err := parseJudgement([]byte(good), "judgement.toml")
	if err != nil || len(j.ranges) != 1 {
		t.Errorf("a file of one range: %v, %v", j, err)
	}
}

// TestJudgementFits: every node that the file names is in a model of the method, as a
// share.
func TestJudgementFits(t *testing.T) {
	cat, err := Embedded()
	if err != nil {
		t.Fatal(err)
	}
	judged, err := cat.lib.judgement()
	if err != nil {
		t.Fatal(err)
	}
	expected, linked := map[nodeKey]bool{}, map[nodeKey]bool{}
	for _, s := range cat.sources("") {
		m, err := cat.load(s, cat.lib.named(s.CPUs[0]))
		if err != nil {
			t.Fatal(err)
		}
		for i := range m.Nodes {
			key := nodeKey{m.Nodes[i].Name, m.Name}
			expected[key] = expected[key] || m.Nodes[i].Expected != nil
		}
		for _, issue := range m.Issues {
			for _, i := range issue.Nodes {
				linked[nodeKey{m.Nodes[i].Name, m.Name}] = true
			}
		}
	}
	for _, r := range judged.ranges {
		if !expected[r.nodeKey] {
			t.Errorf("no model %s expects anything of %s", r.method, r.node)
		}
	}
	for _, issue := range judged.issues {
		for _, n := range append(slices.Clone(issue.Nodes), issue.Lead) {
			if n != "" && !linked[nodeKey{n, issue.Method}] {
				t.Errorf("%s: no model %s has %s and another node of the issue", issue.Name, issue.Method, n)
			}
		}
	}
}
