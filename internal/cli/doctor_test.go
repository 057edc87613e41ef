package cli

import (
	"encoding/json"
	"github.com/cyclestack/cyclestack/internal/testkernel"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/cyclestack/cyclestack/internal/doctor"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// TestDoctor looks at machines of several kinds.
func TestDoctor(t *testing.T) {
	virtual := func(hypervisor string) *fakeKernel {
		return &fakeKernel{Root: testkernel.Intel(85, 2, 1, nil), Probe: perfevent.Probe{Supported: true, Hypervisor: hypervisor, Paranoid: 2, CapPerfmon: true}}
	}
	with := func(k *fakeKernel, change func(*fakeKernel)) *fakeKernel {
		change(k)
		return k
	}
	put := func(name, text string) func(*fakeKernel) {
		return func(k *fakeKernel) { k.Root[name] = &fstest.MapFile{Data: []byte(text)} }
	}
	user := func(paranoid int) *fakeKernel {
		return with(testkernel.Skylake(1), func(k *fakeKernel) { k.Probe.CapPerfmon, k.Probe.Paranoid = false, paranoid })
	}
	for _, tt := range []struct {
		name   string
		kernel *fakeKernel
		status int
		want   []string
	}{
		{"all well", testkernel.Skylake(1), 0, []string{"yes processor Intel Skylake server, skylakex: tma", "yes counters cpu: 8 of 8 general counters",
			"yes permission everything", "yes stat -a by the processor's"}},
		{"a virtual machine", virtual("QEMU"), 4, []string{"no counters this virtual machine (QEMU) has no core PMU", "→ on the host: qemu -cpu host,pmu=on",
			"note simulation neither QEMU's user mode emulation nor valgrind is installed", "yes stat times of threads", "yes record samples by the clock"}},
		{"one of VMware's", virtual("VMware, Inc."), 4, []string{"vpmc.enable"}},
		{"one of Hyper-V's", virtual("Microsoft Corporation"), 4, []string{"Set-VMProcessor"}},
		{"one of Xen's", virtual("xen"), 4, []string{"vpmu=1"}},
		{"no PMU", virtual(""), 4, []string{"the kernel shows no core PMU", "dmesg"}},
		{"no privilege", user(2), 0, []string{"note permission perf_event_paranoid is 2: own programs in user mode only", "→ sudo sysctl kernel.perf_event_paranoid=0",
			"yes stat by the processor's counters, in user mode", "no stat -a"}},
		{"some privilege", user(1), 0, []string{"own programs and what the kernel does for them", "yes stat by", "no stat -a"}},
		{"none at all", user(3), 0, []string{"no permission perf_event_paranoid is 3: nothing", "yes stat what /proc tells", "no record"}},
		{"all allowed", user(-1), 0, []string{"yes permission perf_event_paranoid is -1: programs and the machine", "yes stat -a"}},
		{"the watchdog", with(testkernel.Skylake(1), func(k *fakeKernel) { k.Probe.Watchdog = true }), 0, []string{"note watchdog", "→ sudo sysctl kernel.nmi_watchdog=0"}},
		{"others", with(testkernel.Skylake(1), func(k *fakeKernel) { k.Probe.Counters = 2 }), 0, []string{"note counters cpu: 2 of 8 general counters"}},
		{"shared cores", testkernel.Skylake(2), 0, []string{"note smt 4 logical processors, which share cores", "→ cyclestack stat -a --per-core -- sleep 10"}},
		{"a container", with(with(testkernel.Skylake(1), put(".dockerenv", "")), func(k *fakeKernel) {
			k.Probe.Seccomp = true
			put("proc/self/mountinfo", "530 507 254:1 /var/lib/docker/containers/1/hostname /etc/hostname rw - ext4 /dev/vda1 rw\n")(k)
		}), 0, []string{"note container a Docker container, with a filter of system calls (seccomp)", "→ docker run --cap-add PERFMON"}},
		{"a virtual machine made from a container's image", with(with(testkernel.Skylake(1), put(".dockerenv", "")), func(k *fakeKernel) {
			k.Probe.Seccomp = true
			put("proc/self/mountinfo", "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n")(k)
		}), 0, []string{"note container a filter of system calls (seccomp)"}},
		{"a filter", with(testkernel.Skylake(1), func(k *fakeKernel) { k.Probe.Seccomp = true }), 0, []string{"note container a filter of system calls (seccomp)"}},
		{"a user namespace", with(user(2), func(k *fakeKernel) { k.Probe.UserNamespace = true }), 0, []string{"note container a user namespace: its root may not use the kernel's counters"}},
		{"a refusal", with(testkernel.Skylake(1), func(k *fakeKernel) {
			k.Probe.Counters, k.Probe.Errors = 0, []perfevent.OpenError{{Event: "cycles", Errno: fs.ErrPermission, Advice: "ask"}}
		}), 4, []string{"no counters cpu: 0 of 8", "no counting cycles: permission denied: ask"}},
		{"control groups", with(testkernel.Skylake(1), put("sys/fs/cgroup/cgroup.controllers", "")), 0, []string{"yes cgroups stat -G GROUP, below /sys/fs/cgroup "}},
		{"old control groups", with(testkernel.Skylake(1), put("sys/fs/cgroup/perf_event/tasks", "")), 0, []string{"yes cgroups stat -G GROUP, below /sys/fs/cgroup/perf_event"}},
		{"control groups of both kinds", with(testkernel.Skylake(1), put("sys/fs/cgroup/unified/cgroup.controllers", "")), 0, []string{"yes cgroups stat -G GROUP, below /sys/fs/cgroup/unified"}},
		{"no control groups", testkernel.Skylake(1), 0, []string{"no cgroups", "→ sudo mount -t cgroup2"}},
		{"few files", with(testkernel.Skylake(1), put("proc/self/limits", "Max open files            256                  4096                 files\n")), 0,
			[]string{"note open files 256 may be open, which is 64 events on each of 4 CPUs", "→ ulimit -n 800"}},
		{"hidden symbols", with(testkernel.Skylake(1), put("proc/sys/kernel/kptr_restrict", "2\n")), 0, []string{"note symbols", "→ sudo sysctl kernel.kptr_restrict=0"}},
		{"small buffers", with(testkernel.Skylake(1), put("proc/sys/kernel/perf_event_mlock_kb", "64\n")), 0, []string{"note buffers 64 KiB", "perf_event_mlock_kb=516"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("PATH", t.TempDir()) // without simulators
			stdout, stderr, status := call(tt.kernel, "doctor")
			if status != tt.status || stderr != "" {
				t.Errorf("status %d, want %d; standard error %q", status, tt.status, stderr)
			}
			if lines := strings.Count(stdout, "\n"); lines > 20 || strings.Count(stdout, "→") > strings.Count(stdout, "  no ")+strings.Count(stdout, "  note ") {
				t.Errorf("%d lines, or more than one command for an obstacle:\n%s", lines, stdout)
			}
			rest := strings.Join(strings.Fields(stdout), " ")
			for _, w := range tt.want {
				_, after, ok := strings.Cut(rest, w)
				if !ok {
					t.Fatalf("the output has no %q, or not in this order:\n%s", w, stdout)
				}
				rest = after
			}
		})
	}
}

// TestDoctorSimulates looks at a machine whose programs can be simulated.
func TestDoctorSimulates(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "valgrind"), nil, 0o777); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	k := &fakeKernel{Root: testkernel.Intel(85, 2, 1, nil), Probe: perfevent.Probe{Supported: true, CapPerfmon: true}}
	stdout, _, status := call(k, "doctor")
	rest := strings.Join(strings.Fields(stdout), " ")
	for _, want := range []string{"note simulation QEMU's user mode emulation is not installed: valgrind simulates, which is slower", "yes stat times of threads and samples by the clock"} {
		if !strings.Contains(rest, want) {
			t.Errorf("the output has no %q:\n%s", want, stdout)
		}
	}
	if status != 4 {
		t.Errorf("status %d, want 4: cycles cannot be counted", status)
	}
}

// TestDoctorJSON reads what doctor prints for programs.
func TestDoctorJSON(t *testing.T) {
	t.Parallel()
	stdout, _, status := call(testkernel.Skylake(2), "doctor", "--format", "json")
	var d doctor.Diagnosis
	if err := json.Unmarshal([]byte(stdout), &d); err != nil || status != 0 {
		t.Fatalf("status %d: %v in\n%s", status, err, stdout)
	}
	if d.Schema != "cyclestack.doctor/v1" || !d.Cycles || d.CPU != "GenuineIntel-6-55-4" || len(d.Findings) < 5 || len(d.Works) != 5 {
		t.Errorf("got %+v", d)
	}
	for _, f := range append(d.Findings, d.Works...) {
		if f.Name == "" || f.Text == "" || f.State != doctor.Good && f.State != doctor.Bad && f.State != doctor.Fair {
			t.Errorf("got %+v", f)
		}
	}
}
