package recorded_test

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/core"
	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/perfwrite"
	"github.com/cyclestack/cyclestack/internal/recorded"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/internal/simulation"
	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// analysed analyses the hot loops of a recording of solve on Skylake.
func analysed(t *testing.T, file, function string) *core.Document {
	t.Helper()
	r, err := resolve.New(resolve.Choice{})
	if err != nil {
		t.Fatal(err)
	}
	recs := recorded.New(r, file)
	defer recs.Close()
	d, err := recs.Core(&recorded.CoreOptions{Function: function, Symbols: profile.Config{Root: "../../examples/annotate"},
		Cores: []*simulation.Core{simulation.ModelledCore("skylake")}})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestCore finds the hot loops of a recording with retired instructions. Its list takes ten
// cycles an iteration, as annotate says, and four or five in the core.
func TestCore(t *testing.T) {
	d := analysed(t, "../../examples/annotate.data", "")
	if len(d.Pieces) != 2 {
		t.Fatalf("%d loops", len(d.Pieces))
	}
	r := d.Pieces[0]
	if r.Name() != "solve, loop 1" || math.Abs(r.Weight-0.694) > 0.001 || r.First != 13 {
		t.Errorf("%s has %.3f of the samples, from line %d", r.Name(), r.Weight, r.First)
	}
	if m := r.Measured; m == nil || math.Abs(m.Cycles-10) > 0.5 || !strings.Contains(m.Why, "memory") {
		t.Errorf("measured %+v", m)
	}
	if got := r.Main().Cycles; got < 3.9 || got > 5.1 {
		t.Errorf("modelled %.2f", got)
	}
	if len(r.Advice) == 0 || r.Advice[0].Fault != core.PointerChase {
		t.Errorf("advice %v", r.Advice)
	}
}

// TestCoreStacks measures iterations by the cycles of branch stacks.
func TestCoreStacks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "perf.data")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := perfwrite.NewWriter(f, perfwrite.WriterOptions{Events: []*perfdata.Event{{Name: "cycles", IDs: []uint64{1}, Attr: perfdata.Attr{
		Type: perffile.TypeHardware, SamplePeriod: 100, Flags: perffile.FlagSampleIDAll, BranchType: 1 << 3,
		SampleType: perffile.SampleIdentifier | perffile.SampleIP | perffile.SampleTID | perffile.SampleTime | perffile.SampleBranchStack}}}})
	if err != nil {
		t.Fatal(err)
	}
	m := &perfdata.Mmap{Header: perfdata.Header{Misc: perfdata.Misc(perfdata.ModeUser)}, PID: 7, TID: 7, Addr: 0x400000, Len: 0x1000, Filename: []byte("/bin/solve")}
	if err := w.WriteRecord(m, perfdata.Trailer{ID: 1}); err != nil {
		t.Fatal(err)
	}
	const samples, branches = 40, 8
	le := binary.LittleEndian
	for i := range samples {
		b := le.AppendUint16(le.AppendUint16(le.AppendUint32(nil, uint32(perffile.RecordSample)), uint16(perfdata.ModeUser)), 8+4*8+8+24*branches)
		b = le.AppendUint64(le.AppendUint64(b, 1), 0x4000f6)
		b = le.AppendUint64(le.AppendUint32(le.AppendUint32(b, 7), 7), uint64(i))
		b = le.AppendUint64(b, branches)
		for range branches { // the jump back of the list, after 5 or 6 cycles
			b = le.AppendUint64(le.AppendUint64(le.AppendUint64(b, 0x400100), 0x4000f6), uint64(5+i%2)<<4)
		}
		if _, err := w.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(nil); err != nil {
		t.Fatal(err)
	}
	d := analysed(t, file, "solve")
	r := d.Pieces[0]
	if m := r.Measured; r.Loop != 1 || m == nil || math.Abs(m.Cycles-5.5) > 1e-9 || !(m.Error > 0.03 && m.Error < 0.1) {
		t.Errorf("loop %d, measured %+v", r.Loop, m)
	}
}
