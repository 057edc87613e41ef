package switches

import (
	"encoding/binary"
	"testing"

	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// sample writes a record as the kernel does: see perf_output_sample of Linux.
func sample(id uint64, cpu uint32, enabled, running, cgroup uint64, values ...uint64) []byte {
	b := binary.NativeEndian.AppendUint32(nil, perffile.RecordSample)
	b = binary.NativeEndian.AppendUint16(b, 0)
	b = binary.NativeEndian.AppendUint16(b, uint16(8+64+16*(2+len(values))+8))
	for _, v := range []uint64{id, 0xffff, 1 << 32, 12345, uint64(cpu), uint64(2 + len(values)), enabled, running, 7, 1, 7, 2} {
		b = binary.NativeEndian.AppendUint64(b, v)
	}
	for i, v := range values {
		b = binary.NativeEndian.AppendUint64(b, v)
		b = binary.NativeEndian.AppendUint64(b, uint64(10+i))
	}
	return binary.NativeEndian.AppendUint64(b, cgroup)
}

// lost writes a record of records that were lost.
func lost(cpu uint32) []byte {
	b := binary.NativeEndian.AppendUint32(nil, perffile.RecordLost)
	b = binary.NativeEndian.AppendUint16(b, 0)
	b = binary.NativeEndian.AppendUint16(b, 8+16+32)
	for _, v := range []uint64{1, 5, 1 << 32, 12345, uint64(cpu), 1} {
		b = binary.NativeEndian.AppendUint64(b, v)
	}
	return b
}

func decoderOf() *decoder {
	var events []perfevent.SampledEvent
	for i, name := range []string{switchEvent, clockEvent, "a", "b"} {
		v := perfevent.SampledEvent{Event: perfevent.Event{Name: name}, IDs: []uint64{[]uint64{1, 2, 10, 11}[i]}}
		if i < 2 {
			v.Attr.Sample = 1
		}
		events = append(events, v)
	}
	return newDecoder(events, map[string]int{"a": 0, "b": 1})
}

// TestDecode: differences belong to the cgroup that a record names, on its processor; what
// follows a loss belongs to nobody.
func TestDecode(t *testing.T) {
	d := decoderOf()
	var all []byte
	for _, b := range [][]byte{
		sample(1, 0, 100, 100, 5, 1000, 10),
		sample(1, 1, 100, 100, 5, 7000, 70),
		sample(1, 0, 200, 200, 5, 1500, 15), // 500 and 5 of cgroup 5
		sample(2, 0, 300, 250, 6, 1600, 16), // half of the time: 200 and 2 of cgroup 6
		sample(1, 1, 200, 200, 6, 7100, 71), // 100 and 1 of cgroup 6
		lost(0),
		sample(1, 0, 900, 850, 6, 9999, 99),   // of nobody
		sample(1, 0, 1000, 950, 5, 10000, 98), // one of them fell: it adds nothing
		sample(1, 0, 1100, 950, 5, 10000, 98), // was never on a counter
	} {
		all = append(all, b...)
	}
	for len(all) > 0 { // in pieces that no record keeps to
		n := min(len(all), 37)
		if _, err := d.Write(all[:n]); err != nil {
			t.Fatal(err)
		}
		all = all[n:]
	}
	if d.bad != 0 || d.lost != 1 || d.Records != 8 {
		t.Errorf("%d bad, %d lost, %d records", d.bad, d.lost, d.Records)
	}
	for id, want := range map[uint64][2]float64{5: {501, 5}, 6: {300, 3}} {
		if g := d.groups[id]; g == nil || g.values[0] != want[0] || g.values[1] != want[1] {
			t.Errorf("cgroup %d: %+v, want %v", id, g, want)
		}
	}
}

// FuzzDecode: whatever is in a ring, nothing panics.
func FuzzDecode(f *testing.F) {
	f.Add(append(sample(1, 0, 1, 1, 5, 1, 2), sample(1, 0, 2, 2, 5, 3, 4)...))
	f.Add(lost(3))
	f.Fuzz(func(t *testing.T, b []byte) {
		d := decoderOf()
		if n, err := d.Write(b); err == nil && n != len(b) {
			t.Errorf("%d of %d bytes were taken", n, len(b))
		}
	})
}
