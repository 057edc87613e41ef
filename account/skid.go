package account

import "slices"

// Skids lists the events of a node, as the recording spells them, whose samples name an
// instruction after the event's. By line and by instruction the node then stands next to its
// place.
func (a *Account) Skids(node int) []string {
	var events []string
	a.skids(node, map[int]bool{}, &events)
	return events
}

func (a *Account) skids(node int, seen map[int]bool, events *[]string) {
	if seen[node] {
		return
	}
	seen[node] = true
	for _, o := range a.Operands(node) {
		if i, ok := a.Node(o.Name); ok && o.Kind == "node" {
			a.skids(i, seen, events)
			continue
		}
		for _, c := range a.Binding.Layout.Columns {
			if c.Skids && c.Event == o.Event && !slices.Contains(*events, c.Event) {
				*events = append(*events, c.Event)
			}
		}
	}
}
