package perfevent

// An Event is one that the kernel is asked to count.
type Event struct {
	Name  string // as tables call it (counts.Column.Event); the plan's name for it
	PMU   *PMU   // nil for generic and software events
	Alike []*PMU // further PMUs of the same kind: the event is counted on each and summed (uncore_imc_1, … after uncore_imc_0)
	Attr  Attr
	Scale float64 // factor of a raw count (…events/NAME.scale); 0 is 1
	Unit  string  // of the scaled count: "ns", "Joules"; "" for a plain count

	Named bool // the user named it (counts.Column.Named)

	Filter string // what fields of a tracepoint must be to count, in the kernel's spelling: "prev_pid > 0"; "" for no condition

	tool  toolKind
	probe bool // a tracepoint that is a breakpoint in code, of a program or of the kernel
}

// A toolKind is what an event without a counter is: perf calls such events tool events.
type toolKind uint8

const (
	noTool      toolKind = iota
	elapsedTime          // duration_time
	userTime             // user_time, of a command that has ended
	systemTime           // system_time
)
