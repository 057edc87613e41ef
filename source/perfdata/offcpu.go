package perfdata

import "github.com/cyclestack/cyclestack/internal/perffile"

// offCPUName is the name of the event of waits of perf record --off-cpu.
const offCPUName = "offcpu-time"

// softwareBPFOutput is the generic software event for what BPF programs write.
const softwareBPFOutput = 10

// isBPF reports whether a BPF program writes the samples.
func (a *Attr) isBPF() bool {
	return a.Type == perffile.TypeSoftware && a.Config == softwareBPFOutput
}

// A waited is a wait that perf's BPF program wrote into the raw part of a sample, since
// Linux 6.16. The sample itself is of the thread that ran instead. See
// __set_offcpu_sample in tools/perf/util/evsel.c.
type waited struct {
	pid, tid int
	period   uint64
	chain    Words
}

// ip is the innermost address of the program; the first word is a marker.
func (w *waited) ip() uint64 {
	if w.chain.Len() < 2 {
		return 0
	}
	return w.chain.At(1)
}

// waited returns the wait in the raw part; nil for other samples.
func (s *Sample) waited() *waited {
	if !s.event.bpf || s.event.layout.index[partRaw] < 0 || s.event.Name != offCPUName {
		return nil
	}
	c := cursor{b: s.Raw(), big: s.d.big}
	w := &waited{pid: c.id(), tid: c.id(), period: c.u64()}
	n := c.u64()
	w.chain = Words{c.bytes(8 * uint64(c.count(n, 8))), c.big}
	if c.short {
		return nil
	}
	return w
}
