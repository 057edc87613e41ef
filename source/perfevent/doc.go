// Package perfevent counts with the kernel's perf_event_open. It finds what the
// machine can count. It opens groups of events on a command, on processes, on cgroups
// or on processors. It yields what they counted as tables, and takes samples.
//
// It belongs to the third step of the flow
//
//	model → plan → source → counts → account → report
//
// It knows no models: its callers say which groups of events to count.
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
// An event that was on a counter all of its enabled time is counted exactly. A
// multiplexed event is scaled by its time enabled to its time running. That is done for
// each interval and each place where it was opened, before these are summed. A place is a
// processor or a task. So the intervals sum to the total. A phase has no more weight than
// others if an event was counted for longer then. If an event was never on a counter in
// an interval, that is a gap ([counts.NotCounted]) and not 0.
//
// # Commands
//
// A command is counted from the moment when the kernel executes its program, as perf
// does it. The counters are opened disabled on the thread that starts the command. The
// new process inherits them, and the kernel enables them within its execve (inherit and
// enable_on_exec). The starting thread's own counters stay disabled. That needs no
// helper program, no stopped process and no ptrace. Container runtimes may forbid
// ptrace, and set-user-ID programs lose their privileges under it.
//
// Counters that cannot be inherited (counts split by thread, [Spec].NoInherit) are
// opened on the command's own process. It is stopped by ptrace at its first
// instruction, and continues when the counters are open.
//
// # Processes
//
// Counters of a process are opened on each of its threads. Later threads inherit them.
//
// # What the package promises
//
// The names follow the compatibility rule of the module. On systems other than Linux
// the package builds, and counting fails with an error that says so. Errors name no
// flags of any program: [TargetError] has a typed fix.
package perfevent
