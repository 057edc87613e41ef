package extra

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/cyclestack/cyclestack/internal/cli"
	"github.com/cyclestack/cyclestack/internal/serve"
)

// newServe makes the command serve.
func newServe(k *cli.Kit) *cobra.Command {
	f := k.Flags()
	o := serve.Options{}
	cmd := &cobra.Command{
		Use:   "serve FILE…",
		Short: "Show recordings to a browser",
		Long: `serve shows recordings to a browser: the pages that 'report --format html' writes. It
listens on the loopback interface, and answers only requests that are addressed to it.
On another address, --listen asks for a token, which is part of the address that is
printed. Nothing can be written, and no file is read but those that are named.`,
		Example: `  cyclestack serve perf.data
  cyclestack serve --listen 127.0.0.1:8080 before.data after.data`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, files []string) error {
			if err := f.Check(); err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			o.Files, o.Page = files, f.Page
			return runServe(ctx, o, k.Err)
		},
	}
	f.AddModel(cmd)
	f.AddRecordings(cmd)
	cmd.Flags().StringVar(&o.Listen, "listen", "127.0.0.1:0", "`ADDRESS` and port; port 0 is any that is free")
	return cmd
}

// runServe serves until the context ends.
func runServe(ctx context.Context, o serve.Options, to io.Writer) error {
	s, err := serve.New(o)
	if err != nil {
		return err
	}
	fmt.Fprintf(to, "serving on %s until Ctrl-C\n", s.URL())
	return s.Serve(ctx)
}
