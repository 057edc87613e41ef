package latency

// A Facility is the hardware that measures the latencies of loads on a kind of processor.
type Facility struct {
	Name string // "PEBS load latency"
	// From and To say where the latency begins and ends, and what is part of it.
	Meaning string
	// Instruction says what a sample's second latency is (var2_w of the kernel's union
	// perf_sample_weight), "" if unknown or without one.
	Instruction string
	// Chosen says which loads can be sampled.
	Chosen string
}

// FacilityOf returns what processors of a vendor measure: "intel", "amd", "arm" or "ibm".
// It is not ok for others.
//
// Sources: for Intel the Software Developer's Manual, volume 3B, sections on the load
// latency performance monitoring facility (Nehalem: from dispatch until the data is
// globally observable; Sandy Bridge and later: from the first dispatch until the final
// write-back, with re-dispatches), and on the random choice of loads. For AMD Linux commit
// 6b2ae4952ef8 (perf/x86/amd: Support PERF_SAMPLE_{WEIGHT|WEIGHT_STRUCT}) and IbsDcMissLat
// and IbsTagToRetCtr in the Processor Programming References. For Arm the Architecture
// Reference Manual, section on the Statistical Profiling Extension, total latency: perf's
// arm_spe_sample uses it as the weight. For IBM the function isa207_get_mem_weight of
// Linux.
func FacilityOf(vendor string) (f Facility, ok bool) {
	f, ok = facilities[vendor]
	return f, ok
}

var facilities = map[string]Facility{
	"intel": {
		Name: "PEBS load latency",
		Meaning: "from the load's first dispatch until its data is written back, in core cycles. A load that is dispatched again (replayed) counts once, " +
			"and its wait raises the mean. It is more than what a waiting instruction sees. The wait for a fill under way (LFB) is part of it",
		Instruction: "the instruction's latency, which processors since Golden Cove measure",
		Chosen:      "the processor draws loads at random and follows one at a time; the others are not counted either",
	},
	"amd": {
		Name: "IBS op",
		Meaning: "from the miss of the level-1 cache until the data is delivered to the core, in core cycles: " +
			"loads that hit the level-1 cache have no latency, and are not part of this",
		Instruction: "from when the op was chosen until it retired",
		Chosen:      "the processor chooses one op at a time; those that did not retire are not counted",
	},
	"arm": {
		Name: "SPE",
		Meaning: "total latency: from when the operation was dispatched for issue until it was complete, in core cycles, " +
			"with its wait to be issued and its address's translation",
		Chosen: "the processor chooses one operation at a time, at intervals with some chance in them",
	},
	"ibm": {
		Name: "marked-instruction threshold counter",
		Meaning: "between the two events of the marked instruction that the event asks for (thresh_start and thresh_stop), in cycles, " +
			"kept with fewer digits the longer it is",
		Chosen: "the processor marks one instruction at a time",
	},
}
