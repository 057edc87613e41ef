//go:build linux

package perfevent_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The tests count this program itself: with roleEnv set it plays what it says
// instead of testing.
const roleEnv = "CYCLESTACK_PERFEVENT_ROLE"

func TestMain(m *testing.M) {
	// The race detector lets a program linger at its end.
	os.Setenv("GORACE", "atexit_sleep_ms=0")
	if role := os.Getenv(roleEnv); role != "" {
		play(strings.Fields(role))
		return
	}
	os.Exit(m.Run())
}

// play is the program that is counted.
func play(role []string) {
	arg := func(i int) int {
		n, _ := strconv.Atoi(role[i])
		return n
	}
	switch role[0] {
	case "spin": // spin N: a loop of N rounds, and page faults
		touch(2048)
		spin(arg(1))
	case "fork": // fork K N: K children one after the other, of N rounds each
		for range arg(1) {
			c := exec.Command(os.Args[0])
			c.Env = append(os.Environ(), roleEnv+"=spin "+role[2])
			if err := c.Run(); err != nil {
				os.Exit(1)
			}
		}
	case "threads": // threads K N: K threads at a time that come and go, of N rounds each, until told to stop
		threads(arg(1), arg(2))
	case "steps": // steps K N: at each line on standard input, K threads one after the other of N rounds
		in := bufio.NewScanner(os.Stdin)
		fmt.Println("ready")
		for in.Scan() {
			for range arg(1) {
				thread(arg(2))
			}
			report()
		}
	case "limited":
		limited(role[1:])
	case "exit":
		os.Exit(arg(1))
	case "suicide":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		time.Sleep(time.Minute)
	case "sleep":
		time.Sleep(time.Duration(arg(1)) * time.Millisecond)
	case "idle": // idle K [N]: K threads that sleep, of a process that waits, and then spins
		for range arg(1) {
			go func() { runtime.LockOSThread(); time.Sleep(time.Hour) }()
		}
		fmt.Println("ready")
		_, _ = io.Copy(io.Discard, os.Stdin)
		if len(role) > 2 {
			spin(arg(2))
		}
	}
}

// spin runs a loop of so many rounds, each of the same instructions.
//
//go:noinline
func spin(n int) {
	x := 0
	for i := range n {
		x += i ^ x
	}
	runtime.KeepAlive(x)
}

// thread spins on a thread that lives no longer.
func thread(n int) {
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		runtime.LockOSThread() // not unlocked: the thread ends
		touch(64)
		spin(n)
		wg.Done()
	}()
	wg.Wait()
}

// threads lets threads come and go, and reports at each line on standard input.
func threads(k, n int) {
	for range k {
		go func() {
			for {
				thread(n)
			}
		}()
	}
	fmt.Println("ready")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		report()
	}
	os.Exit(0)
}

// touch causes page faults.
func touch(pages int) {
	size := pages * os.Getpagesize()
	mem, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		panic(err)
	}
	_ = syscall.Madvise(mem, syscall.MADV_NOHUGEPAGE)
	for i := 0; i < size; i += os.Getpagesize() {
		mem[i] = 1
	}
	_ = syscall.Munmap(mem)
}

// usage is what the kernel's account of a process says. Its time leaves out
// what a hypervisor took away, which counters do not know of; and that of
// threads that are running is as old as the last tick.
type usage struct {
	time   time.Duration
	faults int
}

func usageOf(ru *syscall.Rusage) usage {
	return usage{time.Duration(ru.Utime.Nano() + ru.Stime.Nano()), int(ru.Minflt + ru.Majflt)}
}

// own returns the account of this process.
func own() usage {
	var ru syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &ru)
	return usageOf(&ru)
}

func (u usage) since(o usage) usage { return usage{u.time - o.time, u.faults - o.faults} }

// report prints the account of this process so far.
func report() {
	u := own()
	fmt.Println(int64(u.time), u.faults)
}

// An actor is the program playing a role while the test runs.
type actor struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// cast starts the program in a role that waits on its standard input, and waits
// until it is ready.
func cast(t *testing.T, role string) *actor {
	t.Helper()
	a := launch(t, role)
	if got := a.line(); got != "ready" {
		t.Fatalf("the counted program says %q", got)
	}
	return a
}

// launch starts the program in a role.
func launch(t *testing.T, role string) *actor {
	t.Helper()
	a := &actor{t: t, cmd: exec.Command(os.Args[0])}
	a.cmd.Env = append(os.Environ(), roleEnv+"="+role)
	a.cmd.Stderr = os.Stderr
	out, err := a.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if a.in, err = a.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := a.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	a.out = bufio.NewScanner(out)
	t.Cleanup(a.end)
	return a
}

func (a *actor) line() string {
	if !a.out.Scan() {
		a.t.Fatalf("the counted program has ended: %v", a.out.Err())
	}
	return a.out.Text()
}

// step lets the program do its next step and returns its account.
func (a *actor) step() usage {
	a.t.Helper()
	if _, err := io.WriteString(a.in, "\n"); err != nil {
		a.t.Fatal(err)
	}
	var u usage
	if _, err := fmt.Sscan(a.line(), (*int64)(&u.time), &u.faults); err != nil {
		a.t.Fatal(err)
	}
	return u
}

// busy lets the program work for a moment, until it has had some hundred page faults
// since a usage. It returns the new usage.
func (a *actor) busy(since usage) usage {
	a.t.Helper()
	for range 1500 {
		time.Sleep(20 * time.Millisecond)
		if u := a.step(); u.since(since).faults >= 200 {
			return u
		}
	}
	a.t.Fatal("the counted program does nothing")
	return usage{}
}

func (a *actor) end() {
	a.in.Close()
	_ = a.cmd.Wait()
}
