package measure

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/internal/source/hostinfo"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// A Machine is what there is to count with.
type Machine struct {
	Root  fs.FS
	Sys   *perfevent.System
	Probe *perfevent.Probe
}

// A CoreType is one kind of the machine's cores: all of them, unless it is a
// hybrid.
type CoreType struct {
	CPU  *model.CPU
	PMU  *perfevent.PMU
	Note string // what was assumed
}

// CoreTypes returns the kinds of cores that can be counted, each with its
// processor of the catalogue; it is empty if there is no PMU. query names a
// processor; "" is the machine's own.
func (m *Machine) CoreTypes(cat *model.Catalogue, query string) ([]CoreType, error) {
	cores := m.Sys.Core()
	if len(cores) == 0 {
		return nil, nil
	}
	if query == "" {
		if types := m.byMIDR(cat, cores); len(types) > 0 {
			return types, nil
		}
		id, err := model.HostID(m.Root)
		if err != nil {
			return unknown(cat, cores[0], err)
		}
		query = id
		if _, err := Named(cat, query); err != nil {
			return unknown(cat, cores[0], err)
		}
	}
	cpus, err := Named(cat, query)
	if err != nil {
		return nil, err
	}
	if types := matchPMUs(cpus, cores); len(types) > 0 {
		return types, nil
	}
	return []CoreType{{CPU: cpus[0], PMU: cores[0]}}, nil
}

// Named returns the processor of a name or identification, or those of all core
// types of a hybrid one.
func Named(cat *model.Catalogue, query string) ([]*model.CPU, error) {
	cpu, err := cat.CPU(query)
	var hybrid *model.CoreTypeError
	switch {
	case err == nil:
		return []*model.CPU{cpu}, nil
	case !errors.As(err, &hybrid) || len(hybrid.Choices) == 0:
		return nil, err
	}
	var all []*model.CPU
	for _, choice := range hybrid.Choices {
		if cpu, err = cat.CPU(choice); err != nil {
			return nil, err
		}
		all = append(all, cpu)
	}
	return all, nil
}

// matchPMUs pairs processors with the kernel's PMUs by the names that these
// have there, in the order of the processors.
func matchPMUs(cpus []*model.CPU, cores []*perfevent.PMU) []CoreType {
	var types []CoreType
	for _, cpu := range cpus {
		for _, pmu := range cores {
			if slices.ContainsFunc(cpu.PMUs, func(pattern string) bool { ok, _ := path.Match(pattern, pmu.Name); return ok }) {
				types = append(types, CoreType{CPU: cpu, PMU: pmu})
				break
			}
		}
	}
	return types
}

// byMIDR returns the core types of an Arm machine with several: Linux has a PMU
// for each, and the identification of each CPU. It is nil for any other.
func (m *Machine) byMIDR(cat *model.Catalogue, cores []*perfevent.PMU) []CoreType {
	if len(cores) < 2 {
		return nil
	}
	var types []CoreType
	for _, pmu := range cores {
		if len(pmu.CPUs) == 0 {
			return nil
		}
		file := fmt.Sprintf("sys/devices/system/cpu/cpu%d/regs/identification/midr_el1", pmu.CPUs[0])
		midr, err := fs.ReadFile(m.Root, file)
		if err != nil {
			return nil
		}
		cpu, err := cat.CPU(strings.TrimSpace(string(midr)))
		if err != nil {
			generic, _ := unknown(cat, pmu, err)
			types = append(types, generic...)
			continue
		}
		types = append(types, CoreType{CPU: cpu, PMU: pmu})
	}
	return types
}

// unknown is the core type of a processor that the catalogue does not have: it
// is counted by the events that the kernel defines for any.
func unknown(cat *model.Catalogue, pmu *perfevent.PMU, why error) ([]CoreType, error) {
	cpu, err := cat.CPU(resolve.GenericCPU)
	if err != nil {
		return nil, err
	}
	text := why.Error()
	var none *model.UnknownCPUError
	if errors.As(why, &none) {
		text = fmt.Sprintf("the catalogue does not have this processor (%s)", none.Query)
	}
	return []CoreType{{cpu, pmu, "the kernel's generic events were counted, as " + text}}, nil
}

// NoPMU says why there is no core PMU, "" if there is one.
func (m *Machine) NoPMU() string {
	if len(m.Sys.Core()) > 0 {
		return ""
	}
	switch h := cmp.Or(m.Probe.Hypervisor, hostinfo.Hypervisor(m.Root)); h {
	case "":
		return "the kernel shows no core PMU"
	case "unknown":
		return "this virtual machine has no core PMU"
	default:
		return fmt.Sprintf("this virtual machine (%s) has no core PMU", h)
	}
}

// HalfCores is the assumption of values about whole cores if one logical processor of each was
// counted, and others run: a note of an account. Those that would be reliable otherwise have
// account.DoubtCore.
var HalfCores = counts.Note{Kind: "half-cores", Text: "the other logical processor of each core is taken to have been as busy",
	Fix: counts.Fix{Action: counts.CountWholeCores}}

// AboutCore reports whether a node's value is about a whole core: its events count for
// all logical processors of it.
func AboutCore(n *model.Node) bool { return n.Domain == "core" }

// Values of perf_event_paranoid, see Documentation/admin-guide/sysctl/kernel.rst
// of Linux: what those without CAP_PERFMON may not do from that value on.
const (
	ParanoidCPUs   = 1 // count CPUs
	ParanoidKernel = 2 // count in the kernel
	ParanoidAll    = 3 // count at all (Debian, Android)
)

// UserOnly reports whether the kernel lets this user count user mode only.
func (m *Machine) UserOnly() bool {
	return m.Probe.Paranoid >= ParanoidKernel && !m.Probe.CapPerfmon
}

// usualSlot is how long a group stays on the counters in multiplexing, unless the PMU says
// otherwise: PERF_CPU_HRTIMER in Linux's kernel/events/core.c.
const usualSlot = 4 * time.Millisecond

// Slot returns how long a PMU's groups stay on the counters in multiplexing.
func (m *Machine) Slot(pmu *perfevent.PMU) time.Duration {
	text, err := fs.ReadFile(m.Root, "sys/bus/event_source/devices/"+pmu.Name+"/perf_event_mux_interval_ms")
	if err != nil {
		return usualSlot
	}
	ms, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || ms <= 0 || ms > 10_000 {
		return usualSlot
	}
	return time.Duration(ms) * time.Millisecond
}

// Bounds on how often multiplexed groups are read. Errors are estimated from the
// differences between readings.
const (
	leastInterval = 20 * time.Millisecond
	mostReads     = 5000 // in a second
)

// Interval returns how often to read multiplexed groups to estimate errors: after at least two
// whole rotations, so that the order of groups can be varied. With more than four groups a
// variation lasts longer, and neighbouring intervals err together. It is 0 for a single group.
// groups share the counters of a PMU for slots of so long; all are the groups of all PMUs.
// Readers are the processors where they are opened.
func Interval(groups, all, readers int, slot time.Duration) time.Duration {
	if groups < 2 {
		return 0
	}
	rotation := time.Duration(groups) * slot
	whole := 2
	if groups > 4 {
		whole = 4
	}
	least := max(leastInterval, time.Duration(whole)*rotation, time.Duration(all*max(1, readers))*time.Second/mostReads)
	return (least + rotation - 1) / rotation * rotation
}
