package profile

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cyclestack/cyclestack/internal/object"
)

// openKernel finds the symbols of the kernel that was recorded: those that the user names, the
// kernel by build id, perf's list of symbols, or this same kernel's.
func (y *Symbolizer) openKernel(f *File) *image {
	c := y.config
	switch {
	case c.Vmlinux != "" && f.kind == kindKernel:
		return c.openVmlinux(f, c.Vmlinux)
	case c.Kallsyms != "":
		return y.openList(f, c.Kallsyms, false)
	}
	if f.kind == kindKernel { // modules are laid out when they are loaded
		for _, path := range c.byBuildID(f.BuildID) {
			if im := c.openVmlinux(f, path); im.status.Err == nil {
				return im
			}
		}
	}
	for _, path := range c.cached("[kernel.kallsyms]", f.BuildID, "kallsyms") {
		if im := y.openList(f, path, true); im.status.Err == nil {
			return im
		}
	}
	if c.Root != "" {
		return missing("%s: no vmlinux of build id %q and no list of symbols", f.Name, f.BuildID)
	}
	return y.ownKernel(f)
}

// openVmlinux opens a kernel with its symbols, and finds the distance between its linked
// and its actual address.
func (c Config) openVmlinux(f *File, path string) *image {
	o, err := c.openObject(path, c.options(f.BuildID))
	if err != nil {
		return &image{status: Status{Err: err}}
	}
	im := &image{object: o, status: Status{Path: path, DebugPath: o.DebugPath, Verified: f.BuildID != ""}}
	if f.reference == "" {
		return im
	}
	addr, ok := o.Value(f.reference)
	if !ok {
		im.status.Notes = append(im.status.Notes, fmt.Sprintf("%s has no symbol %s to find out where the kernel ran; it is taken to have run where it was linked", path, f.reference))
		return im
	}
	im.shift = f.referenceAddress - addr
	return im
}

// openList reads a list of symbols, and finds their distance from the recorded run.
func (y *Symbolizer) openList(f *File, path string, verified bool) *image {
	t := y.kallsyms[path]
	if t == nil {
		var err error
		if t, err = y.config.kallsyms(path); err != nil {
			return &image{status: Status{Err: err}}
		}
		y.kallsyms[path] = t
	}
	im := &image{table: t, status: Status{Path: path, Verified: verified}}
	if addr, ok := t.marks[f.reference]; ok && f.kind == kindKernel {
		im.shift = f.referenceAddress - addr
	}
	return im
}

// kallsyms reads a list of symbols, or takes one that was read: of the running kernel's if
// it has the same modules.
func (c Config) kallsyms(path string) (*nameTable, error) {
	if c.Opened == nil {
		return c.readList(path)
	}
	state := ""
	if path == ownKallsyms {
		modules, _ := os.ReadFile("/proc/modules") // some kernels have none
		state = string(modules)
	} else if info, err := os.Stat(path); err == nil {
		state = fmt.Sprint(info.Size(), info.ModTime())
	}
	list, err := c.Opened.List(path, state, func(path string) (any, error) { return c.readList(path) })
	if err != nil {
		return nil, err
	}
	return list.(*nameTable), nil
}

// ownKallsyms is the list of symbols of the running kernel.
const ownKallsyms = "/proc/kallsyms"

// ownKernel uses the symbols of the running kernel if it is the one recorded. It compares
// the build ids. If the recording has none, it compares the kernel's addresses, which
// change from boot to boot.
func (y *Symbolizer) ownKernel(f *File) *image {
	own := runningBuildID()
	if f.kind == kindModule {
		own = notesBuildID(filepath.Join("/sys/module", filepath.Base(moduleName(f.Name)), "notes/.note.gnu.build-id"))
	}
	switch {
	case f.BuildID != "" && !object.SameBuildID(f.BuildID, own):
		return missing("%s: its build id is %s, and here runs %s", f.Name, f.BuildID, orAbsent(own))
	case f.BuildID == "" && f.reference == "":
		return missing("%s: the recording does not say which it was", f.Name)
	}
	im := y.openList(f, ownKallsyms, f.BuildID != "")
	if im.status.Err == nil && f.BuildID == "" && im.shift != 0 {
		return missing("%s: the recording has no build id, and was not made since this kernel was started", f.Name)
	}
	return im
}

func orAbsent(id string) string {
	return cmp.Or(id, "none that says it")
}

// moduleName returns the name of a module from [name] or a path to name.ko,
// compressed or not.
func moduleName(name string) string {
	name = filepath.Base(strings.Trim(name, "[]"))
	name, _, _ = strings.Cut(name, ".ko")
	return strings.ReplaceAll(name, "-", "_")
}

// runningBuildID returns the build id of the running kernel, or "".
func runningBuildID() string { return notesBuildID("/sys/kernel/notes") }

// notesBuildID reads the build id in a file of ELF notes of this machine.
func notesBuildID(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return object.NotesBuildID(data)
}
