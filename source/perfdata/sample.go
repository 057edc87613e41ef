package perfdata

import "github.com/cyclestack/cyclestack/internal/perffile"

// A Sample is one sample. Its methods read the record in place, so what is not asked
// for costs nothing. A field that the event's SampleType does not have is zero; see
// [Sample.Has]. It is valid until the next call of Next.
type Sample struct {
	Header
	event *Event
	body  []byte             // behind the record's header
	runs  [numParts + 1]int  // where the runs of fields begin
	parts [numParts]struct { // the parts, by their place among the event's
		begin, end int
	}
}

// reset points the sample at a record. It returns false if the event's parts
// are not all there.
func (s *Sample) reset(e *Event, body []byte, big bool) bool {
	s.event, s.body = e, body
	l := &e.layout
	at := l.head
	if at > len(body) {
		return false
	}
	for i := range l.parts {
		p := &l.parts[i]
		n := l.partSize(p.kind, body[at:], big)
		if n < 0 || at+n+p.after > len(body) {
			return false
		}
		s.parts[i].begin, s.parts[i].end = at, at+n
		s.runs[i+1] = at + n
		at += n + p.after
	}
	return true
}

// Event returns what was sampled.
func (s *Sample) Event() *Event { return s.event }

// Has reports whether the sample has all parts of t.
func (s *Sample) Has(t SampleType) bool { return s.event.SampleType&t == t }

func (s *Sample) word(at int) uint64 {
	if at < 0 {
		return 0
	}
	return get64(s.body[at:], s.d.big)
}

func (s *Sample) half(at int) int {
	return int(int32(get32(s.body[at:], s.d.big)))
}

// IP returns the instruction's address. With the bit PERF_RECORD_MISC_EXACT_IP of Misc,
// it is that of the instruction that caused the event.
func (s *Sample) IP() uint64 {
	if w := s.waited(); w != nil {
		return w.ip()
	}
	return s.word(s.event.layout.ip)
}

// PID returns the process; 0 if it was not recorded, -1 for none.
func (s *Sample) PID() int {
	if w := s.waited(); w != nil {
		return w.pid
	}
	if at := s.event.layout.tid; at >= 0 {
		return s.half(at)
	}
	return 0
}

// TID returns the thread; 0 if it was not recorded, -1 for none.
func (s *Sample) TID() int {
	if w := s.waited(); w != nil {
		return w.tid
	}
	if at := s.event.layout.tid; at >= 0 {
		return s.half(at + 4)
	}
	return 0
}

// Time returns the time in nanoseconds, of the clock that Attr.ClockID names.
func (s *Sample) Time() uint64 { return s.word(s.event.layout.time) }

// Addr returns the address of the data that was accessed.
func (s *Sample) Addr() uint64 { return s.word(s.event.layout.addr) }

// ID returns the id of the event's instance.
func (s *Sample) ID() uint64 { return s.word(s.event.layout.idAt) }

// StreamID returns the id of the event's instance that took the sample. It differs from ID for
// events that children inherited.
func (s *Sample) StreamID() uint64 { return s.word(s.event.layout.stream) }

// CPU returns the logical processor, -1 if it was not recorded.
func (s *Sample) CPU() int {
	if at := s.event.layout.cpu; at >= 0 {
		return s.half(at)
	}
	return -1
}

// Period returns how many events the sample stands for. Where it was not
// recorded it is the fixed one that was asked for; with a frequency it is then
// not known, and 0, except for the clocks, whose periods follow from it.
func (s *Sample) Period() uint64 {
	if w := s.waited(); w != nil {
		return w.period
	}
	if at := s.event.layout.period; at >= 0 {
		return get64(s.body[at:], s.d.big)
	}
	return s.event.fixedPeriod()
}

func (e *Event) fixedPeriod() uint64 {
	switch {
	case !e.Has(perffile.FlagFreq):
		return e.SamplePeriod
	case e.isClock() && e.SamplePeriod > 0:
		return 1e9 / e.SamplePeriod
	}
	return 0
}

// part returns the bytes of a part, nil if samples have none.
func (s *Sample) part(kind partKind) []byte {
	i := s.event.layout.index[kind]
	if i < 0 {
		return nil
	}
	p := &s.parts[i]
	return s.body[p.begin:p.end]
}

// Callchain returns the addresses of the calls that were open, the innermost
// first, with markers in between (PERF_CONTEXT_USER, …).
func (s *Sample) Callchain() Words {
	if w := s.waited(); w != nil {
		return w.chain
	}
	if b := s.part(partCallchain); b != nil {
		return Words{b[8:], s.d.big}
	}
	return Words{}
}

// Raw returns what the event's PMU or tracepoint put into the sample.
func (s *Sample) Raw() []byte {
	if b := s.part(partRaw); b != nil {
		return b[4:]
	}
	return nil
}

// A Reading is counters as they were read at a time.
type Reading struct {
	Enabled, Running uint64 // ns; see Timed
	Timed            bool   // Enabled and Running were both recorded
	Values           []ReadValue
}

// A ReadValue is one counter of a Reading.
type ReadValue struct {
	Value uint64 // since the event was opened
	ID    uint64 // 0 if not recorded
	Lost  uint64 // samples; 0 if not recorded
}

// Read fills in the counters that were read with the sample: the event's own, or
// those of its group. It reports whether there are any. The memory of to.Values
// is used again.
func (s *Sample) Read(to *Reading) bool {
	b := s.part(partRead)
	if b == nil {
		return false
	}
	c := cursor{b: b, big: s.d.big}
	c.reading(s.event.ReadFormat, to)
	return true
}

// reading takes a struct read_format.
func (c *cursor) reading(f uint64, to *Reading) {
	*to = Reading{Values: to.Values[:0]}
	to.Timed = f&perffile.FormatTotalTimeEnabled != 0 && f&perffile.FormatTotalTimeRunning != 0
	times := func() {
		if f&perffile.FormatTotalTimeEnabled != 0 {
			to.Enabled = c.u64()
		}
		if f&perffile.FormatTotalTimeRunning != 0 {
			to.Running = c.u64()
		}
	}
	rest := func(v ReadValue) {
		if f&perffile.FormatID != 0 {
			v.ID = c.u64()
		}
		if f&perffile.FormatLost != 0 {
			v.Lost = c.u64()
		}
		to.Values = append(to.Values, v)
	}
	if f&perffile.FormatGroup == 0 {
		v := ReadValue{Value: c.u64()}
		times()
		rest(v)
		return
	}
	n := c.u64()
	times()
	_, each := readWords(f)
	for range c.count(n, 8*each) {
		rest(ReadValue{Value: c.u64()})
	}
}

// RegsUser returns the user's registers: their ABI (0 none, 1 32 bits, 2 64 bits), and their
// values in the bits' order of Attr.RegsUser.
func (s *Sample) RegsUser() (abi uint64, regs Words) { return s.regs(partRegsUser) }

// RegsIntr returns the registers at the interrupt, or with a precise event at
// the instruction; see RegsUser.
func (s *Sample) RegsIntr() (abi uint64, regs Words) { return s.regs(partRegsIntr) }

func (s *Sample) regs(kind partKind) (uint64, Words) {
	b := s.part(kind)
	if b == nil {
		return 0, Words{}
	}
	return get64(b, s.d.big), Words{b[8:], s.d.big}
}

// StackUser returns the valid bytes of the copy of the user's stack.
func (s *Sample) StackUser() []byte {
	b := s.part(partStackUser)
	if len(b) < 16 {
		return nil
	}
	stack := b[8 : len(b)-8]
	if n := get64(b[len(b)-8:], s.d.big); n < uint64(len(stack)) {
		return stack[:n]
	}
	return stack
}

// Aux returns the piece of the AUX area that goes with the sample.
func (s *Sample) Aux() []byte {
	if b := s.part(partAux); b != nil {
		return b[8:]
	}
	return nil
}

func (s *Sample) tail(t tail) uint64 {
	p := s.event.layout.after[t]
	if !p.ok {
		return 0
	}
	return get64(s.body[s.runs[p.run]+int(p.offset):], s.d.big)
}

// A Weight is what an access cost. Without WEIGHT_STRUCT only Latency is known.
type Weight struct {
	Latency uint64 // of the access, in processor cycles on Intel
	Var2    uint16 // PERF_SAMPLE_WEIGHT_STRUCT's var2_w: the instruction's latency on Intel
	Var3    uint16 // PERF_SAMPLE_WEIGHT_STRUCT's var3_w: the latency to retirement on recent Intel and POWER
}

// Weight returns what the access cost.
func (s *Sample) Weight() Weight {
	v := s.tail(tailWeight)
	if s.event.SampleType&perffile.SampleWeightStruct == 0 {
		return Weight{Latency: v}
	}
	return Weight{uint64(uint32(v)), uint16(v >> 32), uint16(v >> 48)}
}

// DataSrc returns where the data came from, the kernel's union
// perf_mem_data_src.
func (s *Sample) DataSrc() uint64 { return s.tail(tailDataSrc) }

// Transaction returns the flags of an aborted transaction (PERF_TXN_…), and the
// abort code in the upper half.
func (s *Sample) Transaction() uint64 { return s.tail(tailTransaction) }

// PhysAddr returns the physical address of the data.
func (s *Sample) PhysAddr() uint64 { return s.tail(tailPhysAddr) }

// Cgroup returns the id of the cgroup. A [Cgroup] record has its path.
func (s *Sample) Cgroup() uint64 { return s.tail(tailCgroup) }

// DataPageSize returns the size of the page that Addr is on.
func (s *Sample) DataPageSize() uint64 { return s.tail(tailDataPageSize) }
