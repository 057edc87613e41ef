package cli

import (
	"bytes"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cyclestack/cyclestack/internal/page"
)

// shells are those that completion has a script for.
var shells = []string{"bash", "zsh", "fish", "powershell"}

// addHelp gives the program help texts that fit a terminal, and errors for help about
// what does not exist.
func addHelp(root *cobra.Command) {
	plain := (&cobra.Command{}).HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		var b bytes.Buffer
		out := c.OutOrStdout()
		c.SetOut(&b)
		plain(c, args)
		c.SetOut(out)
		_, _ = io.WriteString(out, page.Help(b.String()))
	})
	root.SetHelpCommand(&cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "Help about any command",
		GroupID: "catalogue",
		RunE: func(_ *cobra.Command, args []string) error {
			c, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 && len(args) > 0 {
				return usageError("%q is not a command: cyclestack help lists them", strings.Join(args, " "))
			}
			return c.Help()
		},
	})
}

// noSuchShell refuses the completion of a shell that has none.
func noSuchShell(args []string) error {
	if len(args) > 1 && args[0] == "completion" && !strings.HasPrefix(args[1], "-") && !slices.Contains(shells, args[1]) {
		return usageError("completion %s: there are %s", args[1], strings.Join(shells, ", "))
	}
	return nil
}
