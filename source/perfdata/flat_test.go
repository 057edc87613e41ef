package perfdata_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/testshared"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// A transcript is what a file's samples count, what records are between them, and how
// the reading ended.
type transcript struct {
	lines []string
	stats perfdata.Stats
	err   string
}

func (x *transcript) flat(e *perfdata.Event, b perfdata.FlatSample) {
	x.lines = append(x.lines, fmt.Sprintf("%d %#x %g %d %s %#x %v", b.Time, b.IP, b.Value, b.PID, e.Name, uint16(b.Misc), b.Mode()))
}

// transcribe reads a file, up to so many flat samples at a time; 0 is none.
func transcribe(b []byte, opts perfdata.Options, most int) (x transcript, flat int) {
	r, err := perfdata.NewReader(bytes.NewReader(b), "test.data", opts)
	if err != nil {
		return transcript{err: err.Error()}, 0
	}
	defer r.Close()
	m := perfdata.NewMeter(r)
	list := make([]perfdata.FlatSample, 0, most)
	for {
		for list = r.NextFlat(list[:0], nil); len(list) > 0; list = r.NextFlat(list[:0], nil) {
			flat += len(list)
			for _, s := range list {
				x.flat(r.Events()[s.Event], s)
			}
		}
		if !r.Next() {
			break
		}
		s, ok := r.Record().(*perfdata.Sample)
		if !ok {
			h := r.Record().Head()
			x.lines = append(x.lines, fmt.Sprintf("%v at %d: %d bytes", h.Type, h.Offset, len(h.Bytes())))
			continue
		}
		amounts := m.Of(s)
		if len(amounts) == 0 {
			x.lines = append(x.lines, "a sample of nothing")
		}
		for _, a := range amounts {
			x.flat(a.Event, perfdata.FlatSample{Time: s.Time(), IP: s.IP(), Value: a.Value, PID: int32(s.PID()), Misc: s.Misc})
		}
	}
	x.stats = r.Stats()
	if r.Err() != nil {
		x.err = r.Err().Error()
	}
	return x, flat
}

// compareFlat compares reading a file record by record and by flat samples.
func compareFlat(t *testing.T, b []byte) (flat int) {
	t.Helper()
	want, _ := transcribe(b, perfdata.Options{}, 0)
	for _, most := range []int{1, 7, 4096} {
		got, n := transcribe(b, perfdata.Options{}, most)
		flat = n
		if got.err != want.err || !reflect.DeepEqual(got.stats, want.stats) {
			t.Errorf("%d at a time: got %q, %+v, want %q, %+v", most, got.err, got.stats, want.err, want.stats)
		}
		if !slices.Equal(got.lines, want.lines) {
			at := 0
			for at < min(len(got.lines), len(want.lines)) && got.lines[at] == want.lines[at] {
				at++
			}
			t.Errorf("%d at a time: %d lines, want %d; line %d differs: got %q, want %q", most, len(got.lines), len(want.lines), at,
				append(got.lines, "")[min(at, len(got.lines))], append(want.lines, "")[min(at, len(want.lines))])
		}
	}
	return flat
}

// chainsOf lists the threads and callchains of a file's samples, read so many at a time; 0 is one
// by one. It also returns how many were read in brief.
func chainsOf(t *testing.T, path string, most int) (list []string, brief int) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := perfdata.NewReader(f, path, perfdata.Options{})
	if err != nil {
		return nil, 0
	}
	defer r.Close()
	some, chains := make([]perfdata.FlatSample, 0, most), make([]perfdata.Words, most)
	for {
		for some = r.NextFlat(some[:0], chains); len(some) > 0; some = r.NextFlat(some[:0], chains) {
			brief += len(some)
			for i := range some {
				list = append(list, fmt.Sprintf("%d %d %x", some[i].Time, some[i].TID, chains[i].AppendTo(nil)))
			}
		}
		if !r.Next() {
			return list, brief
		}
		if s, ok := r.Record().(*perfdata.Sample); ok {
			list = append(list, fmt.Sprintf("%d %d %x", s.Time(), s.TID(), s.Callchain().AppendTo(nil)))
		}
	}
}

// TestChains compares samples that are read one by one and in brief.
func TestChains(t *testing.T) {
	brief := 0
	for _, path := range testdata(t) {
		want, _ := chainsOf(t, path, 0)
		for _, most := range []int{1, 64} {
			got, n := chainsOf(t, path, most)
			if brief += n; !slices.Equal(got, want) {
				t.Errorf("%s, %d at a time: got %d samples, want %d, or they differ", path, most, len(got), len(want))
			}
		}
	}
	if brief < 100 {
		t.Errorf("%d samples were read in brief", brief)
	}
}

// TestFlat reads the flat samples of the recordings of testdata, and those of the corpus.
func TestFlat(t *testing.T) {
	files := testdata(t)
	t.Run("testdata", func(t *testing.T) {
		flat := 0
		for _, path := range files {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			flat += compareFlat(t, b)
		}
		if flat < 100 {
			t.Errorf("%d samples were flat", flat)
		}
	})
	t.Run("shared", func(t *testing.T) {
		files, err := filepath.Glob(filepath.Join(testshared.Dir(t, "corpus", "perfdata"), "*"))
		if err != nil {
			t.Fatal(err)
		}
		flat := 0
		for _, path := range files {
			info, err := os.Stat(path)
			if err != nil || !info.Mode().IsRegular() || info.Size() > 16<<20 {
				continue
			}
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			t.Run(filepath.Base(path), func(t *testing.T) { flat += compareFlat(t, b) })
		}
		if flat < 10000 {
			t.Errorf("%d samples were flat", flat)
		}
	})
}

// TestFlatMade reads what recordings seldom hold.
func TestFlatMade(t *testing.T) {
	const kind = perffile.SampleIdentifier | perffile.SampleIP | perffile.SampleTID | perffile.SampleTime
	words := func(r *raw, id uint64, more ...uint64) []byte {
		return r.body().u64(id, 0x1000).u32(5, 6).u64(77).u64(more...).b
	}
	// begin begins a pipe with events of so many kinds, of the ids 1, 2, ….
	begin := func(kinds ...perfdata.SampleType) *raw {
		r := little().pipe()
		for i, k := range kinds {
			r.record(perffile.RecordHeaderAttr, 0, append(r.attr(0, uint64(i), 1000, uint64(k), 0, 0), r.body().u64(uint64(i+1)).b...))
		}
		return r
	}
	sample := func(r *raw, body []byte) { r.record(perffile.RecordSample, 0x4002, body) }
	for _, tt := range []struct {
		name string
		want int // samples that are flat
		make func() *raw
	}{
		{"one event", 2, func() *raw {
			r := begin(kind)
			sample(r, words(r, 1))
			sample(r, words(r, 99)) // whatever its id
			return r
		}},
		{"two events, and ids of none", 3, func() *raw {
			r := begin(kind, kind)
			for _, id := range []uint64{1, 2, 99, 0, 1} {
				sample(r, words(r, id))
			}
			return r
		}},
		{"a clock's and an unknown period", 1, func() *raw {
			r := little().pipe()
			const freq = 1 << 10
			r.record(perffile.RecordHeaderAttr, 0, append(r.attr(1, 0, 4000, uint64(kind), 0, freq), r.body().u64(1).b...))
			r.record(perffile.RecordHeaderAttr, 0, append(r.attr(0, 0, 4000, uint64(kind), 0, freq), r.body().u64(2).b...))
			sample(r, words(r, 1))
			sample(r, words(r, 2))
			return r
		}},
		{"a period of 0, and the largest", 2, func() *raw {
			r := begin(kind | perffile.SamplePeriod)
			sample(r, words(r, 1, 0))
			sample(r, words(r, 1, 1<<64-1))
			return r
		}},
		{"too short", 1, func() *raw {
			r := begin(kind | perffile.SamplePeriod)
			sample(r, words(r, 1, 3))
			sample(r, words(r, 1))
			sample(r, nil)
			return r
		}},
		{"callchains that are not all there", 2, func() *raw {
			r := begin(kind | perffile.SampleCallchain)
			sample(r, words(r, 1, 2, 8, 9))
			sample(r, words(r, 1, 0))
			sample(r, words(r, 1))
			for _, n := range []uint64{2, 1 << 61, 1<<64 - 1} {
				sample(r, words(r, 1, n, 8))
			}
			return r
		}},
		{"parts behind a callchain", 1, func() *raw {
			r := begin(kind | perffile.SampleCallchain | perffile.SampleWeight | perffile.SampleStackUser)
			sample(r, words(r, 1, 1, 8, 16, 1, 2, 16, 9))
			sample(r, words(r, 1, 1, 8, 16, 1, 2, 9))
			sample(r, words(r, 1, 1, 8))
			return r
		}},
		{"no time", 0, func() *raw {
			r := begin(perffile.SampleIdentifier | perffile.SampleIP | perffile.SampleTID)
			sample(r, words(r, 1))
			return r
		}},
		{"counters", 0, func() *raw {
			r := begin(kind | perffile.SampleRead)
			sample(r, words(r, 1, 500))
			return r
		}},
		{"an event that comes later", 2, func() *raw {
			r := begin(kind)
			sample(r, words(r, 1))
			sample(r, words(r, 1))
			r.record(perffile.RecordHeaderAttr, 0, append(r.attr(0, 1, 1000, uint64(kind), 0, 0), r.body().u64(2).b...))
			sample(r, words(r, 1))
			sample(r, words(r, 2))
			return r
		}},
		{"bytes that are no record", 1, func() *raw {
			r := begin(kind)
			sample(r, words(r, 1))
			return r.u32(uint32(perffile.RecordSample)).u16(0, 4)
		}},
		{"compressed", 299, func() *raw {
			r := samplesPipe(little())
			for _, piece := range zstdPieces(t, rawSamples(little(), 300), 4000) {
				compressed(r, perffile.RecordCompressed, piece)
			}
			return r
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := compareFlat(t, tt.make().b)
			if got > tt.want || got < tt.want/2 { // how many depends on where pieces of what was compressed end
				t.Errorf("%d samples were flat, want %d", got, tt.want)
			}
		})
	}
}

// TestAhead reads files that are longer than the pieces that are read ahead: whole, cut
// off, and with parts to be passed over, on one processor and on several.
func TestAhead(t *testing.T) {
	r := samplesPipe(little())
	r.b = rawSamples(r, 40_000)
	r.record(perffile.RecordAuxtrace, 0, r.body().u64(700_001, 0, 0).u32(0, 1, 2, 0).b).bytes(make([]byte, 700_001)...)
	r.b = rawSamples(r, 40_000)
	r.record(perfdata.RecordType(32769), 2, make([]byte, 8)).bytes(make([]byte, 2<<16)...)
	r.b = rawSamples(r, 40_000)
	for _, size := range []int{len(r.b), len(r.b) - 1, 3<<20 + 1, 3 << 18, 3<<18 + 17, 1 << 20} {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
		want, _ := transcribe(r.b[:size], perfdata.Options{}, 0)
		runtime.GOMAXPROCS(4)
		for _, most := range []int{0, 1000} {
			got, _ := transcribe(r.b[:size], perfdata.Options{}, most)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%d of %d bytes: %d records, %q, %+v; want %d, %q, %+v", size, len(r.b), len(got.lines), got.err, got.stats, len(want.lines), want.err, want.stats)
			}
		}
	}
}
