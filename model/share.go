package model

// Share says whether a node's value is a share of the whole, 0…1, to be read
// in percent: the nodes of the tree of a model of slots or with an Of.
func (m *Model) Share(node int) bool {
	n := &m.Nodes[node]
	if m.Of != "" {
		return n.Unit == ""
	}
	return m.Unit == "slots" && (n.Unit == "" || n.Section == "")
}
