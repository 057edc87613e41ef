package samples

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/sorting"
	"github.com/cyclestack/cyclestack/internal/source/spe"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// auxSPE is the number of Arm's SPE in AUXTRACE_INFO.
const auxSPE = 4

// A trace makes samples of the AUX area: of Arm's SPE, as perf does. What it has to know
// about threads and times is in the records of the file, which are read before.
type trace struct {
	found    bool // the recording has an area of SPE
	midr     map[int]uint32
	clock    timeConv
	switches map[int][]switched // by processor
	kept     int                // switches in all
	pids     map[int]int        // processes of threads
	latest   uint64             // the last time of a record
	event    *perfdata.Event    // what its samples are of; nil before the first
	op       Op

	bad, cut, nowhere int64
}

// A switched is a thread that a processor went on with.
type switched struct {
	time     uint64
	pid, tid int
}

// words are those of a record's content. Machines with SPE are little-endian.
type words []byte

func wordsOf(record []byte) words { return record[min(8, len(record)):] }

func (w words) Len() int { return len(w) / 8 }

func (w words) At(i int) uint64 { return binary.LittleEndian.Uint64(w[8*i:]) }

// maxSwitches bounds the switches that are remembered.
const maxSwitches = 1 << 20

func newTrace() *trace {
	return &trace{midr: map[int]uint32{}, switches: map[int][]switched{}, pids: map[int]int{}}
}

// know takes from a record what samples of the AUX area depend on.
func (t *trace) know(rec perfdata.Record) {
	h := rec.Head()
	if h.Type < perffile.RecordHeaderAttr {
		t.latest = max(t.latest, h.Trailer().Time)
	}
	switch rec := rec.(type) {
	case *perfdata.Comm:
		t.thread(rec.PID, rec.TID)
	case *perfdata.Task:
		if rec.Type == perffile.RecordFork {
			t.thread(rec.PID, rec.TID)
		}
	case *perfdata.Switch:
		t.switched(rec)
	case *perfdata.Raw:
		w := wordsOf(rec.Bytes())
		switch {
		case h.Type == perffile.RecordAuxtraceInfo && w.Len() > 0 && uint32(w.At(0)) == auxSPE:
			t.found = true
			t.info(w)
		case h.Type == perffile.RecordTimeConv && w.Len() >= 3:
			t.clock = timeConvOf(w)
		case h.Type == perffile.RecordItraceStart && w.Len() >= 1:
			x := h.Trailer()
			t.note(x.CPU, switched{x.Time, int(int32(w.At(0))), int(int32(w.At(0) >> 32))})
		}
	}
}

func (t *trace) thread(pid, tid int) {
	if len(t.pids) < maxNames {
		t.pids[tid] = pid
	}
}

// switched notes which thread a processor goes on with. Records for a whole processor name
// the next one at the previous one's end; those of a thread are of that thread.
func (t *trace) switched(rec *perfdata.Switch) {
	x := rec.Trailer()
	out := rec.Misc&perffile.MiscSwitchOut != 0
	switch {
	case rec.Type == perffile.RecordSwitchCPUWide && out:
		t.note(x.CPU, switched{x.Time, rec.PID, rec.TID})
	case !out:
		t.note(x.CPU, switched{x.Time, x.PID, x.TID})
	}
}

func (t *trace) note(cpu int, s switched) {
	if t.kept < maxSwitches && cpu >= 0 {
		t.kept++
		t.switches[cpu] = append(t.switches[cpu], s)
	}
}

// settle sorts what was noted, before samples are made.
func (t *trace) settle() {
	for _, list := range t.switches {
		sorting.Stable(list, func(a, b switched) int { return cmp.Compare(a.time, b.time) })
	}
}

// info takes the processors from AUXTRACE_INFO, in its second version. Behind the type are
// version, size of the head in words, type of the PMU, and number of processors. Each
// processor has a magic number, its own number, how many words follow, and these. The first
// of them is its identification.
func (t *trace) info(w words) {
	const version2, magic, most = 2, 0x1010101010101010, 1 << 12
	if w.Len() < 5 || w.At(1) != version2 || w.At(2) > uint64(w.Len()) {
		return
	}
	at := 1 + int(w.At(2))
	for n := min(w.At(4), most); n > 0 && at+4 <= w.Len(); n-- {
		if w.At(at) != magic {
			return
		}
		t.midr[int(int32(w.At(at+1)))] = uint32(w.At(at + 3))
		at += 3 + int(min(w.At(at+2), uint64(w.Len())))
	}
}

// A timeConv converts ticks of the processor's timer to the times of records: TIME_CONV.
type timeConv struct {
	shift, mult, zero, cycles, mask uint64
	short, known                    bool
}

func timeConvOf(w words) timeConv {
	c := timeConv{shift: w.At(0) & 63, mult: w.At(1), zero: w.At(2), known: true}
	if w.Len() >= 6 {
		// Two flags follow the mask: whether zero is known, and whether the timer is short.
		c.cycles, c.mask, c.short = w.At(3), w.At(4), w.At(5)>>8&0xff != 0
	}
	return c
}

// time is that of a number of ticks.
func (c *timeConv) time(ticks uint64) uint64 {
	if c.short {
		ticks = c.cycles + (ticks-c.cycles)&c.mask
	}
	whole := ticks >> c.shift
	rest := ticks & (1<<c.shift - 1)
	high, low := bits.Mul64(rest, c.mult)
	return c.zero + whole*c.mult + (low>>c.shift | high<<(64-c.shift))
}

// begin makes the event of the samples, if there is an area of SPE.
func (t *trace) begin(in *perfdata.Reader) {
	if t.found && t.event == nil {
		t.event = speEvent(in)
	}
}

// each makes samples of the piece of the AUX area behind a record, and hands them on.
func (t *trace) each(in *perfdata.Reader, rec *perfdata.Raw, take func(*perfdata.Sample, *Op)) {
	w := wordsOf(rec.Bytes())
	if !t.found || w.Len() < 5 {
		return
	}
	tid, cpu := int(int32(w.At(3)>>32)), int(int32(w.At(4)))
	t.begin(in)
	id := spe.CPU(t.midr[cpu])
	if id == 0 {
		id = spe.CPU(midrOf(in.Features().CPUID))
	}
	d := spe.NewDecoder(in.Aux())
	for d.Next() {
		r := d.Record()
		if r.Has&spe.HasPC == 0 {
			t.nowhere++
			continue
		}
		if s := t.sample(in, r, tid, cpu); s != nil {
			t.op.fromSPE(r, id)
			take(s, &t.op)
		}
	}
	t.bad += d.Bad
	t.cut += d.Cut
}

// speSample is the parts of samples of SPE.
const speSample = perffile.SampleIP | perffile.SampleTID | perffile.SampleTime | perffile.SampleAddr | perffile.SampleCPU | perffile.SampleDataSrc |
	perffile.SampleWeightStruct | perffile.SamplePhysAddr

// sample makes a sample of a record.
func (t *trace) sample(in *perfdata.Reader, r *spe.Record, tid, cpu int) *perfdata.Sample {
	time := t.latest
	if r.Time > 0 && t.clock.known {
		time = t.clock.time(r.Time)
	}
	pid, tid := t.task(r, time, tid, cpu)
	mode := perfdata.Misc(perfdata.ModeUser)
	if r.EL > 0 {
		mode = perfdata.Misc(perfdata.ModeKernel)
	}
	s, ok := in.NewSample(t.event, mode|perffile.MiscExactIP, []uint64{r.PC, uint64(uint32(pid)) | uint64(uint32(tid))<<32, time, r.Addr, uint64(uint32(cpu)),
		uint64(r.Total), uint64(r.DataSrc(0)), r.Phys})
	if !ok {
		return nil
	}
	return s
}

// task returns the thread of an operation: the record's own, if it has one. Else it is the
// one that its processor had at the time, or that of the piece.
func (t *trace) task(r *spe.Record, time uint64, of, cpu int) (pid, tid int) {
	if r.Has&spe.HasContext != 0 {
		tid = int(int32(r.Context))
	} else {
		list := t.switches[cpu]
		i, _ := slices.BinarySearchFunc(list, time, func(s switched, at uint64) int {
			if s.time <= at {
				return -1
			}
			return 1
		})
		if i > 0 {
			return list[i-1].pid, list[i-1].tid
		}
		tid = of
	}
	if pid, ok := t.pids[tid]; ok {
		return pid, tid
	}
	return tid, tid
}

// speEvent is the event of the samples: that of the recording, with other parts.
func speEvent(in *perfdata.Reader) *perfdata.Event {
	a, name := perfdata.Attr{SamplePeriod: 1}, "arm_spe"
	for _, e := range in.Events() {
		for _, p := range in.Features().PMUs {
			if p.Type == e.Type && len(p.Name) >= len(name) && p.Name[:len(name)] == name {
				a, name = e.Attr, e.Name
			}
		}
	}
	a.SampleType, a.BranchType = speSample, 0
	if a.SamplePeriod == 0 || a.Flags&perffile.FlagFreq != 0 {
		a.SamplePeriod, a.Flags = 1, a.Flags&^perffile.FlagFreq
	}
	return perfdata.NewEvent(a, name, derivedBase-1)
}

// midrOf takes Arm's identification from that of a header: "0x00000000410fd0c0".
func midrOf(id string) uint32 {
	v := uint64(0)
	if len(id) < 3 || id[:2] != "0x" || len(id) > 18 {
		return 0
	}
	for _, c := range id[2:] {
		switch {
		case c >= '0' && c <= '9':
			v = v<<4 | uint64(c-'0')
		case c >= 'a' && c <= 'f':
			v = v<<4 | uint64(c-'a'+10)
		default:
			return 0
		}
	}
	return uint32(v)
}

// notes says what of the AUX area is no record.
func (t *trace) notes() []counts.Note {
	var out []counts.Note
	if t.bad > 0 {
		out = append(out, counts.Notef("%d bytes of the SPE trace are no packets, and were passed over", t.bad))
	}
	if t.cut > 0 {
		out = append(out, counts.Notef("%d records of the SPE trace are cut, and do not count", t.cut))
	}
	if t.nowhere > 0 {
		out = append(out, counts.Notef("%d records of the SPE trace have no address of an instruction, and do not count", t.nowhere))
	}
	if t.found && !t.clock.known {
		out = append(out, counts.Notef("the SPE trace has no times: all of its samples are taken as of the end of the recording"))
	}
	return out
}
