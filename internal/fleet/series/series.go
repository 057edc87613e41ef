// Package series names the metrics and labels that the exporter writes and that the fleet's
// account asks a store for. Every counter adds up: over hosts, over time, over labels of one
// scope. Nothing here knows a store or a source.
//
// A node's numerator is a counter of its level, and the denominator has the same group:
//
//	sum(rate(cyclestack_l1_slots_total{scope="workload"}[5m])) by (node, group, service)
//	/ ignoring(node) group_left
//	sum(rate(cyclestack_slots_total{scope="workload"}[5m])) by (group, service)
package series

import "fmt"

// A Unit is what an account divides: its nodes have counters in it, and so has the whole.
type Unit struct {
	Name  string // in the model's words, as account.Binding.PartUnit has it
	Whole string // the counter of the whole, by group
	node  string // the counter of the nodes of a level
}

// Node returns the counter of the nodes of a level, 1 and deeper.
func (u Unit) Node(level int) string { return fmt.Sprintf(u.node, level) }

// The units of accounts. CPUSeconds is the unit of the operating system's account.
var (
	Slots      = Unit{"slots", "cyclestack_slots_total", "cyclestack_l%d_slots_total"}
	Cycles     = Unit{"cycles", "cyclestack_cycles_total", "cyclestack_l%d_cycles_total"}
	CPUSeconds = Unit{"processors", "cyclestack_whole_cpu_seconds_total", "cyclestack_l%d_cpu_seconds_total"}
	Units      = []Unit{Slots, Cycles, CPUSeconds}
)

// The counters of what is no node. Those of the operating system come from its own files
// and are there without a PMU.
const (
	Instructions    = "cyclestack_instructions_total"     // by group: of the same windows as the whole
	CPU             = "cyclestack_cpu_seconds_total"      // by mode, from the operating system
	Idle            = "cyclestack_idle_cpu_seconds_total" // of a host, by mode: idle, iowait, steal
	RunQueue        = "cyclestack_run_queue_seconds_total"
	Pressure        = "cyclestack_pressure_seconds_total" // by resource and kind
	Throttled       = "cyclestack_throttled_seconds_total"
	ContextSwitches = "cyclestack_context_switches_total"
	Enabled         = "cyclestack_group_enabled_seconds_total" // by group, summed over processors
	Running         = "cyclestack_group_running_seconds_total"
	Windows         = "cyclestack_windows_total" // by group and result
	ModelInfo       = "cyclestack_model_info"    // 1, by model, model_version, cpu, method
	BuildInfo       = "cyclestack_agent_build_info"
	Cost            = "cyclestack_agent_cost_seconds_total"
	Budget          = "cyclestack_agent_budget_ratio"
	CostRatio       = "cyclestack_agent_cost_ratio" // over the last minutes, of all processors
	Duty            = "cyclestack_agent_duty_ratio" // by group
	Dropped         = "cyclestack_agent_series_dropped_total"
	Active          = "cyclestack_agent_series"
	Memory          = "cyclestack_agent_resident_bytes"
	Errors          = "cyclestack_agent_errors_total"  // by part
	Reloads         = "cyclestack_agent_reloads_total" // by result
	Pushes          = "cyclestack_agent_pushes_total"  // by kind and result
	Containers      = "cyclestack_agent_containers"    // that are there now
	Ended           = "cyclestack_containers_ended_total"
	Processors      = "cyclestack_processors" // that are online
)

// The labels. A label without a value is left out.
const (
	Model        = "model"
	ModelVersion = "model_version"
	Processor    = "cpu"       // by the catalogue's name
	CoreType     = "core_type" // on hybrid processors only
	Socket       = "socket"    // of scope host only
	Scope        = "scope"
	Service      = "service"
	Namespace    = "namespace"
	Pod          = "pod"
	Container    = "container"
	Method       = "method"
	Group        = "group"
	Node         = "node"
	Mode         = "mode"
	Resource     = "resource"
	Kind         = "kind"
	Result       = "result"
)

// The scopes. Each has all that it is about: the processors, what ran in cgroups, what ran in
// containers. So scopes are never summed together.
const (
	Host        = "host"
	Workload    = "workload"
	ByContainer = "container"
)

// The methods. A series has one.
const (
	PMU       = "pmu"
	Bursts    = "pmu-bursts" // groups read when a processor changes its cgroup, part of the time
	OS        = "os"
	Clock     = "clock"
	Replayed  = "replay"
	Simulated = "simulated"
)

// The results of windows. Only those that are OK are in the counters.
const (
	OK          = "ok"
	Unscheduled = "unscheduled" // a node's group was never on the counters
	Lost        = "lost"        // the window could not be read, or records of it were lost
	Implausible = "implausible" // the counts contradict each other or the time that passed
)

// Other is the name of what is summed beyond the most that have series of their own.
const Other = "other"
