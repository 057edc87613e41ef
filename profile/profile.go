// Package profile finds the places in the code that samples were taken at:
// which file was mapped at an address of a process at a time, which function,
// line and inlined calls that is, and what the code there looks like.
//
// [Spaces] follows the address spaces of processes through the events that a
// recording has of them, and turns process, time and address into a [Place]: a
// file and an offset in it. Places are small and comparable; samples are best
// added up by them. A [Symbolizer] then says what is at a place.
//
//	spaces := profile.NewSpaces()
//	spaces.Map(t, profile.Mapping{PID: 7, Start: 0x400000, Len: 0x1000, File: "/bin/true"})
//	spaces.Settle()
//	place := spaces.Find(t, 7, 0x400123, profile.User)
//	function := profile.NewSymbolizer(profile.Config{}).Function(place)
//
// The package knows no format of recordings, and nothing of accounts. Files that
// are missing, or are not those that were recorded, cost names and lines only:
// their places keep the file, its build id and the address.
package profile

import (
	"fmt"
	"path"
	"strings"
)

// A Mode says in whose code a sample was taken. The values are those of the
// kernel's PERF_RECORD_MISC_CPUMODE_MASK.
type Mode uint8

// The modes.
const (
	AnyMode     Mode = iota // not recorded: user, or else kernel
	Kernel                  // the kernel's code
	User                    // a program's code
	Hypervisor              // unknown code
	GuestKernel             // code of a virtual machine, which is unknown
	GuestUser               // likewise
)

// KernelPID stands for the process of mappings of the kernel and its modules.
const KernelPID = -1

// A Mapping is a piece of a file in the memory of a process: what the kernel
// records as PERF_RECORD_MMAP or MMAP2.
type Mapping struct {
	PID        int // KernelPID for the kernel and its modules
	Start, Len uint64
	// PgOff is the offset in the file in bytes. Of the kernel's own mapping it
	// is the address of the symbol that the file name ends in, if it has one.
	PgOff   uint64
	File    string // as recorded: a path, or a name such as [vdso] or //anon
	BuildID string // lower-case hexadecimal, or "" if not recorded
	Data    bool   // not executable
}

// A Kind is what sort of thing was mapped.
type Kind uint8

// The kinds of files.
const (
	Binary     Kind = iota // a program or a library
	KernelCode             // the kernel's own code
	Module                 // a module of the kernel
	VDSO                   // the code that the kernel gives to every process
	PerfMap                // code made at run time, named by a file /tmp/perf-PID.map
	JITDump                // code made at run time, in a file jit-PID.dump
	KernelSym              // code that the kernel made at run time, such as BPF programs
	Memory                 // memory without code: stacks, heaps
)

var kindNames = [...]string{"binary", "kernel", "kernel module", "vdso", "perf map", "jitdump", "kernel symbol", "memory"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", k)
}

// A File is something that was mapped, once for every name and build id. Its
// fields must not be changed.
type File struct {
	Name    string // as recorded; for KernelSym, the symbol
	BuildID string // lower-case hexadecimal, or "" if not recorded
	Kind    Kind
	PID     int // the process of a PerfMap or JITDump
	// Reference is the name and the address of a symbol of the kernel in the
	// run that was recorded, "" and 0 if unknown. The kernel may be elsewhere
	// after the next boot. Of a KernelSym it is the address alone.
	Reference        string
	ReferenceAddress uint64
}

// Base returns a short name: the path without directories, and the kernel's own
// without the reference symbol. It is "" for no file.
func (f *File) Base() string {
	switch {
	case f == nil:
		return ""
	case strings.HasPrefix(f.Name, "/"):
		return path.Base(f.Name)
	case f.Kind == KernelCode:
		return strings.TrimSuffix(f.Name, f.Reference)
	}
	return f.Name
}

// absolute says whether places in the file are addresses of the run and not
// offsets in the file.
func (k Kind) absolute() bool {
	return k == KernelCode || k == Module || k == PerfMap || k == KernelSym
}

// A Place is where a sample was taken, without time and process. A nil File
// means that nothing was mapped there.
type Place struct {
	File *File
	// Offset is the offset in the file; for the kernel, its modules and perf maps
	// it is the address in the run, and where File is nil as well.
	Offset uint64
}

// kindOf says what a mapping is, by its name.
func kindOf(m Mapping) Kind {
	name := m.File
	switch {
	case m.PID == KernelPID && strings.HasPrefix(name, "[kernel"), m.PID == KernelPID && strings.HasPrefix(name, "[guest.kernel"):
		return KernelCode
	case m.PID == KernelPID:
		return Module
	case strings.HasPrefix(name, "[vdso"), strings.HasPrefix(name, "[vsyscall"), name == "[uprobes]":
		return VDSO
	case anonymous(name) && m.Data:
		return Memory
	case anonymous(name):
		return PerfMap
	case isJitdump(name):
		return JITDump
	}
	return Binary
}

// anonymous says whether memory comes from no file: see perf's is_anon_memory
// and is_no_dso_memory.
func anonymous(name string) bool {
	switch {
	case name == "", name == "//anon", name == "[anon]", strings.HasPrefix(name, "[anon:"):
		return true
	}
	for _, p := range []string{"/dev/zero", "/anon_hugepage", "/memfd:doublemapper", "[stack", "/SYSV", "[heap]"} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// isJitdump says whether a file is one that a just-in-time compiler writes its
// code to, which it maps to make itself known.
func isJitdump(name string) bool {
	base := path.Base(name)
	return strings.HasPrefix(base, "jit-") && strings.HasSuffix(base, ".dump")
}
