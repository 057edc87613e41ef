//go:build linux && guest

package inside

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
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cyclestack/cyclestack/internal/guest/loop"
)

// tasks are what this program can do instead of testing: be a process to be
// counted.
var tasks = map[string]func(args []string){
	"threads":  threadsTask,
	"churn":    churnTask,
	"children": childrenTask,
	"cgroups":  cgroupsTask,
	"echo":     echo,
	"oncpu":    onCPUTask,
	"sleep":    sleepTask,
	"two":      twoTask,
}

// threadsTask starts a thread for each argument and prints their ids. Told to go, each
// executes its argument's number of instructions. They end with the process.
func threadsTask(args []string) {
	in := bufio.NewScanner(os.Stdin)
	var done sync.WaitGroup
	begin := make(chan struct{})
	ids := make(chan int)
	for _, arg := range args {
		n, err := strconv.ParseUint(arg, 10, 64)
		if err != nil {
			panic(err)
		}
		done.Go(func() {
			runtime.LockOSThread()
			ids <- unix.Gettid()
			<-begin
			loop.Run(n / 2)
			runtime.UnlockOSThread()
		})
		fmt.Print(<-ids, " ")
	}
	fmt.Println()
	in.Scan()
	close(begin)
	done.Wait()
	fmt.Println("done")
	in.Scan()
}

// Of churnTask's threads, so many are there at any time, each for so many chunks
// of work.
const (
	churnThreads = 3
	churnChunks  = 50
	churnChunk   = 100_000 // instructions
)

// churnTask has threads that come and go from the first line that it reads on. For each
// further line it prints how many instructions the chunks of work had that are done.
func churnTask([]string) {
	in := bufio.NewScanner(os.Stdin)
	in.Scan()
	var executed atomic.Uint64
	for range churnThreads {
		go func() {
			for {
				var end sync.WaitGroup
				end.Go(func() {
					// A goroutine that ends locked takes its thread along.
					runtime.LockOSThread()
					for range churnChunks {
						loop.Run(churnChunk / 2)
						executed.Add(churnChunk)
					}
				})
				end.Wait()
			}
		}()
	}
	for ; in.Err() == nil; fmt.Println(executed.Load()) {
		if !in.Scan() {
			return
		}
	}
}

// childrenTask runs a program several times.
func childrenTask(args []string) {
	times, err := strconv.Atoi(args[0])
	if err != nil {
		panic(err)
	}
	for range times {
		if err := exec.Command(args[1]).Run(); err != nil {
			panic(err)
		}
	}
}

// cgroupsTask runs programs in cgroups; its arguments are one of these and one of
// those in turn.
func cgroupsTask(args []string) {
	for ; len(args) > 0; args = args[2:] {
		if err := runIn(args[0], args[1]); err != nil {
			panic(err)
		}
	}
}

// onCPUTask runs programs on logical processors; its arguments are the number of one
// of these and one of those in turn.
func onCPUTask(args []string) {
	runtime.LockOSThread() // a program inherits the processors of the thread that starts it
	for ; len(args) > 0; args = args[2:] {
		cpu, err := strconv.Atoi(args[0])
		if err != nil {
			panic(err)
		}
		var set unix.CPUSet
		set.Set(cpu)
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			panic(err)
		}
		if err := exec.Command(args[1]).Run(); err != nil {
			panic(err)
		}
	}
}

// sleepTask sleeps.
func sleepTask(args []string) {
	d, err := time.ParseDuration(args[0])
	if err != nil {
		panic(err)
	}
	time.Sleep(d)
}

// runIn runs a program in a cgroup.
func runIn(cgroup, name string) error {
	dir, err := os.Open(cgroup)
	if err != nil {
		return err
	}
	defer dir.Close()
	cmd := exec.Command(name)
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	return cmd.Run()
}

// A task is a process of this program's that does one of the tasks.
type task struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Scanner
}

// startTask starts a task that is told what to do line by line. It ends with the test.
func startTask(t *testing.T, name string, args ...string) *task {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", append([]string{name}, args...)...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close() // which tells it to end
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	})
	return &task{t: t, cmd: cmd, in: in, out: bufio.NewScanner(out)}
}

// tell writes a line to the task.
func (k *task) tell() {
	k.t.Helper()
	if _, err := io.WriteString(k.in, "\n"); err != nil {
		k.t.Fatal(err)
	}
}

// line reads a line that the task prints.
func (k *task) line() string {
	k.t.Helper()
	if !k.out.Scan() {
		k.t.Fatalf("the task printed no more: %v", k.out.Err())
	}
	return k.out.Text()
}

// numbers reads a line of numbers.
func (k *task) numbers() []int {
	k.t.Helper()
	var list []int
	for _, s := range strings.Fields(k.line()) {
		n, err := strconv.Atoi(s)
		if err != nil {
			k.t.Fatal(err)
		}
		list = append(list, n)
	}
	return list
}

func (k *task) pid() int { return k.cmd.Process.Pid }
