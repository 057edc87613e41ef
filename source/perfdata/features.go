package perfdata

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/perffile"
)

// A Feature is a section of the header, numbered as in perf's header.h.
type Feature uint64

var featureNames = [...]string{"", "TRACING_DATA", "BUILD_ID", "HOSTNAME", "OSRELEASE", "VERSION", "ARCH", "NRCPUS",
	"CPUDESC", "CPUID", "TOTAL_MEM", "CMDLINE", "EVENT_DESC", "CPU_TOPOLOGY", "NUMA_TOPOLOGY", "BRANCH_STACK",
	"PMU_MAPPINGS", "GROUP_DESC", "AUXTRACE", "STAT", "CACHE", "SAMPLE_TIME", "MEM_TOPOLOGY", "CLOCKID", "DIR_FORMAT",
	"BPF_PROG_INFO", "BPF_BTF", "COMPRESSED", "CPU_PMU_CAPS", "CLOCK_DATA", "HYBRID_TOPOLOGY", "PMU_CAPS"}

// String returns perf's name: "HOSTNAME".
func (f Feature) String() string {
	if f > 0 && f < Feature(len(featureNames)) {
		return featureNames[f]
	}
	return fmt.Sprintf("feature %d", uint64(f))
}

// Features is what the header says of the machine and the recording: a field for each
// section that perf defines. What the file does not say is zero; see Present.
type Features struct {
	Present []Feature // in the order of their numbers; of a pipe, of their records

	Hostname  string
	OSRelease string
	Version   string // of perf
	Arch      string // uname -m
	CPUDesc   string // "Intel(R) Xeon(R) …"
	CPUID     string // "GenuineIntel,6,85,4", "0x00000000410fd0c0"
	CPUs      int    // logical processors that the machine can have
	Online    int    // those that were online
	TotalMem  uint64 // kB
	Cmdline   []string

	CoreSiblings   []string // lists of the logical processors of a socket or die: "0-3"
	ThreadSiblings []string // lists of those of a core
	DieSiblings    []string
	Topology       []Place // by logical processor
	NUMA           []NUMANode
	Caches         []Cache
	PMUs           []PMU // names of Attr.Type
	BuildIDs       []FileBuildID
	CPUCaps        []Cap // of the core PMU
	PMUCaps        []PMUCap
	Hybrid         []HybridPMU

	SampleTime    [2]uint64 // of the first and the last sample, ns
	ClockID       ClockData
	ClockResNanos uint64 // of the clock that Attr.ClockID names
	Stat          bool   // written by perf stat record

	desc        []eventDesc
	groups      []eventGroup
	tracepoints map[uint64]tracepoint
}

// A Place is a logical processor's place in the machine.
type Place struct{ Core, Socket, Die int } // Die is -1 where not known

// A NUMANode is a node of the machine's memory.
type NUMANode struct {
	Node           int
	MemTotal, Free uint64 // kB
	CPUs           string // "0-3"
}

// A Cache is one of the machine's caches.
type Cache struct {
	Level, LineSize, Sets, Ways uint32
	Kind, Size, CPUs            string // "Data", "32K", "0,4"
}

// A PMU is the number that the kernel gave a PMU.
type PMU struct {
	Type uint32
	Name string
}

// An eventGroup is events that were on their counters together.
type eventGroup struct {
	name    string // "{anon_group}" where the user gave none
	leader  int    // index of the first event
	members int    // with the leader
}

// A FileBuildID is the build id of a file that was mapped.
type FileBuildID struct {
	PID      int // -1 for the host
	Mode     Mode
	BuildID  []byte
	Filename string
}

// A Cap is something that a PMU can do, as sysfs has it.
type Cap struct{ Name, Value string }

// A PMUCap is the Caps of one PMU.
type PMUCap struct {
	PMU  string
	Caps []Cap
}

// A HybridPMU is the PMU of a type of cores, and their logical processors.
type HybridPMU struct{ Name, CPUs string }

// ClockData ties the clock of the samples to the time of day.
type ClockData struct {
	Clock      uint32 // clockid_t
	TimeOfDay  uint64 // ns since 1970
	ClockNanos uint64 // the clock at that time
}

// eventDesc is an event's description in EVENT_DESC.
type eventDesc struct {
	attr Attr
	name string
	ids  []uint64
}

// Has reports whether the file has a section.
func (f *Features) Has(x Feature) bool {
	for _, p := range f.Present {
		if p == x {
			return true
		}
	}
	return false
}

// pmuName returns a PMU's name, or a stand-in.
func (f *Features) pmuName(kind uint32) string {
	for _, p := range f.PMUs {
		if p.Type == kind && p.Name != "" {
			return p.Name
		}
	}
	return "pmu" + strconv.FormatUint(uint64(kind), 10)
}

// CPUIDString returns the processor's identification in the form that perf's
// tables of processors are matched against: "GenuineIntel-6-55-4", or of POWER
// "0x004d0200". It is "" if the file does not say.
func (f *Features) CPUIDString() string {
	part := strings.Split(f.CPUID, ",")
	var n [2]uint64 // the last two
	for i := range n {
		var err error
		if n[i], err = strconv.ParseUint(part[max(len(part)-2+i, 0)], 10, 16); err != nil {
			return counts.Name(f.CPUID)
		}
	}
	switch len(part) {
	case 4: // vendor, family, model, stepping
		return counts.Name(fmt.Sprintf("%s-%s-%X-%X", part[0], part[1], n[0], n[1]))
	case 2: // the halves of the processor version register
		return fmt.Sprintf("0x%04x%04x", n[0], n[1])
	}
	return counts.Name(f.CPUID)
}

// set takes a section in. It returns false if the section is not what its name
// says; what was understood of it is kept.
func (f *Features) set(x Feature, b []byte, big bool) bool {
	if !f.Has(x) && len(f.Present) < perffile.MaxFeatures {
		f.Present = append(f.Present, x)
	}
	c := &cursor{b: b, big: big}
	if s := f.text(x); s != nil {
		*s = c.str()
		return !c.short
	}
	switch x {
	case perffile.FeatureTracingData:
		f.tracepoints = tracepoints(b)
	case perffile.FeatureBuildID:
		f.BuildIDs = c.buildIDs()
	case perffile.FeatureEventDesc:
		f.desc = c.eventDesc()
	case perffile.FeatureGroupDesc:
		f.groups = list(c, 12, func() eventGroup { return eventGroup{c.str(), int(int32(c.u32())), int(int32(c.u32()))} })
	case perffile.FeatureStat:
		f.Stat = true
	case perffile.FeatureSampleTime:
		f.SampleTime = [2]uint64{c.u64(), c.u64()}
	case perffile.FeatureClockID:
		f.ClockResNanos = c.u64()
	case perffile.FeatureClockData:
		c.skip(4) // version
		f.ClockID = ClockData{c.u32(), c.u64(), c.u64()}
	default:
		f.setMachine(x, c)
	}
	return !c.short
}

// text returns where a section goes that is one string, nil for others.
func (f *Features) text(x Feature) *string {
	switch x {
	case perffile.FeatureHostname:
		return &f.Hostname
	case perffile.FeatureOSRelease:
		return &f.OSRelease
	case perffile.FeatureVersion:
		return &f.Version
	case perffile.FeatureArch:
		return &f.Arch
	case perffile.FeatureCPUDesc:
		return &f.CPUDesc
	case perffile.FeatureCPUID:
		return &f.CPUID
	}
	return nil
}

// setMachine takes in a section about the machine.
func (f *Features) setMachine(x Feature, c *cursor) {
	switch x {
	case perffile.FeatureNrCPUs:
		f.CPUs, f.Online = int(c.u32()), int(c.u32())
	case perffile.FeatureTotalMem:
		f.TotalMem = c.u64()
	case perffile.FeatureCmdline:
		f.Cmdline = c.strs()
	case perffile.FeatureCPUTopology:
		f.setTopology(c)
	case perffile.FeatureNUMATopology:
		f.NUMA = list(c, 24, func() NUMANode { return NUMANode{int(c.u32()), c.u64(), c.u64(), c.str()} })
	case perffile.FeaturePMUMappings:
		f.PMUs = list(c, 8, func() PMU { return PMU{c.u32(), c.str()} })
	case perffile.FeatureCache:
		c.skip(4) // version
		f.Caches = list(c, 28, func() Cache {
			return Cache{c.u32(), c.u32(), c.u32(), c.u32(), c.str(), c.str(), c.str()}
		})
	case perffile.FeatureCPUPMUCaps:
		f.CPUCaps = c.caps()
	case perffile.FeaturePMUCaps:
		f.PMUCaps = list(c, 8, func() PMUCap { return PMUCap{Caps: c.caps(), PMU: c.str()} })
	case perffile.FeatureHybridTopology:
		f.Hybrid = list(c, 8, func() HybridPMU { return HybridPMU{c.str(), c.str()} })
	}
}

// list takes the number of elements and then the elements, each of at least
// size bytes; it ends early where the section does.
func list[T any](c *cursor, size int, one func() T) []T {
	n := c.count(uint64(c.u32()), size)
	var out []T
	for range n {
		e := one()
		if c.short {
			break
		}
		out = append(out, e)
	}
	return out
}

func (c *cursor) strs() []string { return list(c, 4, c.str) }

func (c *cursor) caps() []Cap { return list(c, 8, func() Cap { return Cap{c.str(), c.str()} }) }

// setTopology takes CPU_TOPOLOGY, which grew twice: at first it had the lists
// only, then core and socket of each processor, then dies.
func (f *Features) setTopology(c *cursor) {
	f.CoreSiblings, f.ThreadSiblings = c.strs(), c.strs()
	n := f.CPUs
	if n <= 0 || len(c.b) < 8*n {
		return
	}
	f.Topology = nil
	for range n {
		f.Topology = append(f.Topology, Place{int(int32(c.u32())), int(int32(c.u32())), -1})
	}
	if len(c.b) < 4+4*n { // the end of the section may be padding
		return
	}
	f.DieSiblings = c.strs()
	for i := range f.Topology {
		f.Topology[i].Die = int(int32(c.u32()))
	}
}

// eventDesc takes EVENT_DESC.
func (c *cursor) eventDesc() []eventDesc {
	n, size := c.u32(), c.u32()
	var out []eventDesc
	for range c.count(uint64(n), 8) {
		d := eventDesc{attr: decodeAttr(c.bytes(uint64(size)), c.big)}
		ids := c.u32()
		d.name = c.str()
		for range c.count(uint64(ids), 8) {
			d.ids = append(d.ids, c.u64())
		}
		if c.short {
			break
		}
		out = append(out, d)
	}
	return out
}

// buildIDs takes the table of BUILD_ID: records like those of a pipe. Perf 2.6.33
// to 2.6.35 wrote them without the process. Read as today, the name of the kernel then
// lacks its first four letters.
func (c *cursor) buildIDs() []FileBuildID {
	table := c.b
	out, quirk := c.buildIDTable(true)
	if quirk {
		c.b = table
		out, _ = c.buildIDTable(false)
	}
	return out
}

func (c *cursor) buildIDTable(hasPID bool) (out []FileBuildID, quirk bool) {
	for len(c.b) >= 8 {
		kind, misc, size := c.u32(), Misc(c.u16()), c.u16()
		if size < 8 {
			c.short = true
			break
		}
		body := cursor{b: c.bytes(uint64(size - 8)), big: c.big}
		b := BuildID{Header: Header{Type: RecordType(kind), Misc: misc}}
		if !hasPID {
			// Put there what is missing.
			body.b = append(make([]byte, 4), body.b...)
		}
		b.decode(&body)
		if body.short {
			c.short = true
			break
		}
		if hasPID && string(b.Filename) == "nel.kallsyms]" {
			return nil, true
		}
		if !hasPID {
			b.PID = -1
		}
		out = append(out, FileBuildID{b.PID, b.Mode(), append([]byte(nil), b.BuildID...), string(b.Filename)})
	}
	return out, false
}
