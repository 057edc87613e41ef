package extra

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/cyclestack/cyclestack/internal/cli"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/release"
	"github.com/cyclestack/cyclestack/internal/serve"
)

// newServe makes the command serve.
func newServe(k *cli.Kit) *cobra.Command {
	f := k.Flags()
	o := serve.Options{}
	cmd := &cobra.Command{
		Use:   "serve [FILE…] [-p PID | -a | -- PROGRAM ARGS…]",
		Short: "Show recordings, or what is counted now, to a browser",
		Long: `serve shows recordings to a browser: the pages that 'report --format html' writes, and
differences between them. Behind --, or with -p, -t, -G, -a or -C, it counts, and the page
follows the counting. /api/v1/openapi.json describes how programs read the same.

It listens on the loopback interface, and answers only requests that are addressed to it.
On another address, --listen asks for a token, which is part of the address that is
printed. Nothing can be written, and no file is read but those that are named. A recording
that is dragged onto a page is read, shown there, and forgotten.`,
		Example: `  cyclestack serve perf.data
  cyclestack serve --listen 127.0.0.1:8080 before.data after.data
  cyclestack serve -a -I 1000
  cyclestack serve -- ./server`,
		RunE: func(cmd *cobra.Command, args []string) error {
			program := []string(nil)
			if at := cmd.ArgsLenAtDash(); at >= 0 {
				args, program = args[:at], args[at:]
			}
			return runServe(cmd.Context(), k, f, o, args, program)
		},
	}
	f.AddModel(cmd)
	f.AddLive(cmd)
	f.AddPrograms(cmd)
	cmd.Flags().StringVar(&o.Listen, "listen", "127.0.0.1:0", "`ADDRESS` and port; port 0 is any that is free")
	return cmd
}

// runServe serves until a signal.
func runServe(ctx context.Context, k *cli.Kit, f *cli.Flags, o serve.Options, files, program []string) error {
	if err := f.Check(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	o.Files, o.Page, o.Run, o.Version, o.Command = files, f.Page, f.Run, release.Version, os.Args
	live := len(program) > 0 || f.Target()
	switch {
	case !live && len(files) == 0:
		return fault.Usagef("nothing to show: name a recording, a program behind --, -p, -t, -G, -a or -C")
	case live:
		o.Live = serve.NewLive(f.Report())
	}
	s, err := serve.New(o)
	if err != nil {
		return err
	}
	if live {
		options, err := f.Live(program, time.Second)
		if err != nil {
			return err
		}
		c, err := count(ctx, k, options, o.Live)
		if err != nil {
			return err
		}
		defer c.end()
		go func() {
			select {
			case <-c.failed:
				fmt.Fprintf(k.Err, "cyclestack serve: %s\n", cli.Spelled(c.err))
			case <-c.done:
			}
			_ = o.Live.End()
		}()
	}
	fmt.Fprintf(k.Err, "serving on %s until Ctrl-C\n", s.URL())
	return s.Serve(ctx)
}
