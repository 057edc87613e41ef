package cli

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/resolve"
)

// completeWords completes a flag with one of a few words.
func completeWords(cmd *cobra.Command, flag string, words ...string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// completeKinds completes --by.
func completeKinds(cmd *cobra.Command, kinds []counts.Kind) {
	completeWords(cmd, "by", kindNames(kinds)...)
}

// nodeNames returns the names of the nodes of the processor's methods, with their titles;
// of any processor where none is chosen.
func (c *common) nodeNames(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault // a recording
	}
	cat, err := c.catalogue()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	names, err := resolve.NodeNames(cat, cmp.Or(c.cpu, resolve.GenericCPU), c.model)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
