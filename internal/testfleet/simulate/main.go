// Command simulate writes a fleet with a known truth into a Prometheus. It measures what that
// takes, and what the command fleet takes:
//
//	go run ./internal/testfleet/simulate --hosts 10000 --services 50
//
// The Prometheus is started on the loopback interface in a temporary directory, and ended at
// the end. The minutes of the fleet pass as fast as it can take them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/cyclestack/cyclestack/internal/testfleet"
	"github.com/cyclestack/cyclestack/internal/testfleet/trial"
)

func main() {
	o := trial.Options{Fleet: testfleet.Fleet{Spread: 0.05, Seed: 1, CanaryEvery: 20, LostEvery: 5000}}
	flag.IntVar(&o.Fleet.Hosts, "hosts", 10000, "hosts")
	flag.IntVar(&o.Fleet.Services, "services", 50, "services on each host")
	flag.IntVar(&o.Fleet.Levels, "levels", 1, "levels of the tree that services export: 1 or 2")
	flag.Float64Var(&o.Fleet.Worse, "worse", 0.03, "how much more a canary loses in one node of one service")
	flag.IntVar(&o.Fleet.WorseService, "worse-service", 7, "the service")
	flag.IntVar(&o.Minutes, "minutes", 5, "minutes that are written, a scrape in each")
	flag.StringVar(&o.Rules, "rules", "deploy/prometheus/cyclestack.rules.yml", "recording rules; without them the counters answer")
	flag.BoolVar(&o.Fleet.New, "new", false, "all exporters began with the first minute; else they have counted for hours or weeks")
	keep := flag.Bool("keep", false, "the store goes on until Ctrl-C")
	flag.Parse()
	if *keep {
		o.Then = func(ctx context.Context, s *testfleet.Server, at time.Time) error {
			fmt.Printf("cyclestack fleet --prom %s --at %d --range %dm\n", s.URL, at.Unix(), o.Minutes-1)
			<-ctx.Done()
			return nil
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := trial.Run(ctx, o, os.Stdout); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "simulate:", err)
		os.Exit(1)
	}
}
