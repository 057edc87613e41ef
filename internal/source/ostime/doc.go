// Package ostime says what the threads of a program did with their time: how long
// they ran, waited in the run queue, and were blocked. It reads the files of /proc and
// the kernel's records of threads that end.
//
// It belongs to the third step of the flow
//
//	model → plan → source → counts → account → report
//
// It adds its columns to the tables of another source. That source says when an
// interval or a run ends:
//
//	w := ostime.New(os.DirFS("/"), ostime.Spec{PIDs: []int{1234}})
//	defer w.Close()
//	w.Attach()
//	…
//	table = w.Join(table)
//
// # What is exact and what is estimated
//
// The kernel keeps account of each thread's time to the nanosecond
// (/proc/PID/task/TID/schedstat), and forgets it when the thread ends. With
// CAP_NET_ADMIN, outside of user and PID namespaces, it sends a record of each thread
// that ends (taskstats, Spec.Listen). Then no thread is missed, and /proc is read only
// when a table is made. A record has the running time until the last tick or switch.
// The rest is known as a sum over all threads.
//
// Without these records /proc is polled every [Every] or less often. A last poll comes
// when an interval ends, or when the command has ended and was not yet waited for. What a
// thread did after the last poll is missing, and so is a thread between two polls. The
// processor time that wait4(2) says of the command shows how much that is: it is added,
// and a note says how much it was.
//
// A thread's time is from its beginning, or the start of counting, to its end or the
// last poll. It was blocked when it neither ran nor waited for a processor. The kernel
// says exactly how long a thread that ended has lived. Of other threads it says the
// tick of 10 ms when they began. The cells' variances come from this. Without an exit
// notification, time until the next poll is counted as blocked.
package ostime
