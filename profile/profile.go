// Package profile finds the places in the code of samples: the file mapped at an address of a
// process at a time, and the function, line and inlined calls there.
//
// [Spaces] follows the address spaces of processes through the events of a recording, and
// finds the [Place] of an address: a file and an offset in it. Places are small and
// comparable, so that samples can be added up by them. A [Symbolizer] then says what is at
// a place.
//
//	spaces := profile.NewSpaces()
//	spaces.Map(t, profile.Mapping{PID: 7, Start: 0x400000, Len: 0x1000, File: "/bin/true"})
//	spaces.Settle()
//	place := spaces.Find(t, 7, 0x400123, profile.User)
//	function := profile.NewSymbolizer(profile.Config{}).Function(place)
//
// The package knows no format of recordings, and nothing of accounts. If a file is missing,
// or is not the recorded one, only names and lines are lost: its places keep the file, its
// build id and the address.
//
// It promises bounds on what hostile files cost, as package object does. Memory grows with the
// number of different mappings. It needs no types of other packages.
package profile

import (
	"path"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/internal/object"
)

// A Mode says whose code a sample is from. The values are those of the kernel's
// PERF_RECORD_MISC_CPUMODE_MASK. 0 is a mode that was not recorded: the address is the
// program's, or else the kernel's. Code of other modes, of hypervisors and guests, is
// unknown.
type Mode uint8

// The modes of a sample.
const (
	Kernel Mode = 1
	User   Mode = 2
)

// kernelPID is the process of mappings of the kernel and its modules.
const kernelPID = -1

// A Mapping is a piece of a file in the memory of a process: what the kernel
// records as PERF_RECORD_MMAP or MMAP2.
type Mapping struct {
	PID        int
	Kernel     bool // of the kernel or one of its modules, and of no process
	Start, Len uint64
	// PgOff is the offset in the file in bytes. Of the kernel's own mapping it is the address
	// of the symbol that the file name ends in, if any.
	PgOff   uint64
	File    string // as recorded: a path, or a name such as [vdso] or //anon
	BuildID string // lower-case hexadecimal, or "" if not recorded
	Data    bool   // not executable
}

// A kind is the kind of a file.
type kind uint8

const (
	kindBinary    kind = iota // a program or a library
	kindKernel                // the kernel's own code
	kindModule                // a module of the kernel
	kindVDSO                  // the code that the kernel gives to every process
	kindPerfMap               // code made at run time, named by a file /tmp/perf-PID.map
	kindJitdump               // code made at run time, in a file jit-PID.dump
	kindKernelSym             // code that the kernel made at run time, such as BPF programs
	kindMemory                // memory without code: stacks, heaps
)

// A File is a mapped file, or something like one, once for every name and build id. Its
// fields must not be changed.
type File struct {
	Name      string // as recorded; of code that the kernel made, its symbol
	BuildID   string // lower-case hexadecimal, or "" if not recorded
	PID       int    // the process of code made at run time
	Kernel    bool   // code of the kernel, of a module or made by the kernel
	Anonymous bool   // memory that comes from no file, with code or without

	kind kind
	// reference is the name and address of a symbol of the kernel in the recorded run, "" and 0
	// if unknown. The kernel may be elsewhere after the next boot. A kindKernelSym has the
	// address alone.
	reference        string
	referenceAddress uint64
}

// Base returns a short name: the path without directories, and the kernel's own
// without the reference symbol. It is "" for no file.
func (f *File) Base() string {
	switch {
	case f == nil:
		return ""
	case strings.HasPrefix(f.Name, "/"):
		return path.Base(f.Name)
	case f.kind == kindKernel:
		return strings.TrimSuffix(f.Name, f.reference)
	}
	return f.Name
}

// absolute says whether places in the file are addresses of the run and not
// offsets in the file.
func (k kind) absolute() bool {
	return k == kindKernel || k == kindModule || k == kindPerfMap || k == kindKernelSym
}

// A Place is the position of a sample in the code, without time and process. A nil File
// means that nothing was mapped there.
type Place struct {
	File *File
	// Offset is the offset in the file. For the kernel, its modules, perf maps and a nil File
	// it is the address in the run.
	Offset uint64
}

// kindOf returns the kind of a mapping, by its name.
func kindOf(m Mapping) kind {
	name := m.File
	switch {
	case m.PID == kernelPID && strings.HasPrefix(name, "[kernel"), m.PID == kernelPID && strings.HasPrefix(name, "[guest.kernel"):
		return kindKernel
	case m.PID == kernelPID:
		return kindModule
	case strings.HasPrefix(name, "[vdso"), strings.HasPrefix(name, "[vsyscall"), name == "[uprobes]":
		return kindVDSO
	case anonymous(name) && m.Data:
		return kindMemory
	case anonymous(name):
		return kindPerfMap
	case object.IsJitdump(name):
		return kindJitdump
	}
	return kindBinary
}

// anonymous says whether memory comes from no file: see perf's is_anon_memory
// and is_no_dso_memory.
func anonymous(name string) bool {
	switch {
	case name == "", name == "//anon", name == "[anon]", strings.HasPrefix(name, "[anon:"):
		return true
	}
	return slices.ContainsFunc([]string{"/dev/zero", "/anon_hugepage", "/memfd:doublemapper", "[stack", "/SYSV", "[heap]"}, func(p string) bool {
		return strings.HasPrefix(name, p)
	})
}
