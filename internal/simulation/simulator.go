package simulation

import (
	"errors"
	"time"

	"github.com/cyclestack/cyclestack/internal/simulation/internal/emulator"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/timing"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/valgrind"
)

// A Simulator executes programs.
type Simulator string

// The simulators. QEMU is faster, knows addresses, and follows the whole run in one pass.
// Valgrind needs no compiler.
const (
	QEMU     Simulator = "qemu"
	Valgrind Simulator = "valgrind"
)

// Simulators are all of them.
var Simulators = []Simulator{QEMU, Valgrind}

// ErrNotInstalled says that there is no simulator.
var ErrNotInstalled = errors.New("neither QEMU's user mode emulation nor valgrind is installed: apt-get install qemu-user gcc")

// Installed returns an error if there is no simulator to run programs with.
func Installed() error {
	if Missing(QEMU) == nil || Missing(Valgrind) == nil {
		return nil
	}
	return ErrNotInstalled
}

// Missing returns what a simulator lacks to run programs of this machine; nil if it is there.
func Missing(s Simulator) error {
	if s == QEMU {
		return emulator.Available(emulator.HostTarget())
	}
	return valgrind.Installed()
}

// Ready returns an error if no program can be simulated, whichever it is: there is no
// simulator, or no directory for temporary files.
func Ready() error {
	if err := Installed(); err != nil {
		return err
	}
	return valgrind.Scratch()
}

// A Plan is how a program is simulated.
type Plan struct {
	Simulator Simulator
	Times     int           // that the program runs
	Takes     time.Duration // of processor time
}

// PlanOf predicts how [Run] simulates a program of some native processor time, with or without
// a core's model.
func PlanOf(program string, s Simulator, cpu time.Duration, core *Core) Plan {
	target, err := emulator.TargetOf(program)
	if s != Valgrind && err == nil && emulator.Available(target) == nil {
		return Plan{QEMU, 1, emulator.Takes(cpu, core != nil)}
	}
	p := Plan{Valgrind, 1, valgrind.Takes(cpu)}
	if core != nil {
		p.Times, p.Takes = 2, p.Takes+timing.Takes(cpu, tracedBlocks)
	}
	return p
}
