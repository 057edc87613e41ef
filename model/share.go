package model

import "strings"

// Useful says whether a node is work that the program asked for: a large share of it is no
// bottleneck. In all methods these nodes are called after retiring.
func (n *Node) Useful() bool {
	const stem = "retir"
	return len(n.Name) >= len(stem) && strings.EqualFold(n.Name[:len(stem)], stem)
}

// Share says whether a node's value is a share of the whole, 0…1, to be read
// in percent: the nodes of the tree of a model of slots or with an Of.
func (m *Model) Share(node int) bool {
	n := &m.Nodes[node]
	if m.Of != "" {
		return n.Unit == ""
	}
	return m.Unit == "slots" && (n.Unit == "" || n.Section == "")
}
