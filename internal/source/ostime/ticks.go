package ostime

import (
	"math"
	"time"

	"github.com/cyclestack/cyclestack/counts"
)

// The [counts.Column.Whole] of processor time.
const (
	ProgramTimes = 1 + iota // of user_time and system_time
	threadTimes             // of thread_user and thread_system
)

// TickVariance is the variance of the user and of the system time of what has ended, in
// ns². Their sum is exact. On most kernels ticks of a clock divide it: each is given to
// the mode that it finds. So the ticks are a sample of the time. A mode without
// ticks may still have had time. Therefore 1.96 deviations reach the farther end of
// Wilson's interval for the share of a mode. Kernels with virtual CPU accounting, the default
// on POWER servers, take the time at each change of the mode. They do better, and do not
// say so.
//
// Sources: kernel/sched/cputime.c, account_process_tick and cputime_adjust; E. B. Wilson,
// Probable inference, the law of succession, and statistical inference, Journal of the
// American Statistical Association 22 (1927).
func TickVariance(user, system time.Duration) float64 {
	whole, n := inTicks(user, system)
	if n == 0 {
		return 0
	}
	const z = counts.Confidence
	share := float64(system) / whole
	half := z / (1 + z*z/n) * math.Sqrt(share*(1-share)/n+z*z/(4*n*n))
	deviation := whole * (math.Abs(middle(share, n)-share) + half) / z
	return deviation * deviation
}

// inTicks returns the processor time, and how many ticks it is; 0 if that is not known.
func inTicks(user, system time.Duration) (whole, n float64) {
	whole = float64(user + system)
	if tick := tickTime(); tick > 0 && whole > 0 {
		n = whole / tick
	}
	return whole, n
}

// middle returns the middle of Wilson's interval for a share of so many ticks.
func middle(share, n float64) float64 {
	const z = counts.Confidence
	return (share + z*z/(2*n)) / (1 + z*z/n)
}

// LikelyUser returns the user time to expect of what has ended. A few ticks may all have found it in one mode.
func LikelyUser(user, system time.Duration) time.Duration {
	whole, n := inTicks(user, system)
	if n == 0 {
		return user
	}
	return time.Duration(whole * middle(float64(user)/whole, n))
}
