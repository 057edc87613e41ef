package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/cyclestack/cyclestack/internal/amount"
	"github.com/cyclestack/cyclestack/internal/penalties"
	"github.com/cyclestack/cyclestack/internal/progress"
	"github.com/cyclestack/cyclestack/internal/render"
	"github.com/cyclestack/cyclestack/internal/resolve"

	"github.com/spf13/cobra"

	"github.com/cyclestack/cyclestack/internal/calibrate"
	"github.com/cyclestack/cyclestack/model"
)

// calibrateFlags are the flags of calibrate alone.
type calibrateFlags struct {
	quick   bool
	logical int
	size    string
	svg     string
	store   string

	realtime bool
}

// The values of --store that are no files.
const (
	storeAuto = "auto"
	storeNone = "none"
)

func (a *app) calibrate() *cobra.Command {
	c, f := &common{}, &calibrateFlags{}
	cmd := &cobra.Command{
		Use:     "calibrate [FILE]",
		GroupID: "account",
		Short:   "Measure what cache misses, branches and the like cost here",
		Long: `calibrate measures penalties on this machine: the clock of the core, the latency
of caches and memory, page walks, mispredicted branches and blocked store forwarding.
It measures the bandwidth of memory as well. It needs no counters, takes less than
two minutes, and also works on busy machines.

The penalties are stored in ~/.config/cyclestack/penalties-CPU.toml, from where
stat takes them, and report for recordings of this very processor; --penalties
names other files, or none. With a FILE that an earlier 'calibrate --format json' has
written, that is printed again, and nothing is measured.`,
		Example: `  cyclestack calibrate --store here.toml           the penalties in another file
  cyclestack calibrate --quick --format json -o here.json
  cyclestack calibrate examples/calibration-zen4.json
  cyclestack calibrate examples/calibration-zen4.json --format toml`,
		Args: arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.runCalibrate(cmd, c, f, args) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.quick, "quick", false, "a coarser curve and fewer samples, below 15 s; not stored unless --store names a file")
	flags.IntVar(&f.logical, "pin", -1, "logical processor `N` to measure on (default: any)")
	flags.StringVar(&f.size, "max-size", "", "largest working set, `SIZE` in bytes or with K, M, G (default: 512M, quick 128M)")
	flags.BoolVar(&f.realtime, "realtime", false, "run before all other programs on that processor, as root: else caches that these keep refilling do not show")
	flags.StringVar(&f.svg, "svg", "", "draw the curve of latencies into `FILE`")
	flags.StringVar(&f.store, "store", storeAuto, "store the penalties in `FILE`; auto is the usual place, none is nowhere")
	c.addOutput(cmd, "text", "json", "toml")
	return cmd
}

func (a *app) runCalibrate(cmd *cobra.Command, c *common, f *calibrateFlags, args []string) error {
	if err := c.check(); err != nil {
		return err
	}
	size := 0
	if f.size != "" {
		var err error
		if size, _, err = amount.Size(f.size); err != nil {
			return usageError("--max-size %s: %v", f.size, err)
		}
	}
	cat, err := model.Embedded()
	if err != nil {
		return err
	}
	var r *calibrate.Result
	if len(args) == 1 {
		if cmd.Flags().Changed("quick") || cmd.Flags().Changed("pin") || f.size != "" || f.realtime {
			return usageError("%s: what has been measured already takes no --quick, --pin, --max-size or --realtime", args[0])
		}
		r, err = readCalibration(args[0])
	} else {
		r, err = a.measure(cmd, f, size)
	}
	if err != nil {
		return err
	}
	if f.svg != "" {
		to := *c
		to.output, to.format = f.svg, "svg"
		if err := a.document(&to, render.Calibration{Result: r}, args...); err != nil {
			return err
		}
	}
	wanted := resolve.Wanted(cat, r.CPU)
	if err := a.storePenalties(c, f, r, len(args) == 1, wanted); err != nil {
		return err
	}
	return a.document(c, render.Calibration{Result: r, Wanted: wanted, Commands: calibrateCommands[r.Quick]}, args...)
}

// calibrateCommands are what measured penalties, quickly or not, and what uses their file.
var calibrateCommands = map[bool][2]string{
	false: {"cyclestack calibrate", "cyclestack report --penalties FILE …"},
	true:  {"cyclestack calibrate --quick", "cyclestack report --penalties FILE …"},
}

func readCalibration(name string) (*calibrate.Result, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, inputError(err)
	}
	defer f.Close()
	r, err := calibrate.Read(f)
	if err != nil {
		return nil, inputError(fmt.Errorf("%s: %w", name, err))
	}
	return r, nil
}

// measure calibrates this machine, and says on a terminal what it is about.
func (a *app) measure(cmd *cobra.Command, f *calibrateFlags, size int) (*calibrate.Result, error) {
	id, err := model.HostID(os.DirFS("/"))
	if err != nil {
		id = "unknown" // what is measured is right all the same
	}
	options := calibrate.Options{Quick: f.quick, Pin: f.logical >= 0, CPU: f.logical, MaxSize: size, Realtime: f.realtime}
	var what atomic.Value
	options.Progress = func(name string) { what.Store("measuring: " + name) }
	line := progress.On(a.err, func(time.Duration) string {
		text, _ := what.Load().(string)
		return text
	})
	defer line.End()
	r, err := calibrate.Run(cmd.Context(), options)
	if err != nil {
		return nil, machineError(err)
	}
	r.CPU = id
	return r, nil
}

// storePenalties writes the file that report takes. What was measured quickly, or
// before, goes only where the user says.
func (a *app) storePenalties(c *common, f *calibrateFlags, r *calibrate.Result, earlier bool, wanted func(penalties.Penalty) bool) error {
	to := *c
	to.output = f.store
	switch {
	case f.store == storeNone, f.store == storeAuto && (r.Quick || earlier):
		return nil
	case f.store == storeAuto:
		place, err := resolve.PenaltiesFile(r.CPU)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(place), 0o777)
		}
		if err != nil {
			return machineError(fmt.Errorf("no place for the penalties: %w: name one with --store", err))
		}
		to.output = place
	}
	to.format = "toml"
	if err := a.document(&to, render.Calibration{Result: r, Wanted: wanted, Commands: calibrateCommands[r.Quick]}); err != nil {
		return err
	}
	fmt.Fprintf(a.err, "penalties stored in %s\n", to.output)
	return nil
}
