// Package guest runs programs in emulated Linux machines that have a PMU, for
// tests on machines that have none.
//
// QEMU emulates the PMUs of Arm, POWER and RISC-V processors well enough for the kernel's own
// drivers: instructions and cycles are counted, groups, multiplexing and scopes behave as on
// hardware. Time in a guest follows the instructions executed, so that a test means the same on
// a busy host.
//
// The command in internal/guest/rig takes a guest's parts (QEMU, a kernel) from Debian's
// archive, and puts them outside the repository:
//
//	go run ./internal/guest/rig arm64 ppc64le
//	go test ./internal/guest
package guest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// An Arch is an architecture that guests can have.
type Arch struct {
	GOARCH string
	Debian string // its name there
	Kernel string // Debian's package that depends on the newest kernel
	QEMU   string // Debian's package of the emulator

	Emulator string   // the program
	Machine  []string // its arguments for the machine, the processor apart
	CPU      string   // the processor, with a PMU
	Console  string   // the kernel's name for the serial line
}

// Archs are the architectures with guests that count.
var Archs = []Arch{
	{
		GOARCH: "arm64", Debian: "arm64", Kernel: "linux-image-cloud-arm64", QEMU: "qemu-system-arm",
		Emulator: "qemu-system-aarch64",
		Machine:  []string{"-machine", "virt"},
		CPU:      "neoverse-n1",
		Console:  "ttyAMA0",
	},
	{
		GOARCH: "ppc64le", Debian: "ppc64el", Kernel: "linux-image-powerpc64le", QEMU: "qemu-system-ppc",
		Emulator: "qemu-system-ppc64",
		// Mitigations that emulation does not have, and would warn of.
		Machine: []string{"-machine", "pseries,cap-cfpc=broken,cap-sbbc=broken,cap-ibs=broken,cap-ccf-assist=off", "-vga", "none"},
		CPU:     "power10",
		Console: "hvc0",
	},
	{
		GOARCH: "riscv64", Debian: "riscv64", Kernel: "linux-image-riscv64", QEMU: "qemu-system-riscv",
		Emulator: "qemu-system-riscv64",
		Machine:  []string{"-machine", "virt"},
		CPU:      "rv64,sscofpmf=on",
		Console:  "ttyS0",
	},
}

// Lookup returns the architecture of a GOARCH.
func Lookup(goarch string) (Arch, error) {
	i := slices.IndexFunc(Archs, func(a Arch) bool { return a.GOARCH == goarch })
	if i < 0 {
		var names []string
		for _, a := range Archs {
			names = append(names, a.GOARCH)
		}
		return Arch{}, fmt.Errorf("there are no guests of %q, only of %s", goarch, strings.Join(names, ", "))
	}
	return Archs[i], nil
}

// A Rig is a directory with what guests are made of.
type Rig struct{ Dir string }

// FindRig returns the rig in the directory that CYCLESTACK_GUESTS names, or in
// the user's cache. What it has is another question: see [Rig.Missing].
func FindRig() (Rig, error) {
	if dir := os.Getenv("CYCLESTACK_GUESTS"); dir != "" {
		return Rig{dir}, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return Rig{}, fmt.Errorf("CYCLESTACK_GUESTS names no directory for the rig of guests, and %v", err)
	}
	return Rig{filepath.Join(cache, "cyclestack", "guests")}, nil
}

// QEMU is the root of the file tree that the emulators were unpacked in, with the
// libraries that they need.
func (r Rig) QEMU() string { return filepath.Join(r.Dir, "qemu") }

// Emulator is the path of an architecture's emulator.
func (r Rig) Emulator(a Arch) string { return filepath.Join(r.QEMU(), "usr", "bin", a.Emulator) }

// Kernel is the path of an architecture's kernel.
func (r Rig) Kernel(a Arch) string { return filepath.Join(r.Dir, "kernel", a.GOARCH) }

// Perf is the directory with an architecture's perf and all the libraries that it
// needs. It is run by [Loader] there.
func (r Rig) Perf(a Arch) string { return filepath.Join(r.Dir, "perf", a.GOARCH) }

// Loader is the dynamic loader in a directory of programs and libraries.
const Loader = "ld.so"

// Missing says what the rig lacks for guests of an architecture and how to get
// it; nil if nothing.
func (r Rig) Missing(a Arch) error {
	for _, file := range []string{r.Emulator(a), r.Kernel(a), r.Perf(a)} {
		if _, err := os.Stat(file); err != nil {
			return fmt.Errorf("there is no %s: go run ./internal/guest/rig %s", file, a.GOARCH)
		}
	}
	return nil
}
