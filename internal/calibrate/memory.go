//go:build linux && (amd64 || arm64 || ppc64le || riscv64)

package calibrate

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A memory is a piece of anonymous memory whose pages are known.
type memory struct {
	bytes   []byte
	page    int    // bytes of the pages
	pages   string // where they came from, for people
	mapping []byte // what to unmap
}

// allocate returns memory on a NUMA node, or anywhere if node is negative. With huge it uses
// huge pages if possible: reserved ones, else transparent ones, if the kernel confirms them.
// Otherwise it disables transparent huge pages for the memory. All of it has been written to.
// To make huge pages the kernel may have to move others, which is slow on a busy machine. At
// the given time it stops: the memory then has the size reached so far, in multiples of
// hugeStep. It has at least leastMemory, if size has.
func allocate(size, node int, huge bool, until time.Time) (*memory, error) {
	page := os.Getpagesize()
	hugePage := 0
	if huge {
		hugePage = hugePageSize()
	}
	if hugePage > 0 && size%hugePage == 0 {
		b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_HUGETLB)
		if err == nil {
			m := &memory{bytes: b, page: hugePage, pages: "set aside (hugetlb)", mapping: b}
			return m, m.touch(node, until)
		}
	}
	align := max(hugePage, page)
	mapping, err := unix.Mmap(-1, 0, size+align, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("%d MiB of memory: %w", size>>20, err)
	}
	start := int(-uintptr(unsafe.Pointer(&mapping[0])) & uintptr(align-1))
	m := &memory{bytes: mapping[start : start+size : start+size], page: page, pages: "ordinary", mapping: mapping}
	advice := unix.MADV_NOHUGEPAGE
	if hugePage > 0 {
		advice = unix.MADV_HUGEPAGE
	}
	advised := unix.Madvise(m.bytes, advice) // fails if the kernel has no transparent huge pages
	if err := m.touch(node, until); err != nil {
		return nil, err
	}
	if huge {
		switch share := hugeShare(m.bytes); {
		case hugePage == 0:
			m.pages = "ordinary: the kernel has no huge pages"
		case share >= 0.95:
			m.page, m.pages = hugePage, "transparent huge pages"
		case advised != nil:
			m.pages = "ordinary: the kernel has no transparent huge pages"
		default:
			m.pages = fmt.Sprintf("ordinary: the kernel gave transparent huge pages for %.0f %% only", 100*share)
		}
	}
	return m, nil
}

// touch binds memory to a node. It makes every page of it exist, or as many as there is
// time for: the memory ends there.
func (m *memory) touch(node int, until time.Time) error {
	if node >= 0 {
		if err := bind(m.bytes, node); err != nil {
			m.free()
			return err
		}
	}
	for i := 0; i < len(m.bytes); i += os.Getpagesize() {
		if i >= leastMemory && i%hugeStep == 0 && time.Now().After(until) {
			m.bytes = m.bytes[:i:i]
			break
		}
		m.bytes[i] = 1
	}
	return nil
}

// hugeStep is the unit of sizes, so that huge pages of the usual sizes fit. leastMemory has
// room for chunks of all arrays of a kernel.
const (
	hugeStep    = 4 << 20
	leastMemory = 4 * max(hugeStep, chunkBytes)
)

func (m *memory) free() { _ = unix.Munmap(m.mapping) }

func (m *memory) at(offset int) unsafe.Pointer { return unsafe.Pointer(&m.bytes[offset]) }

// bind asks for the pages of memory that do not exist yet to come from a NUMA node. See
// mbind(2).
func bind(b []byte, node int) error {
	const mpolBind = 2
	mask := make([]uint64, node/64+1)
	mask[node/64] = 1 << (node % 64)
	_, _, errno := unix.Syscall6(unix.SYS_MBIND, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)),
		mpolBind, uintptr(unsafe.Pointer(&mask[0])), uintptr(len(mask)*64+1), 0)
	if errno != 0 && errno != unix.ENOSYS { // a kernel without NUMA has only one node
		return fmt.Errorf("memory on NUMA node %d: %w", node, errno)
	}
	return nil
}

// hugePageSize returns the size of the machine's huge pages, 0 if it has none.
func hugePageSize() int {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0
	}
	defer f.Close()
	return kilobytes(f, "Hugepagesize:") << 10
}

// kilobytes returns the sum of the values of a key in a file like /proc/meminfo.
func kilobytes(r io.Reader, key string) int {
	sum := 0
	for s := bufio.NewScanner(r); s.Scan(); {
		if fields := strings.Fields(s.Text()); len(fields) >= 2 && fields[0] == key {
			n, err := strconv.Atoi(fields[1])
			if err != nil || n < 0 {
				return 0
			}
			sum += n
		}
	}
	return sum
}

// spareMemory returns how many bytes the calibration may use: a quarter of the free memory
// of the machine and of the process's control groups. So nothing is swapped out or killed
// because of it.
func spareMemory(root string) int {
	spare := limitLeft(root)
	if f, err := os.Open(filepath.Join(root, "proc/meminfo")); err == nil {
		defer f.Close()
		if available := kilobytes(f, "MemAvailable:") << 10; available > 0 {
			spare = min(spare, available)
		}
	}
	return spare / 4
}

// limitLeft returns the bytes left below the limits of the process's control groups, at
// least 0. A group without a limit leaves everything.
func limitLeft(root string) int {
	text, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return math.MaxInt
	}
	left := math.MaxInt
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		top, limit, usage := "sys/fs/cgroup", "memory.max", "memory.current"
		switch {
		case fields[0] == "0" && fields[1] == "": // version 2
		case slices.Contains(strings.Split(fields[1], ","), "memory"):
			top, limit, usage = "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
		default:
			continue
		}
		// In a container the path may be the one outside: then only the top exists.
		for group := path.Clean("/" + fields[2]); ; group = path.Dir(group) {
			dir := filepath.Join(root, top, group)
			if most, ok := bytesIn(filepath.Join(dir, limit)); ok {
				used, _ := bytesIn(filepath.Join(dir, usage))
				left = min(left, max(most-used, 0))
			}
			if group == "/" {
				break
			}
		}
	}
	return left
}

// bytesIn reads a file of one number; "max" is no limit.
func bytesIn(name string) (int, bool) {
	text, err := os.ReadFile(name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	return n, err == nil && n >= 0
}

// hugeShare returns the share of memory in transparent huge pages, from the mappings in
// /proc/self/smaps that overlap it.
func hugeShare(b []byte) float64 {
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return 0
	}
	defer f.Close()
	from := uintptr(unsafe.Pointer(&b[0]))
	return parseHugeShare(f, uint64(from), uint64(from)+uint64(len(b)))
}

func parseHugeShare(r io.Reader, from, to uint64) float64 {
	var inside bool
	var resident, huge float64
	for s := bufio.NewScanner(r); s.Scan(); {
		fields := strings.Fields(s.Text())
		if len(fields) == 0 {
			continue
		}
		if first, last, ok := strings.Cut(fields[0], "-"); ok {
			start, err1 := strconv.ParseUint(first, 16, 64)
			end, err2 := strconv.ParseUint(last, 16, 64)
			inside = err1 == nil && err2 == nil && start < to && end > from
			continue
		}
		if !inside || len(fields) < 2 {
			continue
		}
		n, err := strconv.ParseFloat(fields[1], 64)
		switch {
		case err != nil:
		case fields[0] == "Rss:":
			resident += n
		case fields[0] == "AnonHugePages:":
			huge += n
		}
	}
	if resident == 0 {
		return 0
	}
	return huge / resident
}
