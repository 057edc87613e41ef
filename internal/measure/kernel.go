package measure

import (
	"context"
	"io/fs"
	"os"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// A Kernel is the operating system of a machine, as far as counting goes. Tests put
// another one in its place.
type Kernel struct {
	Root  fs.FS
	Start func(context.Context, *perfevent.System, perfevent.Spec) (Counters, error)
	Probe func(*perfevent.System, fs.FS) *perfevent.Probe
	Limit func(*perfevent.System, fs.FS) *perfevent.Probe // what is needed to count
	Cache func() (string, error)                          // the user's directory of files that can be deleted; nil for none
	// Listens says that Root is the kernel of this process, which can be asked about
	// threads that end.
	Listens bool
}

// Counters are counters that run: see [perfevent.Run].
type Counters interface {
	Next() bool
	Table() *counts.Table
	Kind() string
	Err() error
	Stop()
	Signal(os.Signal) error
	State() *os.ProcessState
	Close() error
}

// ThisKernel returns the kernel that the process runs on.
func ThisKernel() Kernel {
	return Kernel{
		Root: os.DirFS("/"),
		Start: func(ctx context.Context, sys *perfevent.System, spec perfevent.Spec) (Counters, error) {
			r, err := perfevent.Start(ctx, sys, spec)
			if err != nil {
				return nil, err
			}
			return r, nil
		},
		Probe:   (*perfevent.System).Probe,
		Limit:   (*perfevent.System).Limits,
		Cache:   os.UserCacheDir,
		Listens: true,
	}
}

// Machine probes the machine for all that can be counted.
func (k Kernel) Machine() (*Machine, error) { return k.machine(perfevent.ReadSystem, k.Probe) }

// machine describes the machine, as far as read and look find out.
func (k Kernel) machine(read func(fs.FS) (*perfevent.System, error), look func(*perfevent.System, fs.FS) *perfevent.Probe) (*Machine, error) {
	sys, err := read(k.Root)
	if err != nil {
		return nil, fault.As(fault.Machine, err)
	}
	return &Machine{Root: k.Root, Sys: sys, Probe: look(sys, k.Root)}, nil
}
