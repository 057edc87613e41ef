package simulation

import (
	"io/fs"

	"github.com/cyclestack/cyclestack/internal/simulation/internal/valgrind"
)

// A Hierarchy is the caches of a processor, as one of its cores sees them.
type Hierarchy = valgrind.Hierarchy

// A Cache is one of them.
type Cache = valgrind.Cache

// ParseHierarchy reads caches as SIZE,WAYS,LINE with slashes between them: the first level
// for instructions, that for data, the second level, and the third if there is one.
func ParseHierarchy(text string) (Hierarchy, error) { return valgrind.ParseHierarchy(text) }

// HostCaches returns the caches of the first processor of the machine with this root, from
// /sys/devices/system/cpu.
func HostCaches(root fs.FS) (Hierarchy, error) { return valgrind.HostCaches(root) }

// Typical returns caches of the sizes that many processors have, for processors whose
// caches are not known.
func Typical() Hierarchy { return valgrind.Typical }
