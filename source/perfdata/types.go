package perfdata

import (
	"fmt"

	"github.com/cyclestack/cyclestack/internal/perffile"
)

// RecordType is the type of a record. Those below 64 are the kernel's, those
// from 64 on perf's.
type RecordType uint32

var recordNames = [...]string{
	perffile.RecordMmap: "MMAP", perffile.RecordLost: "LOST", perffile.RecordComm: "COMM", perffile.RecordExit: "EXIT", perffile.RecordThrottle: "THROTTLE",
	perffile.RecordUnthrottle: "UNTHROTTLE", perffile.RecordFork: "FORK", perffile.RecordRead: "READ", perffile.RecordSample: "SAMPLE",
	perffile.RecordMmap2: "MMAP2", perffile.RecordAux: "AUX", perffile.RecordItraceStart: "ITRACE_START", perffile.RecordLostSamples: "LOST_SAMPLES",
	perffile.RecordSwitch: "SWITCH", perffile.RecordSwitchCPUWide: "SWITCH_CPU_WIDE", perffile.RecordNamespaces: "NAMESPACES",
	perffile.RecordKSymbol: "KSYMBOL", perffile.RecordBPFEvent: "BPF_EVENT", perffile.RecordCgroup: "CGROUP", perffile.RecordTextPoke: "TEXT_POKE",
	perffile.RecordAuxOutputHWID: "AUX_OUTPUT_HW_ID", perffile.RecordCallchainDeferred: "CALLCHAIN_DEFERRED",
	perffile.RecordHeaderAttr: "HEADER_ATTR", perffile.RecordHeaderEventType: "HEADER_EVENT_TYPE",
	perffile.RecordHeaderTracingData: "HEADER_TRACING_DATA", perffile.RecordHeaderBuildID: "HEADER_BUILD_ID",
	perffile.RecordFinishedRound: "FINISHED_ROUND", perffile.RecordIDIndex: "ID_INDEX", perffile.RecordAuxtraceInfo: "AUXTRACE_INFO",
	perffile.RecordAuxtrace: "AUXTRACE", perffile.RecordAuxtraceError: "AUXTRACE_ERROR", perffile.RecordThreadMap: "THREAD_MAP",
	perffile.RecordCPUMap: "CPU_MAP", perffile.RecordStatConfig: "STAT_CONFIG", perffile.RecordStat: "STAT", perffile.RecordStatRound: "STAT_ROUND",
	perffile.RecordEventUpdate: "EVENT_UPDATE", perffile.RecordTimeConv: "TIME_CONV", perffile.RecordHeaderFeature: "HEADER_FEATURE",
	perffile.RecordCompressed: "COMPRESSED", perffile.RecordFinishedInit: "FINISHED_INIT", perffile.RecordCompressed2: "COMPRESSED2",
	perffile.RecordBPFMetadata: "BPF_METADATA", perffile.RecordSchedstatCPU: "SCHEDSTAT_CPU",
	perffile.RecordSchedstatDomain: "SCHEDSTAT_DOMAIN",
}

// String returns the kernel's or perf's name: "SAMPLE".
func (t RecordType) String() string {
	if int64(t) < int64(len(recordNames)) && recordNames[t] != "" {
		return recordNames[t]
	}
	return fmt.Sprintf("type %d", uint32(t))
}

// Misc is the field misc of a record's header.
type Misc uint16

// Mode says where a processor was.
type Mode uint8

// The modes of a record.
const (
	ModeUnknown Mode = iota
	ModeKernel
	ModeUser
	ModeHypervisor
	ModeGuestKernel
	ModeGuestUser
)

var modeNames = [...]string{"unknown", "kernel", "user", "hypervisor", "guest kernel", "guest user"}

func (m Mode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return fmt.Sprintf("mode %d", uint8(m))
}
