package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/cyclestack/cyclestack/internal/live"
	"github.com/cyclestack/cyclestack/internal/simulation"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/plan"
)

func (a *app) doctor() *cobra.Command {
	c := &common{}
	cmd := &cobra.Command{
		Use:     "doctor",
		GroupID: "catalogue",
		Short:   "Say what can be counted here, what cannot, and what would change that",
		Long: `doctor looks at what this machine can count and may count: the processor's
counters, found by opening them, permissions, the watchdog and others who hold
counters, the limits and settings that matter. What is in the way comes with the
command that mends it, and at the end stands what works as things are.

The exit status is 0 if the processor's cycles can be counted, at least those of
one's own programs in user mode, and 4 if they cannot.`,
		Example: `  cyclestack doctor -o doctor.txt
  cyclestack doctor --format json -o doctor.json`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.runDoctor(c) },
	}
	c.addOutput(cmd, listFormats...)
	return cmd
}

func (a *app) runDoctor(c *common) error {
	if err := c.check(listFormats...); err != nil {
		return err
	}
	m, err := a.kernel.machine(a.kernel.probe)
	if err != nil {
		return err
	}
	cat, err := c.catalogue()
	if err != nil {
		return err
	}
	d := diagnose(m, cat)
	err = a.write(c, func(out io.Writer) error {
		if c.format == "json" {
			return printJSON(out, d)
		}
		const usualWidth = 100
		return d.print(out, marksFor(a.terminal(c, a.out)), cmp.Or(c.options(a.terminal(c, a.out)).Width, usualWidth))
	})
	if err == nil && !d.Cycles {
		return &failure{exitMachine, errors.New("")}
	}
	return err
}

// A diagnosis is what doctor finds. It is printed as JSON as it stands.
type diagnosis struct {
	Schema   string    `json:"schema"`
	Cycles   bool      `json:"cycles"` // can be counted
	CPU      string    `json:"cpu,omitempty"`
	Findings []finding `json:"findings"`
	Works    []finding `json:"works"` // commands, as things are
}

// A finding is one thing that doctor looked at.
type finding struct {
	Name  string   `json:"name"`
	State verdict  `json:"state"`
	Text  string   `json:"text"`
	Mend  []string `json:"mend,omitempty"` // what would change it: commands, most of them
}

// A verdict is how things stand with a finding.
type verdict string

const (
	good verdict = "yes"
	bad  verdict = "no"
	fair verdict = "note" // it works, but not as well as it could, or is good to know
)

// An examination gathers a diagnosis.
type examination struct {
	*live.Machine
	cat *model.Catalogue
	*diagnosis
	types []live.CoreType
}

func diagnose(m *live.Machine, cat *model.Catalogue) *diagnosis {
	x := &examination{Machine: m, cat: cat, diagnosis: &diagnosis{Schema: "cyclestack.doctor/v1"}}
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
	return x.diagnosis
}

func (x *examination) find(name string, state verdict, text string, mend ...string) {
	x.Findings = append(x.Findings, finding{name, state, text, mend})
}

func (x *examination) processor() {
	id, err := model.HostID(x.Root)
	if err != nil {
		x.find("processor", fair, err.Error())
		return
	}
	x.CPU = id
	cpus, err := live.Named(x.cat, id)
	if err != nil {
		x.find("processor", fair, fmt.Sprintf("the catalogue does not have %s", id), "cyclestack stat --cpu NAME, if it is one of those that cyclestack models lists")
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
	text := fmt.Sprintf("%s, %s (%s); methods: %s", cpus[0].Title, cpus[0].Name, id, strings.Join(methods, ", "))
	if len(methods) == 0 {
		text = fmt.Sprintf("%s, %s (%s); no method for it", cpus[0].Title, cpus[0].Name, id)
	}
	x.find("processor", good, text)
}

// counters says which counters of the core there are.
func (x *examination) counters() {
	if x.NoPMU() != "" {
		x.find("counters", bad, x.NoPMU(), x.pmuAdvice()...)
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
		state := good
		switch {
		case x.Probe.Counters == 0:
			state = bad
		case x.known(pmu.Name) > x.Probe.Counters:
			state = fair
		}
		x.find("counters", state, text)
	}
	x.Cycles = x.Probe.Counters > 0
}

// known is how many general counters the processor of a PMU has, 0 if that is
// not known.
func (x *examination) known(name string) int {
	for _, t := range x.types {
		if t.PMU.Name != name || t.CPU.Name == live.GenericCPU {
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

// pmuAdvice says how a machine without a PMU comes by one.
func (x *examination) pmuAdvice() []string {
	elsewhere := "or record elsewhere: cyclestack plan --script prints what to run there, cyclestack report reads it"
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
		"on the host: qemu -cpu host,pmu=on, or libvirt's <cpu mode='host-passthrough'/> and <pmu state='on'/>; cat /sys/module/kvm/parameters/enable_pmu must say Y",
		"in a cloud: an instance of a whole socket, or of bare metal",
		elsewhere,
	}
}

// permission says what this user may count.
func (x *examination) permission() {
	level := x.Probe.Paranoid
	open := "sudo sysctl kernel.perf_event_paranoid=0"
	grant := "sudo setcap cap_perfmon,cap_sys_ptrace=ep " + own()
	switch {
	case x.Probe.CapPerfmon:
		x.find("permission", good, fmt.Sprintf("everything may be counted (CAP_PERFMON or root), whatever perf_event_paranoid says (%d)", level))
	case level >= live.ParanoidAll:
		x.find("permission", bad, fmt.Sprintf("perf_event_paranoid is %d: nothing may be counted without CAP_PERFMON", level), open, "or "+grant)
	case level >= live.ParanoidKernel:
		x.find("permission", fair, fmt.Sprintf("perf_event_paranoid is %d: own programs in user mode only, not the kernel and not the machine (-a, -C, -G)", level), open, "or "+grant)
	case level >= live.ParanoidCPUs:
		x.find("permission", fair, fmt.Sprintf("perf_event_paranoid is %d: own programs and what the kernel does for them, not the machine (-a, -C, -G)", level), open, "or "+grant)
	default:
		x.find("permission", good, fmt.Sprintf("perf_event_paranoid is %d: programs and the machine may be counted", level))
	}
}

// expected is how many of the scopes that were tried (the own program in user
// mode, with the kernel, and the machine) the permissions refuse.
func (x *examination) expected() int {
	switch level := x.Probe.Paranoid; {
	case x.Probe.CapPerfmon || level < live.ParanoidCPUs:
		return 0
	case level < live.ParanoidKernel:
		return 1
	case level < live.ParanoidAll:
		return 2
	}
	return 3
}

// refusals names what the kernel refuses against its permissions.
func (x *examination) refusals() {
	if n := len(x.Probe.Errors); n > x.expected() {
		x.find("counting", bad, x.Probe.Errors[0].Error())
		x.Cycles = false
	}
}

// own is this program's file, as a command line names it.
func own() string {
	if exe, err := os.Executable(); err == nil {
		return exe
	}
	return "cyclestack"
}

// sandbox says whether a container or a filter of system calls is in the way.
func (x *examination) sandbox() {
	filtered := x.Probe.Seccomp
	container := x.container()
	allow := []string{"docker run --cap-add PERFMON --security-opt seccomp=unconfined …, or a profile that allows perf_event_open"}
	switch {
	case x.Probe.UserNamespace:
		x.find("container", fair, "a user namespace: its root has no privilege that counts for the kernel's counters", "start it outside of the namespace, or as root outside: sysctl kernel.perf_event_paranoid=0")
	case filtered && container != "":
		x.find("container", fair, container+", with a filter of system calls (seccomp), which may refuse perf_event_open", allow...)
	case filtered:
		x.find("container", fair, "a filter of system calls (seccomp) is in place, which may refuse perf_event_open", "start it outside of the sandbox")
	case container != "":
		x.find("container", fair, container+"; system calls are not filtered", allow...)
	}
}

// container names the container that this runs in, as far as it leaves traces;
// "" for none.
func (x *examination) container() string {
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
	text, err := fs.ReadFile(x.Root, file)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

func (x *examination) watchdog() {
	if x.NoPMU() != "" {
		return
	}
	holds := func(t live.CoreType) bool {
		pmu, err := plan.PMUOf(t.CPU)
		return err == nil && (pmu.Watchdog != "" || t.CPU.Name == live.GenericCPU)
	}
	switch {
	case x.Probe.Watchdog && !slices.ContainsFunc(x.types, holds):
		x.find("watchdog", good, "the NMI watchdog is on, and holds no counter of this processor")
	case x.Probe.Watchdog:
		x.find("watchdog", fair, "the NMI watchdog holds a counter on every CPU; plans leave it to it", "sudo sysctl kernel.nmi_watchdog=0")
	default:
		x.find("watchdog", good, "the NMI watchdog is off and holds no counter")
	}
}

func (x *examination) holders() {
	if list := x.Sys.Holders(x.Root); len(list) > 0 {
		x.find("others", fair, "others hold counters: "+strings.Join(list, ", "), "end them, or count longer: they take turns with you")
	}
}

func (x *examination) logicalProcessors() {
	n := len(x.Sys.CPUs)
	switch {
	case x.Probe.SMT:
		x.find("smt", fair, fmt.Sprintf("%d logical processors, which share cores: nodes about whole cores need both counted (stat -a --per-core)", n))
	case n > 0:
		x.find("smt", good, fmt.Sprintf("%d logical processors, each a core of its own", n))
	}
	if len(x.types) > 1 {
		var names []string
		for _, t := range x.types {
			names = append(names, t.CPU.Name)
		}
		x.find("hybrid", fair, "cores of several types, each with an account of its own: "+strings.Join(names, ", "))
	}
}

func (x *examination) slots() {
	pmu := x.Sys.Core()
	if len(pmu) == 0 || pmu[0].Aliases["slots"] == "" {
		return
	}
	if x.Probe.Slots {
		x.find("topdown", good, "PERF_METRICS: the first levels of top-down analysis need no turns")
		return
	}
	x.find("topdown", bad, "the kernel knows slots and the parts of PERF_METRICS, but does not open them as a group",
		"a hypervisor may hide them: cyclestack stat --model cycles")
}

// otherPMUs lists the PMUs beside the cores', those of one kind together.
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
		x.find("other pmus", good, strings.Join(kinds, ", "))
	}
}

func (x *examination) cgroups() {
	switch {
	case x.exists("sys/fs/cgroup/cgroup.controllers"):
		x.find("cgroups", good, "version 2: stat -G GROUP takes paths below /sys/fs/cgroup")
	case x.exists("sys/fs/cgroup/perf_event"):
		x.find("cgroups", good, "version 1, with perf_event: stat -G GROUP takes paths below /sys/fs/cgroup/perf_event")
	case x.exists("sys/fs/cgroup/unified/cgroup.controllers"):
		x.find("cgroups", good, "version 2 beside version 1: stat -G GROUP takes paths below /sys/fs/cgroup/unified")
	default:
		x.find("cgroups", bad, "no cgroups that can be counted", "sudo mount -t cgroup2 none /sys/fs/cgroup, or boot with systemd.unified_cgroup_hierarchy=1")
	}
}

func (x *examination) exists(file string) bool {
	_, err := fs.Stat(x.Root, file)
	return err == nil
}

// limits says what bounds the number of counters: each is a file for each CPU.
func (x *examination) limits() {
	files := x.openFiles()
	cpus := max(1, len(x.Sys.CPUs))
	if files <= 0 {
		return
	}
	const manyEvents = 100 // those of a whole tree
	if each := files / cpus; each < manyEvents {
		x.find("open files", fair, fmt.Sprintf("%d may be open, which is %d events on each of %d CPUs", files, each, cpus),
			fmt.Sprintf("ulimit -n %d", 2*manyEvents*cpus))
		return
	}
	x.find("open files", good, fmt.Sprintf("%d may be open", files))
}

// openFiles is how many files the process may have open, 0 if not known.
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

// symbols says what matters when samples are taken.
func (x *examination) symbols() {
	switch x.read("proc/sys/kernel/kptr_restrict") {
	case "0", "":
	case "1":
		if !x.Probe.CapPerfmon {
			x.find("symbols", fair, "kptr_restrict is 1: addresses in the kernel have no names", "sudo sysctl kernel.kptr_restrict=0")
		}
	default:
		x.find("symbols", fair, "kptr_restrict hides where the kernel's functions are: addresses in it have no names", "sudo sysctl kernel.kptr_restrict=0")
	}
	if kb, err := strconv.Atoi(x.read("proc/sys/kernel/perf_event_mlock_kb")); err == nil {
		const usual = 516 // the kernel's default: 512 KiB and a page
		state, mend := good, []string(nil)
		if kb < usual {
			state, mend = fair, []string{fmt.Sprintf("sudo sysctl kernel.perf_event_mlock_kb=%d", usual)}
		}
		x.find("buffers", state, fmt.Sprintf("%d KiB for samples of each CPU without privileges", kb), mend...)
	}
}

// simulator says whether programs can be simulated where they cannot be counted.
func (x *examination) simulator() {
	if err := simulation.Installed(); err != nil {
		x.find("simulation", fair, "valgrind is not installed, which simulates programs where their cycles cannot be counted", "sudo apt-get install valgrind")
		return
	}
	x.find("simulation", good, "valgrind is installed")
}

// works says what the commands that count can do as things are.
func (x *examination) works() {
	refused := max(len(x.Probe.Errors), x.expected())
	whole, allowed := refused == 0, refused < 3
	can := func(command string, state verdict, text string) {
		x.Works = append(x.Works, finding{Name: command, State: state, Text: text})
	}
	simulates := simulation.Installed() == nil
	switch {
	case x.Cycles && allowed && x.UserOnly():
		can("stat -- PROGRAM", fair, "by the processor's counters, in user mode")
	case x.Cycles && allowed:
		can("stat -- PROGRAM", good, "by the processor's counters")
	case simulates:
		can("stat -- PROGRAM", fair, "simulated by valgrind, if that takes no more than minutes; else what the operating system knows")
	case allowed:
		can("stat -- PROGRAM", fair, "what the operating system knows: what threads do with their time, page faults, context switches")
	default:
		can("stat -- PROGRAM", fair, "what /proc tells: what threads do with their time")
	}
	switch {
	case x.Cycles && allowed:
		can("record -- PROGRAM", good, "samples by the processor's counters")
	case allowed:
		can("record -- PROGRAM", fair, "samples by the clock: where the time goes, and not why")
	default:
		can("record -- PROGRAM", bad, "nothing may be sampled")
	}
	switch {
	case x.Cycles && whole:
		can("stat -a", good, "by the processor's counters")
	case whole:
		can("stat -a", fair, "by the operating system's counters")
	default:
		can("stat -a", bad, "the machine may not be counted")
	}
	switch {
	case !x.Probe.SMT:
		can("smt -a", bad, "no two logical processors share a core")
	case x.Cycles && whole:
		can("smt -a", good, "by the processor's counters")
	default:
		can("smt -a", bad, "it needs the processor's counters, on all CPUs")
	}
	can("report FILE", good, "recordings from anywhere")
}

// marks are what stands before a finding.
type marks map[verdict]string

var (
	plainMarks = marks{good: "yes ", bad: "no  ", fair: "note"}
	drawnMarks = marks{good: "✓", bad: "✗", fair: "·"}
)

// marksFor returns the marks that an output can show: words, unless it is a
// terminal whose character set has others.
func marksFor(out io.Writer) marks {
	f := file(out)
	if f == nil || !term.IsTerminal(int(f.Fd())) {
		return plainMarks
	}
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(os.Getenv(name)); v != "" {
			if strings.Contains(v, "utf-8") || strings.Contains(v, "utf8") {
				return drawnMarks
			}
			return plainMarks
		}
	}
	return plainMarks
}

// print prints a diagnosis for people.
func (d *diagnosis) print(w io.Writer, m marks, width int) error {
	var b strings.Builder
	list := func(title string, findings []finding, front string) {
		name := 0
		for _, f := range findings {
			name = max(name, len(front)+len(f.Name))
		}
		fmt.Fprintf(&b, "%s\n", title)
		for _, f := range findings {
			lead := fmt.Sprintf("  %s  %-*s  ", m[f.State], name, front+f.Name)
			hang := strings.Repeat(" ", len([]rune(lead)))
			for i, line := range fold(f.Text, width-len(hang)) {
				if i > 0 {
					lead = hang
				}
				b.WriteString(lead + line + "\n")
			}
			for _, mend := range f.Mend {
				b.WriteString(hang + "→ " + mend + "\n")
			}
		}
	}
	title := "This machine"
	if d.CPU != "" {
		title += ", " + d.CPU
	}
	list(title, d.Findings, "")
	b.WriteByte('\n')
	list("As things are", d.Works, "cyclestack ")
	_, err := io.WriteString(w, b.String())
	return err
}

// fold breaks a text into lines of at most so many characters.
func fold(text string, width int) []string {
	const least = 40
	width = max(least, width)
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len([]rune(line))+1+len([]rune(word)) > width {
			lines = append(lines, line)
			line = ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return append(lines, line)
}
