package model

import (
	"slices"
	"sync"
)

// Layouts are the formats of the event code, perf_event_attr.config, that the
// kernel's PMU drivers publish under /sys/bus/event_source/devices/*/format.
const (
	layoutIntel = "intel"
	layoutAMD   = "amd"
	layoutArm   = "arm"
	layoutPower = "power"
	layoutRISCV = "riscv"
	layoutNone  = "none" // not known: codes are compared as they stand
)

var layouts = []string{layoutIntel, layoutAMD, layoutArm, layoutPower, layoutRISCV, layoutNone}

// A code is the encoding of an event.
type code struct {
	config, config1, config2 uint64
}

// A bitRange is where a part of a field's value goes: the low width bits left
// of what earlier ranges took, to bit at of word 0 (config), 1 or 2.
type bitRange struct {
	at, width uint
	word      uint8
}

// fieldsOf gives the fields of each layout.
var fieldsOf = sync.OnceValue(func() map[string]map[string][]bitRange {
	return map[string]map[string][]bitRange{
		// arch/x86/events/intel/core.c. Since Lunar Lake the unit mask has 16 bits.
		layoutIntel: {
			"event":       {{0, 8, 0}},
			"umask":       {{8, 8, 0}, {40, 8, 0}},
			"edge":        {{18, 1, 0}},
			"any":         {{21, 1, 0}},
			"inv":         {{23, 1, 0}},
			"cmask":       {{24, 8, 0}},
			"in_tx":       {{32, 1, 0}},
			"in_tx_cp":    {{33, 1, 0}},
			"eq":          {{36, 1, 0}},
			"offcore_rsp": {{0, 64, 1}},
			"snoop_rsp":   {{0, 64, 1}},
			"ldlat":       {{0, 16, 1}},
			"frontend":    {{0, 24, 1}},
		},
		// arch/x86/events/amd/core.c
		layoutAMD: {
			"event": {{0, 8, 0}, {32, 4, 0}},
			"umask": {{8, 8, 0}},
			"edge":  {{18, 1, 0}},
			"inv":   {{23, 1, 0}},
			"cmask": {{24, 8, 0}},
		},
		// drivers/perf/arm_pmuv3.c
		layoutArm: {
			"event": {{0, 16, 0}},
			"long":  {{0, 1, 1}},
		},
		// arch/powerpc/perf/power10-pmu.c and isa207-common.c
		layoutPower: {
			"event":   {{0, 60, 0}},
			"pmcxsel": {{0, 8, 0}},
			"mark":    {{8, 1, 0}},
			"combine": {{10, 2, 0}},
			"unit":    {{12, 4, 0}},
			"pmc":     {{16, 4, 0}},
		},
		// drivers/perf/riscv_pmu_sbi.c
		layoutRISCV: {
			"event":    {{0, 48, 0}},
			"firmware": {{62, 2, 0}},
		},
	}
})

// wholeWord returns which word of the code a term sets itself, if it does.
func wholeWord(key string) (word uint8, ok bool) {
	i := slices.Index([]string{"config", "config1", "config2"}, key)
	return uint8(max(i, 0)), i >= 0
}

// isCodeField reports whether a term of that name is a number in every layout
// that has it.
func isCodeField(key string) bool {
	if _, ok := wholeWord(key); ok {
		return true
	}
	for _, fields := range fieldsOf() {
		if _, ok := fields[key]; ok {
			return true
		}
	}
	return false
}

func (c *code) word(i uint8) *uint64 {
	switch i {
	case 0:
		return &c.config
	case 1:
		return &c.config1
	}
	return &c.config2
}

// set puts the value of a term into the code. It reports whether the layout has a field
// that can hold it. A later term replaces an earlier one of the same name, and what the
// event's own code had there.
func (c *code) set(layout string, t Term) bool {
	if t.Text != "" {
		return false
	}
	if w, ok := wholeWord(t.Key); ok {
		*c.word(w) = t.Value
		return true
	}
	ranges, ok := fieldsOf()[layout][t.Key]
	if !ok {
		return false
	}
	value := t.Value
	for _, r := range ranges {
		mask := uint64(1)<<r.width - 1 // all ones for 64
		w := c.word(r.word)
		*w = *w&^(mask<<r.at) | (value&mask)<<r.at
		value >>= r.width
	}
	return value == 0
}

// Bits of a code that say nothing about the event. Tools that program the
// registers themselves, and old documentation, write the select register's
// enable bits into raw codes: r53019c is event 0x9c, unit mask 1. The kernel
// masks them out (X86_RAW_EVENT_MASK, AMD64_RAW_EVENT_MASK).
const x86Enable = 1<<16 | 1<<17 | 1<<19 | 1<<20 | 1<<22 // USR, OS, PC, INT, EN

// Fixed counters' pseudo codes, and the general counters' codes of the same
// events.
const (
	fixedInstructions = 0x0100
	fixedCycles       = 0x0200
	fixedSlots        = 0x0400
	instructionsCode  = 0xc0
	cyclesCode        = 0x3c
)

// Offcore response events have two codes, one for each of their two registers,
// and count the same.
var offcoreTwins = [...]struct{ second, first uint64 }{{0x01bb, 0x01b7}, {0x012b, 0x012a}}

// normal returns the code that stands for all that program the same event.
// pseudo says that the processor knows the pseudo codes of the fixed counters
// for instructions and cycles; where it does not, they are codes like others.
func (c code) normal(layout string, pseudo bool) code {
	if layout != layoutIntel && layout != layoutAMD {
		return c
	}
	c.config &^= x86Enable
	if layout == layoutAMD {
		return c
	}
	for _, twin := range offcoreTwins {
		if c.config == twin.second && c.config1 != 0 {
			c.config = twin.first
		}
	}
	if pseudo && c.config1 == 0 {
		switch c.config {
		case fixedInstructions:
			c.config = instructionsCode
		case fixedCycles:
			c.config = cyclesCode
		}
	}
	return c
}
