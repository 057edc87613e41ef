package ostime

import "time"

// The [counts.Column.Whole] of processor time.
const (
	ProgramTimes = 1 + iota // of user_time and system_time
	threadTimes             // of thread_user and thread_system
)

// TickVariance is the variance of the user and of the system time of what has ended, in
// ns². Their sum is exact. What divides it on most kernels are ticks of a clock: each is
// given to the mode that it finds. So the division is that of a sample, of so many as
// there were ticks; half a tick is added to both modes, as a mode that no tick has found
// need not have been without time. Kernels that take the time at each change of the mode
// (virtual CPU accounting, the default on POWER servers) do better, and do not say that
// they do.
//
// Source: kernel/sched/cputime.c, account_process_tick and cputime_adjust.
func TickVariance(user, system time.Duration) float64 {
	tick := tickTime()
	whole := float64(user + system)
	if tick <= 0 || whole <= 0 {
		return 0
	}
	n := whole / tick
	share := (n*float64(system)/whole + 0.5) / (n + 1)
	return whole * whole * share * (1 - share) / (n + 1)
}
