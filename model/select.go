package model

import (
	"fmt"
	"path"
	"strings"
)

// Match reports whether a node's name or path matches a shell pattern, or one of several
// with commas between. Case does not matter; "" matches every node.
func (n *Node) Match(pattern string) bool {
	if pattern == "" {
		return true
	}
	for _, p := range strings.Split(strings.ToLower(pattern), ",") {
		for _, s := range []string{n.Name, n.Path} {
			if ok, _ := path.Match(p, strings.ToLower(s)); ok {
				return true
			}
		}
	}
	return false
}

// Select returns the indexes of the nodes that match a pattern, without their parents,
// down to a level. 0 is all levels. Without a pattern these are nodes of the main tree.
func (m *Model) Select(pattern string, level int) []int {
	var list []int
	for i := range m.Nodes {
		n := &m.Nodes[i]
		if (level == 0 || n.Level <= level) && n.Match(pattern) && (pattern != "" || n.Section == "") {
			list = append(list, i)
		}
	}
	return list
}

// Shown says of each node whether it or a node below it matches a pattern, down to a
// level. 0 is all levels.
func (m *Model) Shown(pattern string, level int) []bool {
	show := make([]bool, len(m.Nodes))
	for i := range m.Nodes {
		n := &m.Nodes[i]
		if level > 0 && n.Level > level || !n.Match(pattern) {
			continue
		}
		for j := i; j >= 0; j = m.Nodes[j].Above {
			show[j] = true
		}
	}
	return show
}

// Choose returns the indexes of the nodes to count: those of Shown. Without a pattern,
// nodes outside the main tree are left out unless all is set.
func (m *Model) Choose(pattern string, level int, all bool) ([]int, error) {
	if _, err := path.Match(pattern, ""); err != nil {
		return nil, fmt.Errorf("%q is not a pattern: %v", pattern, err)
	}
	var chosen []int
	for i, shown := range m.Shown(pattern, level) {
		if shown && (all || pattern != "" || m.Nodes[i].Section == "") {
			chosen = append(chosen, i)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no node of %s matches %q", m.Name, pattern)
	}
	return chosen, nil
}
