package switches

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cyclestack/cyclestack/internal/cgroups"
	"github.com/cyclestack/cyclestack/internal/source/cgroupfs"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// echoEnv makes the test binary a program that sends back what it reads.
const echoEnv = "CYCLESTACK_TEST_ECHO"

func TestMain(m *testing.M) {
	if os.Getenv(echoEnv) != "" {
		var b [1]byte
		for {
			if n, err := unix.Read(0, b[:]); n < 1 || err != nil {
				os.Exit(0)
			}
			if _, err := unix.Write(1, b[:]); err != nil {
				os.Exit(0)
			}
		}
	}
	os.Exit(m.Run())
}

// BenchmarkSwitch is a byte to a process in another cgroup and back, on one processor: two
// changes of the cgroup, without and with a record of each. The difference is what records
// cost, without the reading of counters where there is no PMU.
func BenchmarkSwitch(b *testing.B) {
	mount, err := cgroups.Mount()
	if err != nil {
		b.Skip(err)
	}
	dir := filepath.Join(mount, "cyclestack-switches")
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		b.Skip(err)
	}
	b.Cleanup(func() { os.Remove(dir) })
	fd, err := os.Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer fd.Close()
	var set, before unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		b.Fatal(err)
	}
	set.Set(0)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		b.Skip(err)
	}
	defer func() { _ = unix.SchedSetaffinity(0, &before) }()
	in, out, ends := pipes(b)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), echoEnv+"=1")
	cmd.Stdin, cmd.Stdout = ends[0], ends[1]
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(fd.Fd())}
	if err := cmd.Start(); err != nil {
		b.Skip(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	turn := func(b *testing.B) {
		var c [1]byte
		for b.Loop() {
			if _, err := unix.Write(in, c[:]); err != nil {
				b.Fatal(err)
			}
			if _, err := unix.Read(out, c[:]); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("without", turn)
	b.Run("with", func(b *testing.B) {
		sys, err := perfevent.ReadSystem(os.DirFS("/"))
		if err != nil {
			b.Fatal(err)
		}
		var group []perfevent.Event
		for _, name := range []string{"context-switches", "page-faults"} {
			e, err := sys.Resolve(name)
			if err != nil {
				b.Fatal(err)
			}
			group = append(group, e)
		}
		records := 0
		o := Options{Cgroups: cgroupfs.At(mount), Name: func(path string) string { return path }, Share: func(float64) float64 { return 1 }, Took: func(n int, _ uint64) { records += n }}
		run, err := o.Start(b.Context(), sys, perfevent.Spec{Groups: [][]perfevent.Event{group}, Target: perfevent.Target{All: true}, Interval: 500 * time.Millisecond})
		if err != nil {
			b.Skip(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			for run.Next() {
			}
		}()
		turn(b)
		run.Close()
		<-done
		b.ReportMetric(float64(records)/float64(b.N), "records/op")
	})
}

// pipes returns the ends of two pipes: ours, and a process's input and output.
func pipes(b *testing.B) (in, out int, ends [2]*os.File) {
	b.Helper()
	var p, q [2]int
	if err := errors.Join(unix.Pipe2(p[:], unix.O_CLOEXEC), unix.Pipe2(q[:], unix.O_CLOEXEC)); err != nil {
		b.Fatal(err)
	}
	ends = [2]*os.File{os.NewFile(uintptr(p[0]), "in"), os.NewFile(uintptr(q[1]), "out")}
	b.Cleanup(func() {
		unix.Close(p[1])
		unix.Close(q[0])
		ends[0].Close()
		ends[1].Close()
	})
	return p[1], q[0], ends
}
