package extra

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/cyclestack/cyclestack/internal/cli"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/fleet"
	"github.com/cyclestack/cyclestack/internal/progress"
	"github.com/cyclestack/cyclestack/report"
)

// newFleet makes the command fleet.
func newFleet(k *cli.Kit) *cobra.Command {
	f, o := k.Flags(), fleet.Options{}
	cmd := &cobra.Command{
		Use:   "fleet --prom URL",
		Short: "Account for many hosts, from a Prometheus-compatible store",
		Long: `fleet asks a store for the counters that agents export, and prints the account of the
fleet: by service, namespace, processor or any label. The store is a Prometheus, Thanos,
Mimir or VictoriaMetrics. Sums come first and ratios last. The error of each share comes
from the spread over hosts. Processors, models and their versions stay apart. Services
where the most could be saved come first.

--against compares the hosts with a label's value with the rest, and --before compares
with an earlier range. Each processor has the same weight on both sides. P-values are
corrected for the number of tests. The least change that would be found is printed.
With --fail-on the exit status is 1 if a node's share changed by more than a limit.
Changes by chance do not count.

The recording rules of deploy/prometheus answer for large fleets, where the store has
them. docs/fleet.md tells more.`,
		Example: `  cyclestack fleet --prom http://localhost:9090
  cyclestack fleet --prom http://localhost:9090 --by cpu --range 24h
  cyclestack fleet --prom http://localhost:9090 --where service=search --level 3
  cyclestack fleet --prom http://localhost:9090 --against version=canary
  cyclestack fleet --prom http://localhost:9090 --against version=canary --fail-on 'Memory_Bound>3%,Retiring<3%'
  cyclestack fleet --prom https://mimir.example/prometheus --tenant prod --bearer-token-file token`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.Check(); err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return runFleet(ctx, k, f, o)
		},
	}
	f.AddOutput(cmd, report.Formats[fleet.Report]()...)
	flags := cmd.Flags()
	flags.StringVar(&o.Access.URL, "prom", "", "`URL` of the store, up to /api/v1")
	flags.StringVar(&o.By, "by", "service", "one account for each value of the `LABEL`: service, namespace, instance, cpu, …")
	flags.DurationVar(&o.Range, "range", time.Hour, "`TIME` that the account is of")
	flags.StringVar(&o.At, "at", "", "end of the range, a `TIME` as 2026-01-31T12:00:00Z or in seconds since 1970 (default: now)")
	flags.StringArrayVar(&o.Where, "where", nil, "only series with `LABEL=VALUE`, or LABEL!=VALUE (may be repeated)")
	flags.IntVar(&o.Level, "level", 2, "deepest level of the tree; 0 is all")
	flags.BoolVar(&o.All, "all", false, "all accounts or changes, on as many lines as they take")
	flags.StringVar(&o.Against, "against", "", "compare the hosts with `LABEL=VALUE` with the rest")
	flags.DurationVar(&o.Before, "before", 0, "compare with the same range so much `TIME` earlier")
	flags.StringVar(&o.FailOn, "fail-on", "", "exit with 1 if a comparison finds `'NODE>PERCENT%'`, several by commas; NODE may be a pattern, < is for less")
	flags.BoolVar(&o.Raw, "raw", false, "sum the counters of hosts, even if there are recording rules")
	flags.StringArrayVar(&o.Models, "model-file", nil, "`FILE` or directory of further models (may be repeated)")
	a := &o.Access
	flags.StringVar(&a.User, "user", "", "`NAME` for basic authentication")
	flags.StringVar(&a.PasswordFile, "password-file", "", "`FILE` with the password in its first line")
	flags.StringVar(&a.TokenFile, "bearer-token-file", "", "`FILE` with a bearer token in its first line")
	flags.StringVar(&a.Tenant, "tenant", "", "`ID` for the header X-Scope-OrgID of Mimir, Cortex and Thanos")
	flags.StringVar(&a.CAFile, "ca-file", "", "`FILE` of certificates to trust instead of the system's")
	flags.StringVar(&a.CertFile, "cert-file", "", "`FILE` with the client's certificate")
	flags.StringVar(&a.KeyFile, "key-file", "", "`FILE` with its key")
	flags.BoolVar(&a.Insecure, "insecure", false, "do not check the store's certificate")
	flags.DurationVar(&a.Timeout, "timeout", 2*time.Minute, "`TIME` for each answer")
	return cmd
}

// runFleet asks the store and prints what follows.
func runFleet(ctx context.Context, k *cli.Kit, f *cli.Flags, o fleet.Options) error {
	var n atomic.Int32
	o.Access.Answered = func() { n.Add(1) }
	line := progress.On(k.Err, func(time.Duration) string { return fmt.Sprintf("%d answers of the store", n.Load()) })
	o.Say, o.Next = cli.Spelled, narrower
	document, err := fleet.Run(ctx, o)
	line.End()
	if err != nil {
		return err
	}
	r := f.Report()
	if r.All = o.All; o.All {
		r.Lines = 0
	}
	err = f.Write(func(w io.Writer) error { return report.Write(w, f.Format(), document, r) })
	if c, ok := document.(*fleet.Comparison); ok && err == nil && c.Broken != "" {
		return fault.Nof("--fail-on: %s", c.Broken)
	}
	return err
}

// narrower is the command that asks a store for the hosts with some labels.
func narrower(store string, where []string) []string {
	words := []string{"cyclestack", "fleet", "--prom", store}
	for _, label := range where {
		words = append(words, "--where", label)
	}
	return words
}
