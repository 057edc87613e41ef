// Package extra is the command line of cyclestack-extra: the commands that need the network
// or large libraries. The flags that they share with other commands, the errors and the
// exit statuses are those of package cli.
package extra

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/cyclestack/cyclestack/internal/cli"
)

// Main runs the program with the arguments behind its name and returns its exit status.
func Main(ctx context.Context, args []string, in io.Reader, out, stderr io.Writer) int {
	return cli.Executable{
		Long: `cyclestack-extra has the commands of cyclestack that need the network or large libraries.
cyclestack finds it next to itself, or on the PATH, and runs it: 'cyclestack top'.`,
		Example:  "  cyclestack top -a\n  cyclestack serve perf.data",
		Commands: []func(*cli.Kit) *cobra.Command{newTop, newServe, newShow, newAgent, newFleet, newConvert},
	}.Main(ctx, args, in, out, stderr)
}
