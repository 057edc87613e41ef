package main

import (
	"regexp"
	"strings"
)

// A unitRule says what one count of the events of some names is. The first rule
// of a list that matches a name holds; "" is an event that is just an event.
type unitRule struct {
	pattern *regexp.Regexp
	unit    string
}

func unitOf(rules []unitRule, name string) string {
	for _, r := range rules {
		if r.pattern.MatchString(name) {
			return r.unit
		}
	}
	return ""
}

func rule(pattern, unit string) unitRule {
	return unitRule{regexp.MustCompile(pattern), unit}
}

// intelUnit says what one count of an event is. Two bits of the code say it
// without looking at the name: with a counter mask an event counts cycles, and
// with edge detection how often something began.
func intelUnit(e *event) string {
	switch {
	case e.config&edgeBit != 0:
		return ""
	case e.name == "FP_ASSIST.ANY": // the mask only keeps an assist with two causes from counting twice
		return ""
	case e.config&cmaskBits != 0:
		return "cycles"
	}
	return unitOf(intelUnits, e.name)
}

// intelUnits: what accumulates something over cycles (outstanding requests,
// pending misses, occupied dividers) has the unit cycles too, as a request's
// share of it is a latency.
var intelUnits = []unitRule{
	// Names that contain a word of a later rule and mean something else.
	rule(`^PARTIAL_RAT_STALLS\.(MUL_SINGLE_UOP|FLAGS_MERGE_UOP)$`, "uops"),
	rule(`^INT_MISC\.MBA_STALLS$|^L2_NO_REQ|^RS\.EMPTY_RESOURCE$`, "cycles"),
	rule(`_STALL_PERIODS$|\.STALL_PERIODS$|_EMPTY_END$|\.EMPTY_COUNT$`, ""),
	rule(`^STALL_CORE_BOUND\.|^SNOOP_STALL_DRV\.|^SERIALIZATION\.`, ""),
	rule(`^UOPS_(EXECUTED|DISPATCHED)(_PORT)?\.PORT`, ""),

	// Slots.
	rule(`^slots$|^PERF_METRICS\.`, "slots"),
	rule(`^TOPDOWN(_RETIRING|_BAD_SPECULATION|_FE_BOUND|_BE_BOUND)?\.`, "slots"),
	rule(`^UOPS_RETIRED\.(SLOTS|RETIRE_SLOTS)$`, "slots"),
	rule(`^IDQ_UOPS_NOT_DELIVERED\.CORE$|^IDQ_BUBBLES\.(CORE|FETCH_LATENCY|BW_STARVATION)$`, "slots"),
	rule(`^UOPS_NOT_DELIVERED\.ANY$|^ISSUE_SLOTS_NOT_CONSUMED\.|^INT_MISC\.UOP_DROPPING$`, "slots"),

	// Instructions. A REP instruction has many iterations.
	rule(`^INST_RETIRED\.REP_ITERATION$`, ""),
	rule(`^INST_RETIRED\.`, "instructions"),
	rule(`^instructions$`, "instructions"),

	// Cycles of other clocks than the core's.
	rule(`^CPU_CLK(_THREAD)?_UNHALTED\.(REF_XCLK(_ANY)?|ONE_THREAD_ACTIVE|REF_DISTRIBUTED|BUS|REF_P)$`, "bus_cycles"),
	rule(`^bus-cycles$`, "bus_cycles"),
	rule(`^BUS_(DRDY|LOCK)_CLOCKS\.`, "bus_cycles"),

	// Cycles of the core's.
	rule(`^CPU_CLK_UNHALTED\.`, "cycles"),
	rule(`^(cycles|ref-cycles|stalled-cycles-(frontend|backend))$`, "cycles"),
	rule(`(^|[._])CYCLES?($|[._])`, "cycles"),
	rule(`(^|[._])(STALL|STALLS|STALLED)($|[._\d])`, "cycles"),
	rule(`(WALK_DURATION|WALK_PENDING|WALK_ACTIVE|DURATION|DIV_OCCUPANCY|DIV_ACTIVE|DIVIDER_ACTIVE)$`, "cycles"),
	rule(`^(RESOURCE_STALLS2?|MEM_BOUND_STALLS\w*|C0_STALLS|MEMORY_STALLS|RAT_STALLS|ILD_STALL|FETCH_STALL|DECODE_STALL|BE_STALLS)\.`, "cycles"),
	rule(`^(CYCLE_ACTIVITY|MEMORY_ACTIVITY|EXE_ACTIVITY|CYCLES_DIV_BUSY|NO_ALLOC_CYCLES|LD_HEAD|CORE_POWER|CPL_CYCLES)\.`, "cycles"),
	rule(`^(CYCLES_DIV_BUSY|SEG_RENAME_STALLS|SQ_FULL_STALL_CYCLES|OFFCORE_REQUESTS_SQ_FULL)$`, "cycles"),
	rule(`^(OFFCORE_REQUESTS_OUTSTANDING|SNOOPQ_REQUESTS_OUTSTANDING)\.`, "cycles"),
	rule(`^L1D_PEND_MISS\.PENDING$|^L1D_PENDING\.LOAD$|^RS\.EMPTY$|^DECODE\.(LCP|MS_BUSY)$|^IDQ\.EMPTY$`, "cycles"),

	// Uops.
	rule(`^UOPS_(ISSUED|EXECUTED|RETIRED|DISPATCHED)\.`, "uops"),
	rule(`^IDQ\.\w*_UOPS$|^LSD\.UOPS$|^UOPS_DECODED\.\w*UOPS$|^ARITH\.\w*_UOPS$`, "uops"),
}

var amdUnits = []unitRule{
	rule(`^ls_not_halted_cyc$|^ls_not_halted_p0_cyc|^cycles$|^ref-cycles$|^stalled-cycles-`, "cycles"),
	rule(`^ex_ret_instr$|^instructions$`, "instructions"),
	rule(`^(ex_ret_ops|ex_ret_cops|ex_ret_ucode_ops)$|^de_src_op_disp\.|^de_op_queue_empty_ops`, "uops"),
	rule(`^de_no_dispatch_per_slot\.`, "slots"),
	rule(`(^|[._])(cycles?|cyc|stalls?)($|[._])`, "cycles"),
	rule(`^ex_no_retire\.|^de_no_dispatch_per_cycle\.|^de_op_queue_empty$|^ex_div_busy$`, "cycles"),
	rule(`^de_dis_dispatch_token_stalls?[12]\.|^de_dispatch_stall_cycle_dynamic_tokens_part[12]\.`, "cycles"),
}

var armUnits = []unitRule{
	rule(`^STALL_SLOT`, "slots"),
	rule(`^(CPU_CYCLES|CNT_CYCLES|cycles)$`, "cycles"),
	rule(`^BUS_CYCLES$`, "bus_cycles"),
	rule(`^STALL($|_)`, "cycles"),
	rule(`^IMP_STALL_|_CYCLES?$`, "cycles"),
	rule(`^INST_(RETIRED|SPEC)$`, "instructions"),
	rule(`^OP_(RETIRED|SPEC)$`, "uops"),
}

var powerUnits = []unitRule{
	rule(`^PM_(RUN_)?INST_CMPL$|^PM_INST_DISP$|^PM_RUN_INST_CMPL_CONC$`, "instructions"),
	rule(`^PM_1PLUS_PPC_CMPL$|^PM_GRP_CMPL$|^PM_1PLUS_PPC_DISP$`, "cycles"),
	rule(`^PM_(CMPLU|DISP|EXEC|CMPL|ISSUE|NTC|LSU|FXU)_STALL|^PM_STALL_END|^PM_(GCT|ICT)_NOSLOT|^PM_ICT_EMPTY`, "cycles"),
	rule(`_CYC$|^cycles$|^PM_\w*_CYC_(INST|EXEC)`, "cycles"),
	rule(`^PM_NTC_ISSUE_HELD|^PM_GRP_IC_MISS_NONSPEC$`, ""),
}

// lowerUnit is unitOf for rules that know names in lower case only.
func lowerUnit(rules []unitRule, name string) string {
	return unitOf(rules, strings.ToLower(name))
}
