package ostime_test

import (
	"math"
	"os"
	"os/exec"
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
	zeros := make([]byte, 1<<20)
	f, err := os.Open("/dev/zero")
	if err != nil {
		t.Fatal(err)
	}
	var used unix.Timespec // getrusage would make the kernel divide the time again and again, and each part only grows
	for spent := time.Duration(0); spent < 40*time.Millisecond; {
		for range 3 {
			_, _ = f.Read(zeros)
		}
		x := 1.0
		for range 200_000 {
			x = x*1.0000001 + 1e-9
		}
		if math.IsInf(x, 0) {
			t.Fatal(x)
		}
		if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &used); err != nil {
			t.Fatal(err)
		}
		spent = time.Duration(used.Nano())
	}
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

// TestTickVariance runs one program several times. In 95 of 100 runs the kernel's share
// differs from that of all runs by no more than its error.
func TestTickVariance(t *testing.T) {
	runs := testlong.Size(20, 60)
	user, system := make([]time.Duration, runs), make([]time.Duration, runs)
	var all [2]time.Duration
	for i := range runs {
		c := exec.Command(os.Args[0], "-test.run=^TestTicksHelper$")
		c.Env = append(os.Environ(), ticksHelper+"=1")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		user[i], system[i] = c.ProcessState.UserTime(), c.ProcessState.SystemTime()
		all[0], all[1] = all[0]+user[i], all[1]+system[i]
	}
	share := float64(all[1]) / float64(all[0]+all[1])
	if share < 0.02 || share > 0.98 {
		t.Skipf("%.0f %% of the time is the kernel's: there is nothing to divide", 100*share)
	}
	within := 0
	for i := range runs {
		whole := float64(user[i] + system[i])
		sd := math.Sqrt(ostime.TickVariance(user[i], system[i]))
		if math.Abs(float64(system[i])-share*whole) <= 1.96*sd {
			within++
		}
		if sd > 0.3*whole {
			t.Errorf("%v and %v: ±%v", user[i], system[i], time.Duration(sd))
		}
	}
	t.Logf("%.1f %% in the kernel; %d of %d runs within their errors", 100*share, within, runs)
	if least := leastWithin(runs); within < least {
		t.Errorf("%d of %d runs are within their errors of all runs' share, want %d", within, runs, least)
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
