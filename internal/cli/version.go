package cli

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/cyclestack/cyclestack/internal/page"
)

// version is the release; the build's revision is added where it is known.
const version = "0.1.0-dev"

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
		rev := revision()
		if c.format == "json" {
			return page.JSON(out, map[string]string{"schema": "cyclestack.version/v1", "version": version,
				"revision": rev, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH})
		}
		if rev != "" {
			rev = " (" + rev + ")"
		}
		_, err := fmt.Fprintf(out, "cyclestack %s%s, %s %s/%s\n", version, rev, runtime.Version(), runtime.GOOS, runtime.GOARCH)
		return err
	})
}

// revision is the commit the binary was built from, "" where it is not known.
func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	rev, dirty := "", ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			rev = s.Value[:min(12, len(s.Value))]
		case "vcs.modified":
			if s.Value == "true" {
				dirty = ", modified"
			}
		}
	}
	return rev + dirty
}
