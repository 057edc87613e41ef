package measure

import (
	"io/fs"
	"strings"

	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/plan"
)

// An Offline says what a plan is for that nothing is counted by now. A processor that is not
// named is the machine's, with its settings.
type Offline struct {
	Choice   resolve.Choice
	All      bool   // also nodes outside the main tree
	Set      string // of events, instead of nodes
	Counters int    // general ones that are free; 0 is all
	// Watchdog and Errata are nil for the machine's settings.
	Watchdog, Errata *bool
	// Commands says that perf will count by the plan. Linux's workarounds for errata then
	// hold on any machine.
	Commands bool
}

// Plan makes a plan without counting.
func (k Kernel) Plan(o Offline) (*plan.Plan, error) {
	cat, err := o.Choice.Catalogue()
	if err != nil {
		return nil, err
	}
	cpu, err := k.cpu(cat, o.Choice.CPU)
	if err != nil {
		return nil, err
	}
	m, err := cat.Model(o.Choice.Model, cpu.Name)
	if err != nil {
		return nil, fault.As(fault.Usage, err)
	}
	events, err := cat.Events(cpu)
	if err != nil {
		return nil, err
	}
	here := o.Choice.CPU == ""
	opt := plan.Options{Level: o.Choice.Level, Set: o.Set, Counters: o.Counters,
		SMT:      o.Choice.SMT == "on" || o.Choice.SMT == "" && here && k.isOn("sys/devices/system/cpu/smt/active"),
		Watchdog: here && k.isOn("proc/sys/kernel/nmi_watchdog"), Errata: here || o.Commands}
	if o.Watchdog != nil {
		opt.Watchdog = *o.Watchdog
	}
	if o.Errata != nil {
		opt.Errata = *o.Errata
	}
	if o.Choice.Nodes != "" || o.All {
		if opt.Nodes, err = m.Choose(o.Choice.Nodes, o.Choice.Level, o.All); err != nil {
			return nil, &fault.OptionError{Option: "nodes", Err: err}
		}
	}
	p, err := plan.New(m, events, opt)
	return p, fault.As(fault.Usage, err)
}

// cpu returns the processor of a name, or the machine's for "".
func (k Kernel) cpu(cat *model.Catalogue, name string) (*model.CPU, error) {
	if name != "" {
		cpu, err := cat.CPU(name)
		if err != nil {
			return nil, &fault.OptionError{Option: "cpu", Err: err}
		}
		return cpu, nil
	}
	id, err := model.HostID(k.Root)
	if err != nil {
		return nil, &fault.Error{Kind: fault.Machine, Err: err}
	}
	cpu, err := cat.CPU(id)
	if err != nil {
		return nil, fault.Usagef("add %s NAME: this machine's %s: %w", fault.Name("cpu"), id, err)
	}
	return cpu, nil
}

// isOn reports whether a file of the kernel says that something is on.
func (k Kernel) isOn(name string) bool {
	text, err := fs.ReadFile(k.Root, name)
	return err == nil && strings.TrimSpace(string(text)) == "1"
}
