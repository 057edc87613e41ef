package report

import "github.com/cyclestack/cyclestack/model"

// Select returns the nodes that --nodes and --level choose, without their parents: all
// of the main tree if there is no pattern.
func Select(m *model.Model, pattern string, level int) []int {
	o := Options{Nodes: pattern}
	var list []int
	for i := range m.Nodes {
		n := &m.Nodes[i]
		if (level == 0 || n.Level <= level) && o.Match(n) && (pattern != "" || n.Section == "") {
			list = append(list, i)
		}
	}
	return list
}
