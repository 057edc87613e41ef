// Package doctor examines what can be counted on this machine. The result is data: what
// was found, what would change it, and what works as things are.
package doctor

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/internal/simulation"
	"github.com/cyclestack/cyclestack/internal/source/hostinfo"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/plan"
)

// A Diagnosis is what an examination found. Its JSON is its fields.
type Diagnosis struct {
	Schema   string    `json:"schema"`
	Cycles   bool      `json:"cycles"` // can be counted
	CPU      string    `json:"cpu,omitempty"`
	Findings []Finding `json:"findings"`
	Works    []Finding `json:"works"` // commands, as things are
}

// A Finding is one thing that was examined.
type Finding struct {
	Name  string   `json:"name"`
	State State    `json:"state"`
	Text  string   `json:"text"`
	Mend  []string `json:"mend,omitempty"`  // what would change it: commands, the best first
	Minor bool     `json:"minor,omitempty"` // it is as usual, and not worth a line
}

// State says how things stand with a finding.
type State string

const (
	Good State = "yes"
	Bad  State = "no"
	Fair State = "note" // it works, but not as well as it could, or is good to know
)

// Commands are what findings advise to run, as the caller spells it.
type Commands struct {
	NameProcessor string // name a processor that the catalogue has
	Elsewhere     string // record on another machine
	WholeCores    string // count both logical processors of each core
	NoTopDown     string // use a method without top-down events
	Simulate      string // simulate a program
}

// An examination gathers a diagnosis.
type examination struct {
	*measure.Machine
	cat *model.Catalogue
	*Diagnosis
	commands Commands
	types    []measure.CoreType
}

// Examine examines a machine with the processors and methods of a catalogue.
func Examine(m *measure.Machine, cat *model.Catalogue, c Commands) *Diagnosis {
	x := &examination{Machine: m, cat: cat, commands: c, Diagnosis: &Diagnosis{Schema: "cyclestack.doctor/v1"}}
	x.processor()
	x.counters()
	x.permission()
	x.refusals()
	x.sandbox()
	x.watchdog()
	x.holders()
	x.logicalProcessors()
	x.slots()
	x.otherPMUs()
	x.cgroups()
	x.limits()
	x.symbols()
	x.simulator()
	x.works()
	return x.Diagnosis
}

func (x *examination) find(name string, state State, text string, mend ...string) {
	x.Findings = append(x.Findings, Finding{Name: name, State: state, Text: text, Mend: mend})
}

// minor is find for what is as usual.
func (x *examination) minor(name, text string) {
	x.Findings = append(x.Findings, Finding{Name: name, State: Good, Text: text, Minor: true})
}

func (x *examination) processor() {
	id, err := model.HostID(x.Root)
	if err != nil {
		x.find("processor", Fair, err.Error())
		return
	}
	x.CPU = id
	cpus, err := measure.Named(x.cat, id)
	if err != nil {
		x.find("processor", Fair, fmt.Sprintf("the catalogue does not have %s", id), x.commands.NameProcessor)
		return
	}
	var methods []string
	for _, cpu := range cpus {
		for _, info := range x.cat.Models(cpu.Name) {
			if !slices.Contains(methods, info.Name) {
				methods = append(methods, info.Name)
			}
		}
	}
	title, _, _ := strings.Cut(cpus[0].Title, " (")
	text := fmt.Sprintf("%s, %s: %s", title, cpus[0].Name, strings.Join(methods, ", "))
	if len(methods) == 0 {
		text = fmt.Sprintf("%s, %s; no method for it", title, cpus[0].Name)
	}
	x.find("processor", Good, text)
}

// counters reports the counters of each type of core.
func (x *examination) counters() {
	if x.NoPMU() != "" {
		x.find("counters", Bad, x.NoPMU(), x.pmuAdvice()...)
		return
	}
	x.types, _ = x.CoreTypes(x.cat, "")
	for _, pmu := range x.Sys.Core() {
		text := pmu.Name
		if known := x.known(pmu.Name); known > 0 {
			text += fmt.Sprintf(": %d of %d general counters at one time", min(x.Probe.Counters, known), known)
		} else {
			text += fmt.Sprintf(": %d general counters at one time", x.Probe.Counters)
		}
		if len(x.Sys.Core()) > 1 {
			text += fmt.Sprintf(", on %d CPUs", len(pmu.CPUs))
		}
		state := Good
		switch {
		case x.Probe.Counters == 0:
			state = Bad
		case x.known(pmu.Name) > x.Probe.Counters:
			state = Fair
		}
		x.find("counters", state, text)
	}
	x.Cycles = x.Probe.Counters > 0
}

// known returns how many general counters the processor of a PMU has; 0 if that is not
// known.
func (x *examination) known(name string) int {
	for _, t := range x.types {
		if t.PMU.Name != name || t.CPU.Name == resolve.GenericCPU {
			continue
		}
		m, err := x.cat.Model("", t.CPU.Name)
		if err != nil {
			return 0
		}
		events, err := x.cat.Events(t.CPU)
		if err != nil {
			return 0
		}
		if p, err := plan.New(m, events, plan.Options{Level: 1, SMT: x.Probe.SMT}); err == nil {
			return p.GeneralCounters()
		}
	}
	return 0
}

// pmuAdvice says how to give a machine a PMU.
func (x *examination) pmuAdvice() []string {
	elsewhere := x.commands.Elsewhere
	switch h := strings.ToLower(x.Probe.Hypervisor); {
	case h == "":
		return []string{"dmesg | grep -i -e perf -e pmu    says why the kernel found none; the firmware may have switched it off", elsewhere}
	case strings.Contains(h, "vmware"):
		return []string{`vpmc.enable = "TRUE" in the machine's .vmx file, with the machine off`, elsewhere}
	case strings.Contains(h, "hyper-v"), strings.Contains(h, "microsoft"):
		return []string{`Set-VMProcessor NAME -Perfmon @("pmu")    on the host, with the machine off`, elsewhere}
	case strings.Contains(h, "xen"):
		return []string{"vpmu=1 on the command line of Xen", elsewhere}
	}
	return []string{
		"on the host: qemu -cpu host,pmu=on",
		"or libvirt's <cpu mode='host-passthrough'/> and <pmu state='on'/>; cat /sys/module/kvm/parameters/enable_pmu must say Y",
		"in a cloud: an instance of a whole socket, or of bare metal",
		elsewhere,
	}
}

// permission reports what this user may count.
func (x *examination) permission() {
	level := x.Probe.Paranoid
	open := "sudo sysctl kernel.perf_event_paranoid=0"
	grant := "sudo setcap cap_perfmon,cap_sys_ptrace=ep " + own()
	switch {
	case x.Probe.CapPerfmon:
		x.find("permission", Good, "everything may be counted: root or CAP_PERFMON")
	case level >= measure.ParanoidAll:
		x.find("permission", Bad, fmt.Sprintf("perf_event_paranoid is %d: nothing may be counted without CAP_PERFMON", level), open, "or "+grant)
	case level >= measure.ParanoidKernel:
		x.find("permission", Fair, fmt.Sprintf("perf_event_paranoid is %d: own programs in user mode only, not the kernel and not the machine (-a, -C, -G)", level), open, "or "+grant)
	case level >= measure.ParanoidCPUs:
		x.find("permission", Fair, fmt.Sprintf("perf_event_paranoid is %d: own programs and what the kernel does for them, not the machine (-a, -C, -G)", level), open, "or "+grant)
	default:
		x.find("permission", Good, fmt.Sprintf("perf_event_paranoid is %d: programs and the machine may be counted", level))
	}
}

// expected returns how many scopes the permissions refuse. Three were tried: the own
// program in user mode, the same with the kernel, and the machine.
func (x *examination) expected() int {
	switch level := x.Probe.Paranoid; {
	case x.Probe.CapPerfmon || level < measure.ParanoidCPUs:
		return 0
	case level < measure.ParanoidKernel:
		return 1
	case level < measure.ParanoidAll:
		return 2
	}
	return 3
}

// refusals reports what the kernel refuses although its permissions allow it.
func (x *examination) refusals() {
	if n := len(x.Probe.Errors); n > x.expected() {
		x.find("counting", Bad, x.Probe.Errors[0].Error())
		x.Cycles = false
	}
}

// own returns the path of this program.
func own() string {
	if exe, err := os.Executable(); err == nil {
		return exe
	}
	return "cyclestack"
}

// sandbox reports a container or a filter of system calls that may be in the way.
func (x *examination) sandbox() {
	filtered := x.Probe.Seccomp
	container := x.container()
	allow := []string{"docker run --cap-add PERFMON --security-opt seccomp=unconfined …, or a profile that allows perf_event_open"}
	switch {
	case x.Probe.UserNamespace:
		x.find("container", Fair, "a user namespace: its root may not use the kernel's counters", "start it outside of the namespace, or as root outside: sysctl kernel.perf_event_paranoid=0")
	case filtered && container != "":
		x.find("container", Fair, container+", with a filter of system calls (seccomp), which may refuse perf_event_open", allow...)
	case filtered:
		x.find("container", Fair, "a filter of system calls (seccomp) is in place, which may refuse perf_event_open", "start it outside of the sandbox")
	case container != "":
		x.minor("container", container+"; system calls are not filtered")
	}
}

// container names the container that this process runs in; "" if there is no sign of one.
// The file system of a virtual machine may have been made from a container's image, with
// its marker. In a container some files of /etc are mounts.
func (x *examination) container() string {
	mounts := x.read("proc/self/mountinfo")
	if !strings.Contains(mounts, " /etc/hostname ") && !strings.Contains(mounts, " /etc/resolv.conf ") {
		return ""
	}
	for _, c := range []struct{ file, name string }{{".dockerenv", "a Docker container"}, {"run/.containerenv", "a Podman container"}} {
		if _, err := fs.Stat(x.Root, c.file); err == nil {
			return c.name
		}
	}
	if text := x.read("proc/1/cgroup"); strings.Contains(text, "/kubepods") {
		return "a Kubernetes container"
	}
	return ""
}

// read returns what a file says, "" if it does not exist.
func (x *examination) read(file string) string {
	const most = 1 << 20
	f, err := x.Root.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	// In one piece: the kernel ends the file of a setting after the first read.
	b := make([]byte, most)
	n := 0
	for n < most {
		more, err := f.Read(b[n:])
		if n += more; err != nil || more == 0 {
			break
		}
	}
	return strings.TrimSpace(string(b[:n]))
}

func (x *examination) watchdog() {
	if x.NoPMU() != "" {
		return
	}
	holds := func(t measure.CoreType) bool {
		pmu, err := plan.PMUOf(t.CPU)
		return err == nil && (pmu.Watchdog != "" || t.CPU.Name == resolve.GenericCPU)
	}
	switch {
	case x.Probe.Watchdog && !slices.ContainsFunc(x.types, holds):
		x.minor("watchdog", "the NMI watchdog is on, and holds no counter of this processor")
	case x.Probe.Watchdog:
		x.find("watchdog", Fair, "the NMI watchdog holds a counter on every CPU; plans leave it to it", "sudo sysctl kernel.nmi_watchdog=0")
	default:
		x.minor("watchdog", "the NMI watchdog is off and holds no counter")
	}
}

func (x *examination) holders() {
	if list := hostinfo.CounterHolders(x.Root); len(list) > 0 {
		x.find("others", Fair, "others hold counters: "+strings.Join(list, ", "), "end them, or count longer: the counters are multiplexed")
	}
}

func (x *examination) logicalProcessors() {
	n := len(x.Sys.CPUs)
	switch {
	case x.Probe.SMT:
		x.find("smt", Fair, fmt.Sprintf("%d logical processors, which share cores: nodes about whole cores need both counted", n), x.commands.WholeCores)
	case n > 0:
		x.minor("smt", fmt.Sprintf("%d logical processors, each a core of its own", n))
	}
	if len(x.types) > 1 {
		var names []string
		for _, t := range x.types {
			names = append(names, t.CPU.Name)
		}
		x.find("hybrid", Good, "cores of several types, each with an account of its own: "+strings.Join(names, ", "))
	}
}

func (x *examination) slots() {
	pmu := x.Sys.Core()
	if len(pmu) == 0 || pmu[0].Aliases["slots"] == "" {
		return
	}
	if x.Probe.Slots {
		x.minor("topdown", "PERF_METRICS: the first levels of top-down analysis need no multiplexing")
		return
	}
	x.find("topdown", Bad, "the kernel knows slots and the parts of PERF_METRICS, but does not open them as a group",
		x.commands.NoTopDown)
}

// otherPMUs lists the PMUs outside of the cores, those of one kind together.
func (x *examination) otherPMUs() {
	var kinds []string
	for _, pmu := range x.Sys.PMUs {
		kind := strings.TrimRight(pmu.Name, "0123456789")
		kind = strings.TrimSuffix(kind, "_")
		if !slices.Contains(x.Sys.Core(), pmu) && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) > 0 {
		x.minor("other pmus", strings.Join(kinds, ", "))
	}
}

func (x *examination) cgroups() {
	switch {
	case x.exists("sys/fs/cgroup/cgroup.controllers"):
		x.find("cgroups", Good, "stat -G GROUP, below /sys/fs/cgroup (version 2)")
	case x.exists("sys/fs/cgroup/perf_event"):
		x.find("cgroups", Good, "stat -G GROUP, below /sys/fs/cgroup/perf_event (version 1)")
	case x.exists("sys/fs/cgroup/unified/cgroup.controllers"):
		x.find("cgroups", Good, "stat -G GROUP, below /sys/fs/cgroup/unified (version 2)")
	default:
		x.find("cgroups", Bad, "no cgroups that can be counted", "sudo mount -t cgroup2 none /sys/fs/cgroup, or boot with systemd.unified_cgroup_hierarchy=1")
	}
}

func (x *examination) exists(file string) bool {
	_, err := fs.Stat(x.Root, file)
	return err == nil
}

// limits reports the limit of open files: each event is one file per CPU.
func (x *examination) limits() {
	files := x.openFiles()
	cpus := max(1, len(x.Sys.CPUs))
	if files <= 0 {
		return
	}
	const manyEvents = 100 // those of a whole tree
	if each := files / cpus; each < manyEvents {
		x.find("open files", Fair, fmt.Sprintf("%d may be open, which is %d events on each of %d CPUs", files, each, cpus),
			fmt.Sprintf("ulimit -n %d", 2*manyEvents*cpus))
		return
	}
	x.minor("open files", fmt.Sprintf("%d may be open", files))
}

// openFiles returns how many files the process may have open; 0 if that is not known.
func (x *examination) openFiles() int {
	for line := range strings.Lines(x.read("proc/self/limits")) {
		if rest, ok := strings.CutPrefix(line, "Max open files"); ok {
			if fields := strings.Fields(rest); len(fields) > 0 {
				n, err := strconv.Atoi(fields[0])
				if err == nil {
					return n
				}
			}
		}
	}
	return 0
}

// symbols reports what limits recordings: names of kernel functions and room for samples.
func (x *examination) symbols() {
	switch x.read("proc/sys/kernel/kptr_restrict") {
	case "0", "":
	case "1":
		if !x.Probe.CapPerfmon {
			x.find("symbols", Fair, "kptr_restrict is 1: addresses in the kernel have no names", "sudo sysctl kernel.kptr_restrict=0")
		}
	default:
		x.find("symbols", Fair, "kptr_restrict hides where the kernel's functions are: addresses in it have no names", "sudo sysctl kernel.kptr_restrict=0")
	}
	if kb, err := strconv.Atoi(x.read("proc/sys/kernel/perf_event_mlock_kb")); err == nil {
		const usual = 516 // the kernel's default: 512 KiB and a page
		text := fmt.Sprintf("%d KiB for samples of each CPU without privileges", kb)
		if kb < usual {
			x.find("buffers", Fair, text, fmt.Sprintf("sudo sysctl kernel.perf_event_mlock_kb=%d", usual))
		} else {
			x.minor("buffers", text)
		}
	}
}

// simulator reports whether programs can be simulated.
func (x *examination) simulator() {
	if err := simulation.Installed(); err != nil {
		x.find("simulation", Fair, err.Error()+"; either simulates programs where their cycles cannot be counted", "sudo apt-get install qemu-user gcc")
		return
	}
	if why := simulation.Missing(simulation.QEMU); why != nil {
		x.find("simulation", Fair, why.Error()+": valgrind simulates, which is slower", "sudo apt-get install qemu-user gcc")
		return
	}
	x.find("simulation", Good, "QEMU's user mode emulation: "+x.commands.Simulate)
}

// works reports what the commands that count can do as things are.
func (x *examination) works() {
	refused := max(len(x.Probe.Errors), x.expected())
	whole, allowed := refused == 0, refused < 3
	minor := false
	can := func(command string, state State, text string) {
		x.Works = append(x.Works, Finding{Name: command, State: state, Text: text, Minor: minor})
	}
	simulates := simulation.Installed() == nil
	switch {
	case x.Cycles && allowed && x.UserOnly():
		can("stat", Good, "by the processor's counters, in user mode")
	case x.Cycles && allowed:
		can("stat", Good, "by the processor's counters")
	case simulates:
		can("stat", Good, "times of threads and samples by the clock")
	case allowed:
		can("stat", Good, "times of threads, page faults, switches")
	default:
		can("stat", Good, "what /proc tells: what threads do with their time")
	}
	switch {
	case x.Cycles && allowed:
		can("record", Good, "samples by the processor's counters")
	case allowed:
		can("record", Good, "samples by the clock: where the time goes")
	default:
		can("record", Bad, "nothing may be sampled")
	}
	switch {
	case x.Cycles && whole:
		can("stat -a", Good, "by the processor's counters")
	case whole:
		can("stat -a", Good, "by the operating system's counters")
	default:
		can("stat -a", Bad, "the machine may not be counted")
	}
	minor = true
	switch {
	case !x.Probe.SMT:
		can("smt -a", Bad, "no two logical processors share a core")
	case x.Cycles && whole:
		can("smt -a", Good, "by the processor's counters")
	default:
		can("smt -a", Bad, "it needs the processor's counters, on all CPUs")
	}
	can("report", Good, "recordings from anywhere")
}
