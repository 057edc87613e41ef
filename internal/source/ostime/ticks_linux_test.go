package ostime_test

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cyclestack/cyclestack/internal/source/ostime"
	"github.com/cyclestack/cyclestack/internal/testlong"
)

const ticksHelper = "CYCLESTACK_TICKS_HELPER"

// TestTicksHelper is no test: it is a program that alternates between user mode and the
// kernel, for spans of random length to the ticks.
func TestTicksHelper(t *testing.T) {
	if os.Getenv(ticksHelper) == "" {
		t.Skip("started by TestTickVariance")
	}
	runtime.LockOSThread()
	zeros := make([]byte, 1<<20)
	f, err := os.Open("/dev/zero")
	if err != nil {
		t.Fatal(err)
	}
	// getrusage would make the kernel divide the time again and again, and each part only grows.
	begin, reading, used := threadTime(t), time.Duration(0), time.Duration(0)
	for used < 40*time.Millisecond {
		before := threadTime(t)
		for range 3 {
			_, _ = f.Read(zeros)
		}
		reading += threadTime(t) - before
		x := 1.0
		for range 200_000 {
			x = x*1.0000001 + 1e-9
		}
		if math.IsInf(x, 0) {
			t.Fatal(x)
		}
		used = threadTime(t)
	}
	fmt.Fprintln(os.Stderr, (used - begin).Nanoseconds(), reading.Nanoseconds())
}

// threadTime returns the processor time of this thread.
func threadTime(t *testing.T) time.Duration {
	var used unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Nano())
}

// leastWithin is how many of n intervals of 95 % at least contain the true value. One
// test in ten thousand has fewer.
func leastWithin(n int) int {
	const p, risk = 0.95, 1e-4
	chance := math.Pow(1-p, float64(n)) // of k within
	for k, sum := 0, chance; ; k++ {
		if sum > risk {
			return k
		}
		chance *= float64(n-k) / float64(k+1) * p / (1 - p)
		sum += chance
	}
}

// TestTickVariance runs one program several times, which measures its system time itself.
// In 95 of 100 runs the kernel's figure is within its error of that. The program cannot
// measure its start and its end: their share is that of all runs.
func TestTickVariance(t *testing.T) {
	type times struct{ user, system, loop, reading time.Duration }
	runs := make([]times, testlong.Size(20, 60))
	var all times
	for i := range runs {
		c := exec.Command(os.Args[0], "-test.run=^TestTicksHelper$")
		c.Env = append(os.Environ(), ticksHelper+"=1")
		var said strings.Builder
		c.Stderr = &said
		if err := c.Run(); err != nil {
			t.Fatalf("%v: %s", err, said.String())
		}
		r := times{user: c.ProcessState.UserTime(), system: c.ProcessState.SystemTime()}
		if _, err := fmt.Sscan(said.String(), &r.loop, &r.reading); err != nil {
			t.Fatalf("%v: %q", err, said.String())
		}
		runs[i] = r
		all = times{all.user + r.user, all.system + r.system, all.loop + r.loop, all.reading + r.reading}
	}
	share := float64(all.system) / float64(all.user+all.system)
	if share < 0.02 || share > 0.98 {
		t.Skipf("%.0f %% of the time is the kernel's: there is nothing to divide", 100*share)
	}
	ends := float64(all.user + all.system - all.loop)
	endsShare := min(max(float64(all.system-all.reading)/ends, 0), 1)
	within := 0
	for _, r := range runs {
		whole := float64(r.user + r.system)
		want := float64(r.reading) + endsShare*(whole-float64(r.loop))
		sd := math.Sqrt(ostime.TickVariance(r.user, r.system))
		if math.Abs(float64(r.system)-want) <= 1.96*sd {
			within++
		}
		if sd > 0.3*whole {
			t.Errorf("%v and %v: ±%v", r.user, r.system, time.Duration(sd))
		}
	}
	t.Logf("%.1f %% in the kernel, %.1f %% of the ends (%.1f %% of all); %d of %d runs within their errors",
		100*share, 100*endsShare, 100*ends/float64(all.user+all.system), within, len(runs))
	if least := leastWithin(len(runs)); within < least {
		t.Errorf("%d of %d runs are within their errors, want %d", within, len(runs), least)
	}
}

// TestLikelyUser divides times of few ticks, and of many.
func TestLikelyUser(t *testing.T) {
	const brief, long = 10 * time.Millisecond, 10 * time.Second
	all, none := ostime.LikelyUser(brief, 0), ostime.LikelyUser(0, brief)
	if all == brief && none == 0 {
		t.Skip("the kernel divides times without ticks")
	}
	if all <= brief/2 || all >= brief || none <= 0 || (all+none-brief).Abs() > time.Microsecond {
		t.Errorf("%v and %v of %v", all, none, brief)
	}
	if got := ostime.LikelyUser(long, 0); got < long*99/100 || got > long {
		t.Errorf("%v of %v", got, long)
	}
}
