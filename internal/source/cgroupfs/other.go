//go:build !linux

package cgroupfs

import "github.com/cyclestack/cyclestack/internal/fault"

// A Reader reads nothing: only Linux has cgroups.
type Reader struct{}

// A Group is one cgroup during a scan.
type Group struct {
	ID    uint64
	Depth int
}

// Open fails.
func Open(string) (*Reader, error) { return nil, fault.Machinef("only Linux has cgroups") }

// At returns a reader of nothing.
func At(string) *Reader { return &Reader{} }

// Dir returns the directory of the root cgroup.
func (r *Reader) Dir() string { return "" }

// Version returns the version of cgroups.
func (r *Reader) Version() int { return 0 }

// Beyond returns how many cgroups the last scan left out.
func (r *Reader) Beyond() int { return 0 }

// Scan visits nothing.
func (r *Reader) Scan(func(*Group)) error { return nil }

// Path returns the path below the root.
func (g *Group) Path() string { return "" }

// Is reports whether the path is this one.
func (g *Group) Is(string) bool { return false }

// CPU reads nothing.
func (g *Group) CPU() (c CPU, ok bool) { return c, false }

// Pressure reads nothing.
func (g *Group) Pressure() (p Pressure) { return p }

// HostPressure reads nothing.
func HostPressure(string) (p Pressure) { return p }
