// Package perfevent counts with the kernel's perf_event_open: it finds what
// the machine can count, opens events in groups on a command, on processes,
// on cgroups or on processors, and yields what they counted as tables.
//
// It is one of the packages of the third step of the flow
//
//	model → plan → source → counts → account → report
//
// and knows no models: it is told groups of events, and who made them up does
// not matter to it.
//
//	sys, err := perfevent.ReadSystem(os.DirFS("/"))
//	event, err := sys.Resolve("page-faults")
//	run, err := perfevent.Start(ctx, sys, perfevent.Spec{
//		Groups: [][]perfevent.Event{{event}},
//		Target: perfevent.Target{Command: []string{"ls"}},
//	})
//	defer run.Close()
//	for run.Next() {
//		fmt.Println(run.Table().Cell(0, 0).Value)
//	}
//
// # What is exact and what is estimated
//
// An event that was on a counter all of the time that it was enabled is
// counted exactly. One that took turns with others is scaled by its time
// enabled to its time running, for each interval and for each place where it
// was opened (a processor, a task) before these are summed. So the sum of the
// intervals is the total, and a phase of the program in which an event was
// seen for long does not outweigh one in which it was seen briefly. An
// interval in which an event was never on a counter is a gap
// ([counts.NotCounted]) and not 0.
//
// # Commands
//
// A command is counted from the moment at which the kernel executes its
// program, as perf does it: the counters are opened, disabled, on the thread
// that is going to start the command, are inherited by the new process and
// enabled by the kernel within its execve (inherit and enable_on_exec). The
// starting thread's own counters stay disabled. That needs no helper program
// between, no stopped process and no ptrace, which container runtimes may
// forbid and with which set-user-ID programs lose their privileges.
//
// Only what cannot be inherited (threads kept apart, [Spec].NoInherit) is
// opened on the command's own process; it is then stopped by ptrace at its
// first instruction, and let go when the counters are there.
//
// # Processes
//
// Counters of a process are opened on each of its threads and inherited by
// those that come later.
package perfevent
