package model

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// midrFile is where Linux on arm64 tells the MIDR of the first processor.
const midrFile = "sys/devices/system/cpu/cpu0/regs/identification/midr_el1"

// ErrNoHostID says that the machine does not tell which processor it has.
var ErrNoHostID = errors.New("the machine does not say which processor it has")

// HostID returns the identification of the machine's processor in the form that
// [Catalogue.CPU] takes and perf prints. root is the root of the machine's file system,
// os.DirFS("/"). HostID reads proc/cpuinfo and, on arm64,
// sys/devices/system/cpu/cpu0/regs/identification/midr_el1. On a machine with several
// kinds of processors it is that of the first. The error wraps [ErrNoHostID] if these
// files do not have it.
func HostID(root fs.FS) (string, error) {
	if data, err := fs.ReadFile(root, midrFile); err == nil {
		if midr, err := parseHex(strings.TrimSpace(string(data))); err == nil {
			return fmt.Sprintf("0x%016x", midr), nil
		}
	}
	info, err := cpuinfo(root)
	if err != nil {
		return "", fmt.Errorf("%w (%w)", ErrNoHostID, err)
	}
	for _, id := range []func(map[string]string) string{x86ID, armID, powerID, riscvID} {
		if s := id(info); s != "" {
			return s, nil
		}
	}
	return "", ErrNoHostID
}

// cpuinfo returns the fields of the first processor in /proc/cpuinfo. Those
// that POWER and RISC-V print once, at the end or for each processor, are taken
// where they first appear.
func cpuinfo(root fs.FS) (map[string]string, error) {
	f, err := root.Open("proc/cpuinfo")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info := map[string]string{}
	lines := bufio.NewScanner(f)
	lines.Buffer(make([]byte, 0, 4<<10), 1<<20)
	for lines.Scan() && len(info) < 1000 {
		key, value, ok := strings.Cut(lines.Text(), ":")
		if !ok && x86ID(info) != "" {
			break // it is all there, and a large machine has many processors
		}
		key = strings.TrimSpace(key)
		if _, seen := info[key]; ok && !seen {
			info[key] = strings.TrimSpace(value)
		}
	}
	return info, lines.Err()
}

// x86ID returns VENDOR-family-MODEL-STEPPING: see get_cpuid in Linux's
// tools/perf/arch/x86/util/header.c.
func x86ID(info map[string]string) string {
	family, err1 := strconv.ParseUint(info["cpu family"], 10, 32)
	model, err2 := strconv.ParseUint(info["model"], 10, 32)
	stepping, err3 := strconv.ParseUint(info["stepping"], 10, 32)
	if info["vendor_id"] == "" || err1 != nil || err2 != nil || err3 != nil {
		return ""
	}
	return fmt.Sprintf("%s-%d-%X-%X", info["vendor_id"], family, model, stepping)
}

// armID puts MIDR_EL1 together from the fields that the kernel prints of it.
func armID(info map[string]string) string {
	var fields [4]uint64
	for i, key := range []string{"CPU implementer", "CPU variant", "CPU part", "CPU revision"} {
		v, err := strconv.ParseUint(info[key], 0, 16)
		if err != nil {
			return ""
		}
		fields[i] = v
	}
	const architecture = 0xf // "see the ID registers", as in all that have a PMUv3
	return fmt.Sprintf("0x%016x", fields[0]<<24|fields[1]<<20|architecture<<16|fields[2]<<4|fields[3])
}

// powerID returns the PVR, which the kernel prints as
// "revision : 2.2 (pvr 004e 1202)".
func powerID(info map[string]string) string {
	_, pvr, ok := strings.Cut(info["revision"], "(pvr ")
	pvr, _, closed := strings.Cut(pvr, ")")
	if !ok || !closed {
		return ""
	}
	v, err := parseHex(strings.ReplaceAll(pvr, " ", ""))
	if err != nil {
		return ""
	}
	return fmt.Sprintf("0x%08x", v)
}

// riscvID returns mvendorid-marchid-mimpid.
func riscvID(info map[string]string) string {
	vendor, arch, imp := info["mvendorid"], info["marchid"], info["mimpid"]
	if vendor == "" || arch == "" || imp == "" {
		return ""
	}
	return vendor + "-" + arch + "-" + imp
}
