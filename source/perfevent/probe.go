package perfevent

// A Probe is what was found by opening events: for telling the user what can
// be counted, and for choosing a plan's options.
type Probe struct {
	Supported  bool // the kernel has perf_event_open, and lets it be called
	Counters   int  // general counters that can be used at one time; 0 if there is no PMU
	Watchdog   bool // proc/sys/kernel/nmi_watchdog: it holds a counter of each processor
	SMT        bool
	Paranoid   int  // proc/sys/kernel/perf_event_paranoid; 2, the kernel's default, where it cannot be read
	CapPerfmon bool // CAP_PERFMON or CAP_SYS_ADMIN effective
	// UserNamespace says that it is not the first one. Capabilities then do not count for
	// the kernel's counters (perfmon_capable, include/linux/capability.h).
	UserNamespace bool
	Seccomp       bool        // a filter of system calls is at work
	Hypervisor    string      // "" for none
	Slots         bool        // PERF_METRICS groups led by slots open
	Errors        []OpenError // by scope: own task user only, own task with kernel, system wide
}
