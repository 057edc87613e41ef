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

// A Wait is what threads or processors mostly did instead of running.
type Wait struct {
	Node    string  // of Account.Times; "" if they mostly ran
	Share   float64 // of their time
	AtLeast bool    // Share is a lower bound
}

// Waiting returns the wait that decides the elapsed time, instead of cycles, of an account
// of times.
func (a *Account) Waiting() Wait {
	mostly := func(name string) bool {
		i, ok := a.Node(name)
		return ok && slices.Contains(a.Bottleneck, i)
	}
	threads := a.Value(timeThreads)
	i, processors := a.Node(timeIdle)
	switch {
	case processors && a.Nodes[i].Flagged:
		return Wait{Node: timeIdle, Share: a.Value(timeIdle) / a.Value(timeProcessors)}
	case mostly(timeQueued):
		return Wait{Node: timeQueued, Share: a.Value(timeQueued) / threads}
	case mostly(timeBlocked):
		return Wait{timeBlocked, min(threads, 1) - a.Value(timeRan) - a.Value(timeQueued), threads > oneThread}
	}
	return Wait{}
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
