package extra

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/cyclestack/cyclestack/internal/agent"
	"github.com/cyclestack/cyclestack/internal/cli"
	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/internal/release"
)

// newAgent makes the command agent.
func newAgent(k *cli.Kit) *cobra.Command {
	f := k.Flags()
	o := agent.Options{Settings: agent.Usual}
	source, budget := string(measure.Auto), "0.1%"
	cmd := &cobra.Command{
		Use:   "agent [flags]",
		Short: "Export accounts of this machine and its containers, for Prometheus",
		Long: `agent exports the accounts of this machine, its services and its containers. They are
counters that add up: the slots or cycles of each node, and the whole of the same time.
Prometheus scrapes /metrics. Without a PMU it exports the operating system's account.

It keeps to a budget of processor time, measures what it takes, and exports that too.
SIGHUP has it read its files anew. docs/fleet.md has the metrics, their labels, and what
they cost.`,
		Example: `  cyclestack agent
  cyclestack agent --listen :9749 --web-config web.yml --containers 50
  cyclestack agent --listen "" --otlp http://collector:4318
  cyclestack agent --source os --interval 30s`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.Check(); err != nil {
				return err
			}
			var err error
			if o.Budget, err = agent.ParseShare(budget); err != nil {
				return err
			}
			o.Choice, o.Source, o.Kernel, o.Version = f.Choice(), measure.Source(source), k.Kernel, release.Version
			if o.Choice.Level > 0 {
				o.Levels = o.Choice.Level
			}
			o.Log = slog.New(slog.NewTextHandler(k.Err, nil))
			return runAgent(cmd.Context(), k, o)
		},
	}
	f.AddModel(cmd)
	flags := cmd.Flags()
	flags.Lookup("level").Usage = "deepest level of the tree that is counted; 0 is 2"
	flags.StringVar(&o.Listen, "listen", "127.0.0.1:9749", "`ADDRESS` and port of /metrics; \"\" for none")
	flags.StringVar(&o.WebConfig, "web-config", "", "`FILE` with TLS and users, as Prometheus's exporters have it")
	flags.StringVar(&o.Config, "config", "", "`FILE` with settings (TOML, keys as these flags), read anew on SIGHUP")
	flags.BoolVar(&o.Sockets, "per-socket", false, "the host's accounts by socket")
	flags.DurationVar(&o.Interval, "interval", o.Interval, "length of a window")
	flags.StringVar(&budget, "budget", budget, "`SHARE` of all processors' time that the agent may take")
	flags.IntVar(&o.Containers, "containers", 0, "containers with series of their own: the `N` that take the most time")
	flags.IntVar(&o.MaxSeries, "max-series", o.MaxSeries, "series at most; the rest is summed as \"other\"")
	flags.StringArrayVar(&o.Labels, "label", nil, "`NAME=VALUE` that all series have; may be repeated")
	flags.StringVar(&o.Root, "root", "/", "`DIR` with the host's files, in a container")
	flags.StringVar(&o.Kubelet, "kubelet", "", "`URL` of the kubelet's list of pods, or a file with it")
	flags.StringVar(&o.Token, "kubelet-token", "", "`FILE` with the token for the kubelet")
	flags.StringVar(&o.Replay, "replay", "", "`FILE` that is played in place of counters, to test dashboards")
	flags.StringVar(&o.OTLP, "otlp", "", "`URL` of a receiver of OTLP over HTTP: metrics are pushed there as well")
	flags.IntVar(&o.CgroupLevels, "cgroup-level", agent.Usual.CgroupLevels, "deepest level that is counted by cgroup, with a PMU: each has more series")
	flags.StringVar(&o.Profiles, "profiles", "", "`URL` that profiles by service are pushed to: a Pyroscope's, or one of OTLP up to /v1development/profiles")
	flags.StringVar(&source, "source", source, "what counts: `auto|pmu|os`")
	return cmd
}

// runAgent exports until a signal.
func runAgent(ctx context.Context, k *cli.Kit, o agent.Options) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	a, err := agent.New(o)
	if err != nil {
		return err
	}
	if at := a.Address(); at != "" {
		fmt.Fprintf(k.Err, "exporting on %s until Ctrl-C\n", at)
	}
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangups:
				_ = a.Reload() // which logs its error
			}
		}
	}()
	return a.Run(ctx)
}
