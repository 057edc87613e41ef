package cli

import (
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
	name := c.cpu
	if name == "" {
		name = resolve.GenericCPU
	}
	cpu, err := cat.CPU(name)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []string
	for _, info := range cat.Models(cpu.Name) {
		m, err := cat.Model(info.Name, cpu.Name)
		if err != nil || c.model != "" && c.model != info.Name {
			continue
		}
		for i := range m.Nodes {
			names = append(names, m.Nodes[i].Name+"\t"+m.Nodes[i].Title)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
