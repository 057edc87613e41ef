package valgrind

import (
	"errors"
	"fmt"
	"io/fs"
	"math/bits"
	"strconv"
	"strings"
)

// A Cache is a simulated cache: it is looked up by address and keeps the lines used last.
// Replacement in real caches is similar.
type Cache struct {
	Size int // bytes
	Ways int // lines of one set
	Line int // bytes
}

func (c Cache) String() string { return fmt.Sprintf("%s %d-way", size(c.Size), c.Ways) }

// option is the cache as valgrind's options take it.
func (c Cache) option() string { return fmt.Sprintf("%d,%d,%d", c.Size, c.Ways, c.Line) }

func size(bytes int) string {
	switch {
	case bytes >= 1<<20 && bytes%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", bytes>>20)
	case bytes >= 1<<10 && bytes%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", bytes>>10)
	}
	return fmt.Sprintf("%d B", bytes)
}

// A Geometry is the simulated caches of a processor: the first level for instructions and
// for data, and the last level.
type Geometry struct {
	I1, D1, LL Cache
}

func (g Geometry) String() string {
	return fmt.Sprintf("I1 %s, D1 %s, LL %s", g.I1, g.D1, g.LL)
}

// options are valgrind's options for the geometry.
func (g Geometry) options() []string {
	return []string{"--I1=" + g.I1.option(), "--D1=" + g.D1.option(), "--LL=" + g.LL.option()}
}

// Limits of the simulators: beyond them valgrind refuses, or is too slow.
const (
	leastLine = 16
	mostLine  = 1 << 12
	mostSize  = 1 << 30
	mostWays  = 1 << 10
)

// Fit returns a cache of about the same size that the simulators accept: they need the
// number of sets to be a power of two. The size stays the same if more ways make up for
// fewer sets.
func (c Cache) Fit() (Cache, error) {
	bad := fmt.Errorf("a cache of %d bytes in lines of %d, %d ways, cannot be simulated", c.Size, c.Line, c.Ways)
	if c.Size <= 0 || c.Size > mostSize || c.Ways <= 0 || c.Ways > mostWays ||
		c.Line < leastLine || c.Line > mostLine || c.Line&(c.Line-1) != 0 || c.Size < c.Line*c.Ways {
		return c, bad
	}
	lines := c.Size / c.Line
	sets := 1 << (bits.Len(uint(lines/c.Ways)) - 1)
	ways := lines / sets
	return Cache{Size: sets * ways * c.Line, Ways: ways, Line: c.Line}, nil
}

// ParseCache reads a cache as valgrind's options write it, "32768,8,64", or with a unit:
// "32K,8,64".
func ParseCache(text string) (Cache, error) {
	bad := fmt.Errorf("%q is not SIZE,WAYS,LINE, such as 32K,8,64", text)
	parts := strings.Split(text, ",")
	if len(parts) != 3 {
		return Cache{}, bad
	}
	bytes, shift := strings.TrimSpace(parts[0]), 0
	for i, unit := range []string{"K", "M"} {
		if number, ok := strings.CutSuffix(strings.ToUpper(bytes), unit); ok {
			bytes, shift = number, 10*(i+1)
		}
	}
	n, err := strconv.ParseUint(bytes, 10, 31)
	ways, err2 := strconv.Atoi(strings.TrimSpace(parts[1]))
	line, err3 := strconv.Atoi(strings.TrimSpace(parts[2]))
	if err := errors.Join(err, err2, err3); err != nil || n<<shift > mostSize {
		return Cache{}, bad
	}
	return Cache{int(n << shift), ways, line}.Fit()
}

// A Hierarchy is the caches of a processor, as one of its cores sees them. A level
// that it does not have has the size 0.
type Hierarchy struct {
	L1I, L1D, L2, L3 Cache
}

func (h Hierarchy) String() string {
	text := fmt.Sprintf("L1I %s, L1D %s", h.L1I, h.L1D)
	for _, l := range []struct {
		name  string
		cache Cache
	}{{"L2", h.L2}, {"L3", h.L3}} {
		if l.cache.Size > 0 {
			text += fmt.Sprintf(", %s %s", l.name, l.cache)
		}
	}
	return text
}

// ParseHierarchy reads caches as ParseCache does, with slashes between them: the first
// level for instructions, that for data, the second level, and the third if there is
// one.
func ParseHierarchy(text string) (h Hierarchy, err error) {
	parts := strings.Split(text, "/")
	levels := []*Cache{&h.L1I, &h.L1D, &h.L2, &h.L3}
	if len(parts) < 3 || len(parts) > len(levels) {
		return h, fmt.Errorf("%q is not L1I/L1D/L2 or L1I/L1D/L2/L3, such as 32K,8,64/32K,8,64/1M,8,64/32M,16,64", text)
	}
	for i, part := range parts {
		if *levels[i], err = ParseCache(part); err != nil {
			return h, err
		}
	}
	return h, nil
}

// ErrNoCaches says that a machine does not report its caches.
var ErrNoCaches = errors.New("this machine does not say what caches it has")

// Typical are caches of the sizes that many processors have, for processors whose caches
// are not known.
var Typical = Hierarchy{L1I: Cache{32 << 10, 8, 64}, L1D: Cache{32 << 10, 8, 64}, L2: Cache{1 << 20, 16, 64}, L3: Cache{16 << 20, 16, 64}}

// HostCaches returns the caches of the first processor of the machine with this root, from
// /sys/devices/system/cpu. On a virtual machine they are those that the hypervisor reports.
func HostCaches(root fs.FS) (Hierarchy, error) {
	var h Hierarchy
	for i := range 16 {
		dir := fmt.Sprintf("sys/devices/system/cpu/cpu0/cache/index%d/", i)
		level := sysNumber(root, dir+"level")
		if level == 0 {
			break
		}
		c, err := Cache{sysNumber(root, dir+"size"), sysNumber(root, dir+"ways_of_associativity"), sysNumber(root, dir+"coherency_line_size")}.Fit()
		if err != nil {
			continue
		}
		switch kind := sysText(root, dir+"type"); {
		case level == 1 && kind == "Instruction":
			h.L1I = c
		case level == 1 && kind == "Data":
			h.L1D = c
		case level == 1:
			h.L1I, h.L1D = c, c
		case level == 2 && kind != "Instruction":
			h.L2 = c
		case level == 3:
			h.L3 = c
		}
	}
	if h.L1D.Size == 0 || h.L2.Size+h.L3.Size == 0 {
		return Hierarchy{}, ErrNoCaches
	}
	if h.L1I.Size == 0 {
		h.L1I = h.L1D
	}
	return h, nil
}

func sysText(root fs.FS, name string) string {
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// sysNumber reads a number, 0 if there is none. Sizes end in K.
func sysNumber(root fs.FS, name string) int {
	number, kilo := strings.CutSuffix(sysText(root, name), "K")
	v, err := strconv.ParseUint(number, 10, 31)
	if err != nil {
		return 0
	}
	if kilo {
		v <<= 10
	}
	return int(min(v, mostSize+1))
}
