package account

// Name returns the name of a column's event: the processor's where its table knows it, else
// as the recording spells it.
func (b *Binding) Name(column int) string { return b.Names[column] }

// NodeColumns returns the columns that each node rests on.
func (b *Binding) NodeColumns() [][]int { return b.nodeColumns() }
