//go:build linux

package perfevent

import (
	"encoding/binary"
	"math"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/cyclestack/cyclestack/counts"
)

// The layout is the kernel's: x/sys generates the part that it has from the
// kernel's header.
func TestAttrLayout(t *testing.T) {
	var ours kernelAttr
	var theirs unix.PerfEventAttr
	if got := unsafe.Sizeof(ours); got != unix.PERF_ATTR_SIZE_VER9 || attrSize != unix.PERF_ATTR_SIZE_VER9 {
		t.Errorf("%d bytes", got)
	}
	for name, at := range map[string][2]uintptr{
		"sample_type":        {unsafe.Offsetof(ours.sampleType), unsafe.Offsetof(theirs.Sample_type)},
		"read_format":        {unsafe.Offsetof(ours.readFormat), unsafe.Offsetof(theirs.Read_format)},
		"flags":              {unsafe.Offsetof(ours.flags), unsafe.Offsetof(theirs.Bits)},
		"wakeup":             {unsafe.Offsetof(ours.wakeup), unsafe.Offsetof(theirs.Wakeup)},
		"config1":            {unsafe.Offsetof(ours.config1), unsafe.Offsetof(theirs.Ext1)},
		"config2":            {unsafe.Offsetof(ours.config2), unsafe.Offsetof(theirs.Ext2)},
		"branch_sample_type": {unsafe.Offsetof(ours.branchSampleType), unsafe.Offsetof(theirs.Branch_sample_type)},
		"sample_stack_user":  {unsafe.Offsetof(ours.sampleStackUser), unsafe.Offsetof(theirs.Sample_stack_user)},
		"clockid":            {unsafe.Offsetof(ours.clockID), unsafe.Offsetof(theirs.Clockid)},
		"sample_regs_intr":   {unsafe.Offsetof(ours.sampleRegsIntr), unsafe.Offsetof(theirs.Sample_regs_intr)},
		"sample_max_stack":   {unsafe.Offsetof(ours.sampleMaxStack), unsafe.Offsetof(theirs.Sample_max_stack)},
		"aux_sample_size":    {unsafe.Offsetof(ours.auxSampleSize), unsafe.Offsetof(theirs.Aux_sample_size)},
		"sig_data":           {unsafe.Offsetof(ours.sigData), unsafe.Offsetof(theirs.Sig_data)},
		"config3":            {unsafe.Offsetof(ours.config3), unix.PERF_ATTR_SIZE_VER7},
	} {
		if at[0] != at[1] {
			t.Errorf("%s is at %d, the kernel's at %d", name, at[0], at[1])
		}
	}
}

func TestAttrFlags(t *testing.T) {
	for name, tt := range map[string]struct {
		attr Attr
		want uint64
	}{
		"disabled":       {Attr{Disabled: true}, unix.PerfBitDisabled},
		"inherit":        {Attr{Inherit: true}, unix.PerfBitInherit},
		"pinned":         {Attr{Pinned: true}, unix.PerfBitPinned},
		"exclusive":      {Attr{Exclusive: true}, unix.PerfBitExclusive},
		"exclude_user":   {Attr{ExcludeUser: true}, unix.PerfBitExcludeUser},
		"exclude_kernel": {Attr{ExcludeKernel: true}, unix.PerfBitExcludeKernel},
		"exclude_hv":     {Attr{ExcludeHV: true}, unix.PerfBitExcludeHv},
		"exclude_idle":   {Attr{ExcludeIdle: true}, unix.PerfBitExcludeIdle},
		"mmap":           {Attr{Mmap: true}, unix.PerfBitMmap},
		"comm":           {Attr{Comm: true}, unix.PerfBitComm},
		"freq":           {Attr{Freq: true}, unix.PerfBitFreq},
		"inherit_stat":   {Attr{InheritStat: true}, unix.PerfBitInheritStat},
		"enable_on_exec": {Attr{EnableOnExec: true}, unix.PerfBitEnableOnExec},
		"task":           {Attr{Task: true}, unix.PerfBitTask},
		"watermark":      {Attr{Watermark: true}, unix.PerfBitWatermark},
		"precise_ip 1":   {Attr{Precise: 1}, unix.PerfBitPreciseIPBit1},
		"precise_ip 2":   {Attr{Precise: 2}, unix.PerfBitPreciseIPBit2},
		"mmap_data":      {Attr{MmapData: true}, unix.PerfBitMmapData},
		"sample_id_all":  {Attr{SampleIDAll: true}, unix.PerfBitSampleIDAll},
		"exclude_host":   {Attr{ExcludeHost: true}, unix.PerfBitExcludeHost},
		"exclude_guest":  {Attr{ExcludeGuest: true}, unix.PerfBitExcludeGuest},
		"mmap2":          {Attr{Mmap2: true}, unix.PerfBitMmap2},
		"comm_exec":      {Attr{CommExec: true}, unix.PerfBitCommExec},
		"use_clockid":    {Attr{UseClockID: true}, unix.PerfBitUseClockID},
		"context_switch": {Attr{ContextSwitch: true}, unix.PerfBitContextSwitch},
	} {
		if got := tt.attr.kernel().flags; got != tt.want {
			t.Errorf("%s: flags %#x, want %#x", name, got, tt.want)
		}
	}
	// Those after context_switch and write_backward, which x/sys does not have.
	for bit, attr := range map[uint]Attr{28: {Namespaces: true}, 29: {KSymbol: true}, 30: {BPFEvent: true}, 32: {Cgroup: true}, 33: {TextPoke: true}, 34: {BuildID: true}} {
		if got := attr.kernel().flags; got != 1<<bit {
			t.Errorf("bit %d: flags %#x", bit, got)
		}
	}
}

// words makes a reading as the kernel would write it.
func words(list ...uint64) []byte {
	var b []byte
	for _, w := range list {
		b = binary.NativeEndian.AppendUint64(b, w)
	}
	return b
}

func TestReading(t *testing.T) {
	var r reading
	if !r.parse(words(2, 100, 50, 7, 1, 0, 8, 2, 0), true) || r.enabled != 100 || r.running != 50 || len(r.values) != 2 || r.values[1] != (value{8, 2}) {
		t.Errorf("%+v", r)
	}
	if !r.parse(words(2, 100, 50, 7, 1, 8, 2), false) || r.values[1] != (value{8, 2}) {
		t.Errorf("%+v", r)
	}
	if !r.parseOne(words(7, 100, 50, 3, 0)) || r.values[0] != (value{7, 3}) || r.running != 50 {
		t.Errorf("%+v", r)
	}
	for _, b := range [][]byte{nil, words(1), words(1, 2, 3), words(2, 100, 50, 7, 1), words(math.MaxUint64, 1, 1, 1, 1), words(1, 1, 1, 1, 1)[:39]} {
		if r.parse(b, false) {
			t.Errorf("%x: %+v", b, r)
		}
	}
}

// Values are found by their ids, whatever their order. Differences are right when a sum
// of 64 bits wraps around.
func TestCount(t *testing.T) {
	var r reader
	r.got.values = []value{{100, 2}, {3, 1}}
	a := setEvent{member: &member{}, id: 1, last: math.MaxUint64 - 1}
	b := setEvent{member: &member{}, id: 2, last: 40}
	none := setEvent{member: &member{}, id: 3}
	var da, db, dn delta
	r.count(&a, 0, &da)
	r.count(&b, 1, &db)
	r.count(&none, 0, &dn)
	if da != (delta{5, true}) || db != (delta{60, true}) || dn != (delta{}) {
		t.Errorf("%v %v %v", da, db, dn)
	}
}

func TestCells(t *testing.T) {
	r := reader{elapsed: 1000, silent: func(int) float64 { return 77 }}
	wide, task, pinned := &set{place: place{pid: -1}}, &set{place: place{pid: 1}}, &set{place: place{pid: 1}, pinned: true}
	for _, tt := range []struct {
		name             string
		set              *set
		delta            delta
		enabled, running float64
		want             counts.Cell
	}{
		{"all of the time", wide, delta{7, true}, 100, 100, counts.Cell{State: counts.Counted, Value: 7, Enabled: 100, Running: 100}},
		{"half of it", wide, delta{7, true}, 100, 50, counts.Cell{State: counts.Counted, Value: 14, Enabled: 100, Running: 50}},
		{"nothing of it", task, delta{0, true}, 100, 0, counts.Cell{State: counts.NotCounted, Enabled: 100}},
		{"a task that did not run", task, delta{0, true}, 0, 0, counts.Cell{State: counts.Counted}},
		{"a pinned group that was not taken", pinned, delta{0, true}, 0, 0, counts.Cell{State: counts.NotCounted}},
		{"a processor offline", wide, delta{0, true}, 0, 0, counts.Cell{State: counts.NotCounted, Enabled: 77}},
		{"nothing to read", task, delta{}, 0, 0, counts.Cell{State: counts.NotCounted, Enabled: 1000}},
		{"a large count", task, delta{1 << 62, true}, 1 << 40, 1 << 40, counts.Cell{State: counts.Counted, Value: 1 << 62, Enabled: 1 << 40, Running: 1 << 40}},
	} {
		if got := r.cell(tt.set, tt.delta, tt.enabled, tt.running); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func FuzzReading(f *testing.F) {
	f.Add(words(2, 100, 50, 7, 1, 0, 8, 2, 0), true)
	f.Add(words(2, 100, 50, 7, 1, 8, 2), false)
	f.Add(words(math.MaxUint64, 1, 1, 1, 1), false)
	f.Fuzz(func(t *testing.T, b []byte, lost bool) {
		var r reading
		if r.parse(b, lost) && len(b) < 24+16*len(r.values) {
			t.Errorf("%d values of %d bytes", len(r.values), len(b))
		}
		r.parseOne(b)
	})
}
