package pipeline

import (
	_ "embed"
	"fmt"
	"strings"
)

// modelText explains the model and its limits.
//
//go:embed model.txt
var modelText string

// Explain returns a text about the model, and about a core: where its figures come from.
func (c *Core) Explain() string {
	var b strings.Builder
	b.WriteString(modelText)
	fmt.Fprintf(&b, "\nThe core %s\n", c.Name)
	fmt.Fprintf(&b, "  %d micro-ops a cycle from the cache of decoded instructions, %d dispatched, %d retired;\n", c.fetch, c.dispatch, c.retire)
	fmt.Fprintf(&b, "  reorder buffer %d, load queue %d, store queue %d", c.reorder, c.loadQueue, c.storeQueue)
	for i, s := range append(c.schedulers[:len(c.schedulers):len(c.schedulers)], c.vectorSchedulers...) {
		if i == 0 {
			b.WriteString(", schedulers")
		}
		fmt.Fprintf(&b, " %d", s.size)
	}
	fmt.Fprintf(&b, ";\n  a load takes %d cycles, of a vector %d; forwarding %d and %d\n", c.load, c.vectorLoad, c.forward, c.vectorForward)
	count := map[Trust]int{}
	for _, t := range c.trust {
		count[t]++
	}
	fmt.Fprintf(&b, "  %d classes of instructions: %d measured on such a core, %d published,\n  %d as most others or as on another core\n\nSources\n", len(c.trust), count[Measured], count[Imported], count[ClassDefault]+count[Unknown])
	for _, about := range c.about {
		fmt.Fprintf(&b, "  %s\n", strings.ReplaceAll(about, "\n", "\n  "))
	}
	return b.String()
}
