package model

import (
	"errors"
	"testing"
	"testing/fstest"
)

func TestHostID(t *testing.T) {
	const intel = "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\nmodel name\t: Intel(R) Xeon(R): 6148\nstepping\t: 4\n" +
		"\nprocessor\t: 1\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 86\nstepping\t: 5\n"
	const amd = "vendor_id : AuthenticAMD\ncpu family : 25\nmodel : 17\nstepping : 10\n"
	const arm = "processor\t: 0\nBogoMIPS\t: 50.00\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\nCPU revision\t: 1\n"
	const power = "processor\t: 0\ncpu\t\t: POWER9 (architected), altivec supported\nclock\t\t: 3800.000000MHz\nrevision\t: 2.2 (pvr 004e 1202)\n\ntimebase\t: 512000000\n"
	const riscv = "processor\t: 0\nhart\t\t: 0\nisa\t\t: rv64imafdc\nmvendorid\t: 0x489\nmarchid\t\t: 0x8000000000000007\nmimpid\t\t: 0x4210427\n"
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	tests := []struct {
		name string
		root fstest.MapFS
		want string
		cpu  string
	}{
		{"intel", fstest.MapFS{"proc/cpuinfo": file(intel)}, "GenuineIntel-6-55-4", "skylakex"},
		{"amd", fstest.MapFS{"proc/cpuinfo": file(amd)}, "AuthenticAMD-25-11-A", "amdzen4"},
		{"arm sysfs", fstest.MapFS{midrFile: file("0x00000000410fd4f0\n"), "proc/cpuinfo": file(arm)}, "0x00000000410fd4f0", "neoverse-v2"},
		{"arm cpuinfo", fstest.MapFS{"proc/cpuinfo": file(arm)}, "0x00000000413fd0c1", "neoverse-n1"},
		{"arm broken sysfs", fstest.MapFS{midrFile: file("\n"), "proc/cpuinfo": file(arm)}, "0x00000000413fd0c1", "neoverse-n1"},
		{"power", fstest.MapFS{"proc/cpuinfo": file(power)}, "0x004e1202", "power9"},
		{"riscv", fstest.MapFS{"proc/cpuinfo": file(riscv)}, "0x489-0x8000000000000007-0x4210427", "sifive-bullet"},
	}
	cat := embeddedCatalogue(t)
	for _, tt := range tests {
		got, err := HostID(tt.root)
		if err != nil || got != tt.want {
			t.Errorf("%s: HostID() = %q, %v, want %q", tt.name, got, err, tt.want)
			continue
		}
		if p, err := cat.CPU(got); err != nil || p.Name != tt.cpu {
			t.Errorf("%s: CPU(%q) = %v, %v, want %s", tt.name, got, p, err, tt.cpu)
		}
	}
	for name, root := range map[string]fstest.MapFS{
		"nothing":       {},
		"empty":         {"proc/cpuinfo": file("")},
		"no stepping":   {"proc/cpuinfo": file("vendor_id : GenuineIntel\ncpu family : 6\nmodel : 85\n")},
		"bad model":     {"proc/cpuinfo": file("vendor_id : GenuineIntel\ncpu family : 6\nmodel : many\nstepping : 1\n")},
		"bad pvr":       {"proc/cpuinfo": file("revision : 2.2 (pvr zz)\n")},
		"open pvr":      {"proc/cpuinfo": file("revision : 2.2 (pvr 004e 1202\n")},
		"half of riscv": {"proc/cpuinfo": file("mvendorid : 0x489\n")},
		"s390":          {"proc/cpuinfo": file("vendor_id       : IBM/S390\n# processors    : 4\n")},
	} {
		if got, err := HostID(root); !errors.Is(err, ErrNoHostID) {
			t.Errorf("%s: HostID() = %q, %v", name, got, err)
		}
	}
}
