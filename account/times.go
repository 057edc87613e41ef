package account

import "slices"

// Nodes of Account.Times.
const (
	timeThreads    = "Threads"
	timeRan        = "CPUs_Utilised"
	timeQueued     = "Runqueue_Wait"
	timeBlocked    = "Blocked"
	timeProcessors = "Processors"
	timeIdle       = "Idle"
)

// oneThread is the largest average number of threads whose figures are shares of one
// thread's time.
const oneThread = 1.05

// allThere is the least share of elapsed time with the program's threads that needs
// no remark. The rest is its start, and the time until its end was noticed.
const allThere = 0.98

// Waiting returns the node of an account of times that decides the elapsed time, instead of
// cycles: what threads or processors mostly did instead of running. It is "" if they ran. The
// share is of their time, and may be a lower bound.
func (a *Account) Waiting() (node string, share float64, atLeast bool) {
	mostly := func(name string) bool {
		i, ok := a.Node(name)
		return ok && slices.Contains(a.Bottleneck, i)
	}
	threads := a.Value(timeThreads)
	i, processors := a.Node(timeIdle)
	switch {
	case processors && a.Nodes[i].Flagged:
		return timeIdle, a.Value(timeIdle) / a.Value(timeProcessors), false
	case mostly(timeQueued):
		return timeQueued, a.Value(timeQueued) / threads, false
	case mostly(timeBlocked):
		return timeBlocked, min(threads, 1) - a.Value(timeRan) - a.Value(timeQueued), threads > oneThread
	}
	return "", 0, false
}

// Threads judges the number of threads of an account of times. If they are alone, their
// figures are shares of one thread's time. If they came late, they existed for a part of the
// elapsed time only.
func (a *Account) Threads() (alone, late bool) {
	n := a.Value(timeThreads)
	return n <= oneThread, n < allThere
}

// errorMatters is the smallest part of a figure that an error must have to be told with it.
const errorMatters = 0.1

// ErrorMatters reports whether a sentence with the value needs its error.
func (v *Value) ErrorMatters() bool { return v.Error > errorMatters*v.Value }
