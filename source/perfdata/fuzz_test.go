package perfdata_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/perfwrite"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// addSeeds adds the recordings of testdata, and files with one of everything.
func addSeeds(f *testing.F) {
	for _, path := range testdata(f) {
		b, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	for _, big := range []bool{false, true} {
		f.Add(writeFile(f, perfwrite.WriterOptions{Events: someEvents(), BigEndian: big}, someFeatures(), someRecords()...))
	}
	for _, r := range []*raw{little(), big()} {
		r.pipe().record(perffile.RecordHeaderAttr, 0, append(fullAttr(r), r.body().u64(77, 79).b...))
		f.Add(r.record(perffile.RecordSample, 0x4002, fullSample(r)).b)
	}
	r := samplesPipe(little())
	compressed(r, perffile.RecordCompressed2, zstdPieces(f, rawSamples(little(), 20), 400)[0])
	f.Add(r.b)
}

// FuzzReader reads all fields of all records. Any input ends in counts or in an error
// of one line. A stream is read like a file, and flat samples are those of the records.
func FuzzReader(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := perfdata.NewReader(bytes.NewReader(b), "fuzz.data", perfdata.Options{})
		if err != nil {
			oneLine(t, err)
			return
		}
		defer r.Close()
		at := int64(0)
		for r.Next() {
			rec := r.Record()
			h := rec.Head()
			if h.Offset < at || len(h.Bytes()) < 8 {
				t.Fatalf("a record of %d bytes at %d, after one at %d", len(h.Bytes()), h.Offset, at)
			}
			at = h.Offset
			h.Trailer()
			if s, ok := rec.(*perfdata.Sample); ok {
				touch(s)
			}
		}
		if r.Err() != nil {
			oneLine(t, r.Err())
		}
		compareFlat(t, b)
		stream, err := perfdata.NewReader(onlyReader{bytes.NewReader(b)}, "fuzz.data", perfdata.Options{Buffer: 1, Hold: -1})
		if err != nil {
			oneLine(t, err) // sections behind the data
			return
		}
		defer stream.Close()
		for stream.Next() {
		}
		a, c := r.Stats(), stream.Stats()
		if a.Unterminated == c.Unterminated && (a.Samples != c.Samples || a.Malformed != c.Malformed) {
			t.Errorf("%d samples and %d malformed of a file, %d and %d of a stream", a.Samples, a.Malformed, c.Samples, c.Malformed)
		}
	})
}

// FuzzTables makes tables of whatever the input holds.
func FuzzTables(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, opts := range []perfdata.TableOptions{
			{By: counts.By(0).With(counts.Thread).With(counts.CPU).With(counts.Cgroup)},
			{By: counts.By(0).With(counts.Process).With(counts.Interval), Interval: 1000},
		} {
			r := perfdata.NewTableReader(bytes.NewReader(b), "fuzz.data", opts)
			n := 0
			for r.Next() {
				n++
				table := r.Table()
				for i := range table.Scopes {
					for j := range table.Columns {
						if c := table.Cell(i, j); c.Running > c.Enabled || c.Samples < 0 || c.State != counts.Counted && c.Value != 0 {
							t.Fatalf("cell %+v", *c)
						}
					}
				}
			}
			if r.Err() != nil {
				oneLine(t, r.Err())
			} else if n == 0 {
				t.Error("neither tables nor an error")
			}
		}
	})
}
