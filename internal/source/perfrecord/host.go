package perfrecord

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/internal/object"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// A host is the machine: what a recording says of it, and of its kernel.
type host struct {
	root    fs.FS
	kernel  module // .name is "[kernel.kallsyms]" and the symbol that tells how far it was moved
	modules []module
}

// A module is a piece of the kernel's code.
type module struct {
	name      string // as a reader looks for it: a path if there is a file
	sys       string // as /sys/module has it
	addr, len uint64
}

// kernelName is the name of the kernel's own code. A symbol follows it, whose address
// says how far the code was moved.
const kernelName = "[kernel.kallsyms]"

// readKernel finds out where the kernel and its modules are. Without privileges
// it hides that (kernel.kptr_restrict), and there is nothing to be told.
func (h *host) readKernel() {
	f, err := h.root.Open("proc/kallsyms")
	if err != nil {
		return
	}
	defer f.Close()
	var start, end uint64
	symbol := ""
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<16)
	for (start == 0 || end == 0) && lines.Scan() {
		name, ok := symbolOf(lines.Bytes())
		if !ok {
			continue
		}
		addr, _, _ := strings.Cut(lines.Text(), " ")
		n, err := strconv.ParseUint(addr, 16, 64)
		switch {
		case err != nil || n == 0:
			return
		case name == "_etext":
			end = n
		case start == 0 || name == "_text":
			start, symbol = n, name
		}
	}
	if start > 0 && end > start {
		h.kernel = module{name: kernelName + symbol, addr: start, len: end - start}
		h.readModules()
	}
}

// symbolOf returns the name of a line of /proc/kallsyms if it says where the kernel begins or
// ends.
func symbolOf(line []byte) (name string, ok bool) {
	for _, s := range []string{" _text", " _stext", " _etext"} {
		if bytes.HasSuffix(line, []byte(s)) {
			return s[1:], true
		}
	}
	return "", false
}

// readModules reads /proc/modules.
func (h *host) readModules() {
	text, err := fs.ReadFile(h.root, "proc/modules")
	if err != nil {
		return
	}
	files := h.moduleFiles()
	for line := range strings.Lines(string(text)) {
		// name size used by state address
		f := strings.Fields(line)
		if len(f) < 6 {
			continue
		}
		size, err1 := strconv.ParseUint(f[1], 10, 64)
		addr, err2 := strconv.ParseUint(strings.TrimPrefix(f[5], "0x"), 16, 64)
		if err1 != nil || err2 != nil || addr == 0 {
			continue
		}
		h.modules = append(h.modules, module{name: cmp.Or(files[f[0]], "["+f[0]+"]"), sys: f[0], addr: addr, len: size})
	}
}

// moduleFiles returns the files of modules by the modules' names: see modprobe's
// modules.dep(5).
func (h *host) moduleFiles() map[string]string {
	dir := "/lib/modules/" + h.text("proc/sys/kernel/osrelease")
	text, err := fs.ReadFile(h.root, dir[1:]+"/modules.dep")
	if err != nil {
		return nil
	}
	files := map[string]string{}
	for line := range strings.Lines(string(text)) {
		file, _, ok := strings.Cut(line, ":")
		name, _, isModule := strings.Cut(path.Base(file), ".ko")
		if ok && isModule {
			files[strings.ReplaceAll(name, "-", "_")] = path.Join(dir, file)
		}
	}
	return files
}

// buildIDs reads the build ids of the kernel and its modules.
func (h *host) buildIDs() []perfdata.FileBuildID {
	var list []perfdata.FileBuildID
	add := func(file, name string) {
		notes, err := fs.ReadFile(h.root, file)
		if err != nil {
			return
		}
		if id, err := hex.DecodeString(object.NotesBuildID(notes)); err == nil && len(id) > 0 {
			list = append(list, perfdata.FileBuildID{PID: -1, Mode: perfdata.ModeKernel, BuildID: id, Filename: name})
		}
	}
	if h.kernel.len > 0 {
		add("sys/kernel/notes", kernelName)
	}
	for _, m := range h.modules {
		add(path.Join("sys/module", m.sys, "notes/.note.gnu.build-id"), m.name)
	}
	return list
}

// text returns the content of a small file, "" if it cannot be read.
func (h *host) text(name string) string {
	b, err := fs.ReadFile(h.root, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(strings.Trim(string(b), "\x00"))
}

// machines are the names of instruction sets as uname(2) has them.
var machines = map[string]string{"amd64": "x86_64", "386": "i686", "arm64": "aarch64"}

// features returns what the header says of the machine.
func (h *host) features(opts Options) *perfdata.Features {
	f := &perfdata.Features{
		Hostname:  h.text("proc/sys/kernel/hostname"),
		OSRelease: h.text("proc/sys/kernel/osrelease"),
		Version:   opts.Version,
		Arch:      cmp.Or(machines[runtime.GOARCH], runtime.GOARCH),
		CPUID:     headerCPUID(opts.CPUID),
		CPUDesc:   h.cpuName(),
		Cmdline:   opts.Cmdline,
		CPUs:      h.count("possible"),
		Online:    h.count("online"),
		TotalMem:  h.memory(),
		PMUs:      h.pmus(),
	}
	h.topology(f)
	return f
}

// headerCPUID converts the identification of a processor from the form of perf's tables
// to that of its header: see perfdata.Features.CPUIDString.
func headerCPUID(id string) string {
	if part := strings.Split(id, "-"); len(part) == 4 {
		if model, err := strconv.ParseUint(part[2], 16, 32); err == nil {
			if stepping, err := strconv.ParseUint(part[3], 16, 32); err == nil {
				return fmt.Sprintf("%s,%s,%d,%d", part[0], part[1], model, stepping)
			}
		}
	}
	if pvr, ok := strings.CutPrefix(id, "0x"); ok && len(pvr) == 8 {
		if n, err := strconv.ParseUint(pvr, 16, 32); err == nil {
			return fmt.Sprintf("%d,%d", n>>16, n&0xffff)
		}
	}
	return id
}

// cpuName returns what the kernel calls the processor.
func (h *host) cpuName() string {
	for line := range strings.Lines(h.text("proc/cpuinfo")) {
		key, value, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(key) {
		case "model name", "cpu", "uarch":
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// cpuList returns the list of processors in a file of sysfs.
func (h *host) cpuList(name string) string { return h.text("sys/devices/system/cpu/" + name) }

func (h *host) count(name string) int { return len(parseCPUs(h.cpuList(name))) }

// memory returns how much memory there is, in kB.
func (h *host) memory() uint64 {
	for line := range strings.Lines(h.text("proc/meminfo")) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "MemTotal:" {
			n, _ := strconv.ParseUint(f[1], 10, 64)
			return n
		}
	}
	return 0
}

// pmus returns the numbers that the kernel gave its PMUs.
func (h *host) pmus() []perfdata.PMU {
	const dir = "sys/bus/event_source/devices"
	var list []perfdata.PMU
	entries, err := fs.ReadDir(h.root, dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if n, err := strconv.ParseUint(h.text(path.Join(dir, e.Name(), "type")), 10, 32); err == nil {
			list = append(list, perfdata.PMU{Type: uint32(n), Name: e.Name()})
		}
	}
	return list
}

// topology adds which processors share cores and sockets.
func (h *host) topology(f *perfdata.Features) {
	for cpu := range f.CPUs {
		dir := fmt.Sprintf("cpu%d/topology/", cpu)
		number := func(name string) int {
			n, err := strconv.Atoi(h.cpuList(dir + name))
			if err != nil {
				return -1
			}
			return n
		}
		f.Topology = append(f.Topology, perfdata.Place{Core: number("core_id"), Socket: number("physical_package_id"), Die: number("die_id")})
		for _, l := range []struct {
			to   *[]string
			name string
		}{
			{&f.CoreSiblings, cmp.Or(h.cpuList(dir+"package_cpus_list"), h.cpuList(dir+"core_siblings_list"))},
			{&f.DieSiblings, h.cpuList(dir + "die_cpus_list")},
			{&f.ThreadSiblings, cmp.Or(h.cpuList(dir+"core_cpus_list"), h.cpuList(dir+"thread_siblings_list"))},
		} {
			if l.name != "" && !slices.Contains(*l.to, l.name) {
				*l.to = append(*l.to, l.name)
			}
		}
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
