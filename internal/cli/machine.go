package cli

import (
	"context"
	"io/fs"
	"os"

	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/source"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// A kernel is the operating system of the machine, as far as counting goes.
// Tests put another one in its place.
type kernel struct {
	root  fs.FS
	start func(context.Context, *perfevent.System, perfevent.Spec) (counting, error)
	probe func(*perfevent.System, fs.FS) *perfevent.Probe
	limit func(*perfevent.System, fs.FS) *perfevent.Probe // what is needed to count
	cache func() (string, error)                          // the user's directory of what can be forgotten; nil for none
	tells bool                                            // of threads that end, if it is asked and the user may: its root is this machine's
}

// A counting is a run of the counters: see perfevent.Run.
type counting interface {
	source.Reader
	Stop()
	Signal(os.Signal) error
	State() *os.ProcessState
	Close() error
}

// thisKernel is the one that the program runs on.
func thisKernel() kernel {
	return kernel{
		root: os.DirFS("/"),
		start: func(ctx context.Context, sys *perfevent.System, spec perfevent.Spec) (counting, error) {
			r, err := perfevent.Start(ctx, sys, spec)
			if err != nil {
				return nil, err
			}
			return r, nil
		},
		probe: (*perfevent.System).Probe,
		limit: (*perfevent.System).Limits,
		cache: os.UserCacheDir,
		tells: true,
	}
}

// machine looks at what there is to count with, by probe or limit.
func (k kernel) machine(look func(*perfevent.System, fs.FS) *perfevent.Probe) (*measure.Machine, error) {
	return k.machineOf(perfevent.ReadSystem, look)
}

// machineOf is machine with another way to read what the kernel says about itself.
func (k kernel) machineOf(read func(fs.FS) (*perfevent.System, error), look func(*perfevent.System, fs.FS) *perfevent.Probe) (*measure.Machine, error) {
	sys, err := read(k.root)
	if err != nil {
		return nil, machineError(err)
	}
	return &measure.Machine{Root: k.root, Sys: sys, Probe: look(sys, k.root)}, nil
}
