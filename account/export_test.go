package account

import (
	"slices"

	"github.com/cyclestack/cyclestack/model"
)

// Name returns the name of a column's event: the processor's where its table knows it, else
// as the recording spells it.
func (b *Binding) Name(column int) string { return b.Names[column] }

// NodeColumns returns the columns that each node rests on.
func (b *Binding) NodeColumns() [][]int { return b.nodeColumns() }

// AllEvents lists one event for each input of the model and of the processor's relations.
func (c *Method) AllEvents() []string {
	var names []string
	for i := range c.inputs {
		if !c.inputs[i].param && !slices.Contains(names, c.inputs[i].any[0].name) {
			names = append(names, c.inputs[i].any[0].name)
		}
	}
	return names
}

// Relation is the relation that a check is of, nil if it is of none.
func (a *Account) Relation(c *Check) *model.Relation {
	if c.rule < 0 {
		return nil
	}
	return a.Binding.checks[c.rule].Relation
}

// WrongCounts are the names of the checks of single counts.
func WrongCounts() []string {
	var names []string
	for _, w := range wrongs {
		names = append(names, w[0])
	}
	return names
}
