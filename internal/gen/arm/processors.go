package main

// A processor is one model file.
type processor struct {
	stem    string   // of the model file
	title   string   // of the model
	cpus    []string // as in cpus.toml
	files   []string // of the telemetry data, for its revisions, which must agree
	extends string   // stem of the model that this one changes
	about   string   // what the model says of itself; "" is that of the one it extends

	// cycles says that the processor counts stalled cycles but no slots. Its
	// tree divides cycles.
	cycles bool

	// spurious names the events that count a slot in every cycle though there
	// is no stall: an erratum of the revision, which its formulas take off.
	spurious bool
}

var processors = []processor{
	{
		stem: "neoverse-v1", title: "Arm Neoverse V1", cpus: []string{"neoverse-v1"},
		files: []string{"neoverse/neoverse-v1"}, about: slotsAbout,
	},
	{
		stem: "neoverse-n1", title: "Arm Neoverse N1", cpus: []string{"neoverse-n1"},
		files: []string{"neoverse/neoverse-n1"}, extends: "neoverse-v1", about: cyclesAbout, cycles: true,
	},
	{
		stem: "neoverse-n2", title: "Arm Neoverse N2, r0p0 to r0p2", cpus: []string{"neoverse-n2"},
		files: []string{"neoverse/neoverse-n2"}, extends: "neoverse-v1", about: slotsAbout + spuriousAbout, spurious: true,
	},
	{
		stem: "neoverse-n2-r0p3", title: "Arm Neoverse N2, r0p3 and later", cpus: []string{"neoverse-n2-r0p3"},
		files: []string{"neoverse/neoverse-n2-r0p3"}, extends: "neoverse-n2", about: slotsAbout,
	},
	{
		stem: "neoverse-v2", title: "Arm Neoverse V2", cpus: []string{"neoverse-v2"},
		files: []string{"neoverse/neoverse-v2"}, extends: "neoverse-v1",
	},
	{
		stem: "neoverse-n3", title: "Arm Neoverse N3", cpus: []string{"neoverse-n3"},
		files: []string{"neoverse/neoverse-n3"}, extends: "neoverse-v2", about: levelsAbout,
	},
	{
		stem: "neoverse-v3", title: "Arm Neoverse V3 and V3AE", cpus: []string{"neoverse-v3"},
		files: []string{"neoverse/neoverse-v3"}, extends: "neoverse-n3",
	},
	{
		stem: "c1-pro", title: "Arm C1-Pro", cpus: []string{"c1-pro"},
		files:   []string{"lumex/arm-c1-pro-r0p0-pmu", "lumex/arm-c1-pro-r1p1-pmu", "lumex/arm-c1-pro-r1p2-pmu"},
		extends: "neoverse-n3", about: levelsAbout + waitAbout,
	},
	{
		stem: "c1-premium", title: "Arm C1-Premium and C1-Ultra", cpus: []string{"c1-premium", "c1-ultra"},
		files: []string{"lumex/arm-c1-premium-r0p0-pmu", "lumex/arm-c1-ultra-r0p0-pmu"}, extends: "c1-pro",
	},
	{
		stem: "c1-nano", title: "Arm C1-Nano", cpus: []string{"c1-nano"},
		files: []string{"lumex/arm-c1-nano-r0p0-pmu"}, extends: "c1-pro", about: levelsAbout,
	},
}

const slotsAbout = `Asks of every issue slot of the pipeline what became of it: an operation that retired (retiring), ` +
	`one that was thrown away later (bad_speculation), nothing because the front end brought none (frontend_bound), or ` +
	`nothing because the back end had no room (backend_bound).

The slots that stayed empty are counted, with the end that was to blame. Those that a mispredicted branch cost are ` +
	`estimated from the number of mispredictions, and moved to bad_speculation; where BR_MIS_PRED was not counted they ` +
	`stay where they were. The four sum to 1, as far as the counts were taken at the same time. There is no second level: what the largest of them means, the sections on branches, caches, ` +
	`TLBs and operations tell.`

const spuriousAbout = `

These revisions count one stalled slot too many in every cycle, in STALL_SLOT and in STALL_SLOT_FRONTEND. The formulas ` +
	`take it off; those of r0p3 and later must not, so the two are different processors here.`

const levelsAbout = `Asks of every issue slot of the pipeline what became of it: an operation that retired (retiring), ` +
	`one that was thrown away later (bad_speculation), nothing because the front end brought none (frontend_bound), or ` +
	`nothing because the back end had no room (backend_bound). The four sum to 1, as far as the counts were taken at the ` +
	`same time.

Below frontend_bound and backend_bound the shares are of another kind: of the stalled cycles of the node above them, as ` +
	`their titles say, and not of all slots. So they say where to look in what the node above has lost; they do not add up to ` +
	`it. Levels below the first come from more events than the counters take at once.`

const waitAbout = `

Cycles when the core waits for an interrupt or an event (WFI, WFE) with its clock running are subtracted.`

const cyclesAbout = `Divides the cycles into those when at least one operation was issued and those when none was, ` +
	`because the front end had brought none or because the back end had no room.

This processor does not count issue slots, so that a cycle that issued one operation counts as busy however many more there ` +
	`was room for; and what was lost to mispredicted branches is not told from other time that the front end lost. What the ` +
	`larger part means, the sections on branches, caches, TLBs and operations tell.`
