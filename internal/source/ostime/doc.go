// Package ostime says what the threads of a program did with their time, as the
// Linux kernel tells in /proc: how long they ran, waited for a processor, and
// were blocked.
//
// It is one of the packages of the third step of the flow
//
//	model → plan → source → counts → account → report
//
// and adds its columns to the tables of another source, which says when an
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
// (/proc/PID/task/TID/schedstat), but forgets it with the thread. It tells who has
// CAP_NET_ADMIN in no namespace of users or processes of each thread that ends
// (taskstats, Spec.Listen): then nothing is missed, and threads that run are looked
// at in /proc when a table is made. Of its running it tells what a thread did until its
// last tick or switch; what is missing of that is known of all threads together.
//
// Without that /proc is looked at every [Every] or less often, and a last time when a
// command has ended and is not yet waited for, and when an interval ends. What a thread
// did between the last look at it and its end is missing, and so is a thread that
// nobody looked at; by how much processor time they differ from what the parent
// of the command was told (wait4) is said in a note, and that time is added.
//
// A thread's time is from its beginning, or the start of the counting, to its end or the
// last look at it; it was blocked when it neither ran nor waited for a processor.
// The kernel tells how long a thread has lived when it has ended; of others it tells in
// ticks of 10 ms when they began: the cells' variances are those of this. Who is not
// told when the command ended takes the time until that is seen for blocked.
package ostime
