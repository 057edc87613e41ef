package cli

import (
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/cyclestack/cyclestack/internal/page"
	"github.com/cyclestack/cyclestack/internal/release"
)

func (a *app) version() *cobra.Command {
	c := &common{}
	cmd := &cobra.Command{
		Use:     "version",
		GroupID: "catalogue",
		Short:   "Print the version",
		Example: "  cyclestack version --format json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := c.check(); err != nil {
				return err
			}
			return a.printVersion(c)
		},
	}
	c.addOutput(cmd, "text", "json")
	return cmd
}

// printVersion prints the version, with the build's revision if it is known.
func (a *app) printVersion(c *common) error {
	return a.write(c, func(out io.Writer) error {
		rev := release.Revision()
		if c.format == "json" {
			return page.JSON(out, map[string]string{"schema": "cyclestack.version/v1", "version": release.Version,
				"revision": rev, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH})
		}
		if rev != "" {
			rev = " (" + rev + ")"
		}
		_, err := fmt.Fprintf(out, "cyclestack %s%s, %s %s/%s\n", release.Version, rev, runtime.Version(), runtime.GOOS, runtime.GOARCH)
		return err
	})
}
