// Package cgroupfs reads what the kernel keeps account of for each cgroup: processor time,
// time at the limit, and pressure. It knows versions 1 and 2 of cgroups.
//
// It belongs to the third step of the flow
//
//	model → plan → source → counts → account → report
//
// A scan walks the tree, and calls back for each cgroup. The callback reads what it wants
// of that one:
//
//	r, err := cgroupfs.Open("/sys/fs/cgroup")
//	err = r.Scan(func(g *cgroupfs.Group) { cpu, ok := g.CPU() })
//
// Cgroups vanish at any time, also between two system calls. What is gone is not read, and
// is no error. All values are cumulative since a cgroup's creation and include its
// descendants, also those that are gone.
package cgroupfs

import (
	"bytes"
	"strconv"
	"time"
)

// A CPU is the processor time of a cgroup. Its times are in nanoseconds.
type CPU struct {
	Usage, User, System uint64
	Throttled           uint64 // processors stopped at the limit; cpu.max of this cgroup or one above
}

// The resources that a cgroup may wait for, indexes of Pressure.
const (
	PressureCPU = iota
	PressureIO
	PressureMemory
	Resources
)

// A Pressure is for how long some, and all, tasks of a cgroup waited for resources, in
// nanoseconds.
type Pressure [Resources]struct {
	Known      bool
	Some, Full uint64
}

// Bounds of a scan. What is beyond them is in the values of the cgroups above.
const (
	deepest = 64
	most    = 1 << 16 // cgroups
)

// tick is the unit of cpuacct.stat in version 1: USER_HZ, which is 100 on all architectures
// that have a PMU here.
const tick = 10 * time.Millisecond

// parseCPU reads cpu.stat of version 2.
func parseCPU(text []byte) (c CPU, ok bool) {
	const micro = uint64(time.Microsecond)
	for line := range bytes.Lines(text) {
		key, value, found := bytes.Cut(line, []byte{' '})
		if !found {
			continue
		}
		n, valid := number(value)
		if !valid || n > 1<<62/micro {
			continue
		}
		switch string(key) {
		case "usage_usec":
			c.Usage, ok = n*micro, true
		case "user_usec":
			c.User = n * micro
		case "system_usec":
			c.System = n * micro
		case "throttled_usec":
			c.Throttled = n * micro
		}
	}
	return c, ok
}

// parseTicks reads cpuacct.stat of version 1.
func parseTicks(text []byte, c *CPU) {
	for line := range bytes.Lines(text) {
		key, value, _ := bytes.Cut(line, []byte{' '})
		n, valid := number(value)
		if !valid || n > 1<<62/uint64(tick) {
			continue
		}
		switch string(key) {
		case "user":
			c.User = n * uint64(tick)
		case "system":
			c.System = n * uint64(tick)
		}
	}
}

// parseThrottled reads cpu.stat of version 1.
func parseThrottled(text []byte, c *CPU) {
	for line := range bytes.Lines(text) {
		if value, found := bytes.CutPrefix(line, []byte("throttled_time ")); found {
			if n, valid := number(value); valid {
				c.Throttled = n
			}
		}
	}
}

// parsePressure reads a file of pressure: two lines with a total in microseconds each.
func parsePressure(text []byte) (some, full uint64, ok bool) {
	for line := range bytes.Lines(text) {
		_, total, found := bytes.Cut(line, []byte("total="))
		n, valid := number(total)
		if !found || !valid || n > 1<<62/uint64(time.Microsecond) {
			continue
		}
		n *= uint64(time.Microsecond)
		switch {
		case bytes.HasPrefix(line, []byte("some ")):
			some, ok = n, true
		case bytes.HasPrefix(line, []byte("full ")):
			full = n
		}
	}
	return some, full, ok
}

func number(text []byte) (uint64, bool) {
	n, err := strconv.ParseUint(string(bytes.TrimSpace(text)), 10, 64)
	return n, err == nil
}
