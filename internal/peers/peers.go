// Package peers names the columns of what other tools computed and published: no counts, but
// shares of slots or cycles (0…1) and other figures.
package peers

// Behind [Published] is the path of the node.
const (
	Published = "published."
	// Marked begins the column that says whether the tool found a node over its threshold: 0
	// is no, 1 yes, and 2 means that its bottleneck is the node or one below it.
	Marked = Published + "marked."
	// Rows is the number of rows that the figures are means of.
	Rows = Published + "rows"
)
