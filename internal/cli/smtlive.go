package cli

import (
	"context"
	"errors"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/measure"
)

// runLiveSMT counts this machine's cores: as long as the program runs, or until a signal
// comes.
func (a *app) runLiveSMT(ctx context.Context, c *common, f *statFlags, siblings string, program []string) error {
	if siblings != "" {
		return usageError("--siblings is for recordings: this machine says which logical processors share a core")
	}
	target := *f
	target.all = f.all || f.cpus == "" // what a core does is more than what a program does
	f = &target
	if err := f.check(c, program); err != nil {
		return err
	}
	if _, err := parseBy(c.by); err != nil {
		return err
	}
	by := counts.By(0).With(counts.CPU)
	if f.interval > 0 {
		by = by.With(counts.Interval)
	}
	l := &meter{app: a, c: c, f: f, program: program, stream: a.out,
		options: measure.Options{Choice: c.choice(), Source: measure.PMU, By: by, Cores: true}}
	defer func() { l.intervals.End() }()
	if err := l.prepare(); err != nil {
		return err
	}
	err := l.count(ctx)
	if option := (*fault.OptionError)(nil); errors.As(err, &option) && option.Option == "cpu-list" {
		return usageError("-C %s: %v", f.cpus, option.Err)
	}
	return err
}
