package perfdata_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/perfwrite"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

var update = flag.Bool("update", false, "rewrite the expected output under testdata")

func testdata(t testing.TB) []string {
	t.Helper()
	var files []string
	for _, pattern := range []string{"*.data", "*.pipe"} {
		found, err := filepath.Glob(filepath.Join("testdata", pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) < 10 {
		t.Fatalf("testdata has %d recordings", len(files))
	}
	return files
}

// dump describes a file: its header, events, and the first records of each type.
func dump(r *perfdata.Reader) string {
	var b strings.Builder
	seen := map[perfdata.RecordType]int{}
	for r.Next() {
		rec := r.Record()
		h := rec.Head()
		if seen[h.Type]++; seen[h.Type] > 3 {
			continue
		}
		fmt.Fprintf(&b, "0x%x %v %v", h.Offset, h.Type, h.Mode())
		switch rec := rec.(type) {
		case *perfdata.Sample:
			fmt.Fprintf(&b, " %q pid %d tid %d cpu %d time %d ip %x addr %x period %d frames %d stack %d cgroup %d", rec.Event().Name, rec.PID(),
				rec.TID(), rec.CPU(), rec.Time(), rec.IP(), rec.Addr(), rec.Period(), rec.Callchain().Len(), len(rec.StackUser()), rec.Cgroup())
			var read perfdata.Reading
			if rec.Read(&read) {
				fmt.Fprintf(&b, " read %+v", read.Values)
			}
			if rec.Has(perffile.SampleDataSrc) {
				fmt.Fprintf(&b, " %v", perffile.DataSrc(rec.DataSrc()))
			}
		case *perfdata.Mmap:
			fmt.Fprintf(&b, " pid %d %x+%x@%x %s", rec.PID, rec.Addr, rec.Len, rec.PgOff, rec.Filename)
		case *perfdata.Comm:
			fmt.Fprintf(&b, " tid %d %s", rec.TID, rec.Comm)
		case *perfdata.Task:
			fmt.Fprintf(&b, " tid %d of %d", rec.TID, rec.PTID)
		case *perfdata.Cgroup:
			fmt.Fprintf(&b, " %d %s", rec.ID, rec.Path)
		case *perfdata.Read:
			fmt.Fprintf(&b, " tid %d %+v", rec.TID, rec.Reading.Values)
		case *perfdata.Stat:
			fmt.Fprintf(&b, " id %d cpu %d thread %d: %d %d %d", rec.ID, rec.CPU, rec.Thread, rec.Value, rec.Enabled, rec.Running)
		case *perfdata.StatRound:
			fmt.Fprintf(&b, " final %v at %d", rec.Final, rec.Time)
		case *perfdata.CPUMap:
			fmt.Fprintf(&b, " %v", rec.CPUs)
		case *perfdata.Raw:
			if rec.Why != "" || strings.HasPrefix(h.Type.String(), "type ") {
				fmt.Fprintf(&b, " not decoded: %s", rec.Why)
			}
		}
		if x := h.Trailer(); x.Has != 0 {
			fmt.Fprintf(&b, " [pid %d tid %d cpu %d time %d]", x.PID, x.TID, x.CPU, x.Time)
		}
		b.WriteByte('\n')
	}
	for _, e := range r.Events() {
		fmt.Fprintf(&b, "event %q type %d config %#x period %d sample %v read %#x flags %#x ids %d unit %q scale %g group %q\n", e.Name, e.Type, e.Config,
			e.SamplePeriod, e.SampleType, e.ReadFormat, e.Flags, len(e.IDs), e.Unit, e.Scale, e.Group)
	}
	s := r.Stats()
	for _, x := range sortedTypes(s.Records) {
		fmt.Fprintf(&b, "%v: %d\n", x, s.Records[x])
	}
	f := r.Features()
	fmt.Fprintf(&b, "%v\narch %q cpus %d online %d pmus %v cmdline %q topology %v caches %d\n", f.Present, f.Arch, f.CPUs, f.Online, f.PMUs,
		f.Cmdline, f.Topology, len(f.Caches))
	for _, id := range f.BuildIDs {
		fmt.Fprintf(&b, "build id %x %s\n", id.BuildID, id.Filename)
	}
	fmt.Fprintf(&b, "samples %d lost %d truncated %d notes %q err %v\n", s.Samples, s.Lost, s.Truncated, s.Notes, r.Err())
	return b.String()
}

func sortedTypes(m map[perfdata.RecordType]int64) []perfdata.RecordType {
	var out []perfdata.RecordType
	for x := range m {
		out = append(out, x)
	}
	slices.Sort(out)
	return out
}

// TestGolden reads small recordings of Debian's perf 6.1 and compares with what
// was found in them before. TestLiveTestdata compares them with perf.
func TestGolden(t *testing.T) {
	for _, path := range testdata(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got := dump(open(t, b))
			golden := path + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s has changed; -update rewrites it. Got\n%s", golden, got)
			}
		})
	}
}

// A file gives the same records read at random, as a stream, byte by byte, and compressed as a
// whole.
func TestStreams(t *testing.T) {
	for _, path := range testdata(t) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want := dump(open(t, b))
		for name, src := range map[string]func() io.Reader{
			"stream":   func() io.Reader { return onlyReader{bytes.NewReader(b)} },
			"one byte": func() io.Reader { return iotest.OneByteReader(bytes.NewReader(b)) },
			"gzip":     func() io.Reader { return bytes.NewReader(gzipped(t, b)) },
			"zstd":     func() io.Reader { return onlyReader{bytes.NewReader(zstded(t, b))} },
		} {
			for _, hold := range []int{0, -1, 1000} {
				r, err := perfdata.NewReader(src(), "test.data", perfdata.Options{Hold: hold})
				if err != nil {
					t.Fatalf("%s, %s: %v", path, name, err)
				}
				got, want := dump(r), want
				if hold != 0 { // the names of events are behind the records
					got, want = records(got)+tailOf(got), records(want)+tailOf(want)
				}
				if got != want {
					t.Errorf("%s, %s, hold %d: got\n%s\nwant\n%s", path, name, hold, got, want)
				}
			}
		}
	}
}

// records is the part of a dump about records, without what depends on the
// names of events.
func records(dump string) string {
	var out []string
	for line := range strings.Lines(dump) {
		if strings.HasPrefix(line, "0x") && !strings.Contains(line, "SAMPLE") {
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}

func tailOf(dump string) string {
	_, tail, _ := strings.Cut(dump, "\nevent ")
	return tail
}

type onlyReader struct{ io.Reader }

func gzipped(t testing.TB, b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	z.Close()
	return out.Bytes()
}

func zstded(t testing.TB, b []byte) []byte {
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	return z.EncodeAll(b, nil)
}

// Wherever a file is cut off, what precedes the cut is read and nothing else
// happens.
func TestTruncated(t *testing.T) {
	for _, path := range []string{"testdata/plain.data", "testdata/zstd.data", "testdata/pipe.data", "testdata/stat.data"} {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		before := int64(0)
		for n := 0; n < len(b); n += 1 + n/400*5 {
			r, err := perfdata.NewReader(bytes.NewReader(b[:n]), "cut.data", perfdata.Options{Buffer: 1})
			if err != nil {
				oneLine(t, err)
				continue
			}
			for r.Next() {
			}
			if r.Err() != nil {
				t.Fatalf("%s cut at %d: %v", path, n, r.Err())
			}
			got := r.Stats().Samples
			if got < before {
				t.Fatalf("%s cut at %d: %d samples, after %d of a shorter one", path, n, got, before)
			}
			before = got
		}
	}
}

func oneLine(t *testing.T, err error) {
	t.Helper()
	var e *perfdata.Error
	if !errors.As(err, &e) || strings.Contains(err.Error(), "\n") || e.File == "" || e.Msg == "" {
		t.Errorf("error %#v", err)
	}
}

// samplesPipe begins a pipe with an event of the samples of rawSamples.
func samplesPipe(r *raw) *raw {
	const kind = perffile.SampleIdentifier | perffile.SampleIP | perffile.SampleTID | perffile.SampleTime | perffile.SampleCPU | perffile.SamplePeriod
	return r.pipe().record(perffile.RecordHeaderAttr, 0, append(r.attr(1, 0, 1000, uint64(kind), 0, 0), r.body().u64(41).b...))
}

// TestCompressed reads one zstd stream in pieces that end anywhere, also inside
// records, with other records between them.
func TestCompressed(t *testing.T) {
	plain := rawSamples(little(), 1000)
	for _, size := range []int{1, 7, 100, 1000, 5000, len(plain)} {
		for _, kind := range []perfdata.RecordType{perffile.RecordCompressed, perffile.RecordCompressed2} {
			r := samplesPipe(little())
			pieces := 0
			for _, piece := range zstdPieces(t, plain, size) {
				compressed(r, kind, piece)
				r.record(perffile.RecordFinishedRound, 0, nil)
				pieces++
			}
			d := open(t, r.b)
			at, rounds := uint64(0), 0
			for d.Next() {
				switch rec := d.Record().(type) {
				case *perfdata.Sample:
					if rec.IP() != 0x401000+at {
						t.Fatalf("pieces of %d: sample %d has the address %x", size, at, rec.IP())
					}
					at++
				case *perfdata.FinishedRound:
					// All of the pieces before came first.
					if rounds++; int(at) != min(rounds*size, len(plain))/56 {
						t.Fatalf("pieces of %d: %d samples before round %d", size, at, rounds)
					}
				}
			}
			s := d.Stats()
			if at != 1000 || rounds != pieces || d.Err() != nil || s.Decompressed != int64(len(plain)) || s.Records[kind] != int64(pieces) {
				t.Errorf("pieces of %d: %d samples, %d of %d rounds, %v, %+v", size, at, rounds, pieces, d.Err(), s)
			}
		}
	}
}

// zstdPieces compresses b as one stream that is flushed after each size bytes
// and never ended.
func zstdPieces(t testing.TB, b []byte, size int) [][]byte {
	var out bytes.Buffer
	z, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	var pieces [][]byte
	for chunk := range slices.Chunk(b, size) {
		if _, err := z.Write(chunk); err != nil {
			t.Fatal(err)
		}
		if err := z.Flush(); err != nil {
			t.Fatal(err)
		}
		pieces = append(pieces, bytes.Clone(out.Bytes()))
		out.Reset()
	}
	return pieces
}

// compressed appends a record with a piece of a zstd stream; of COMPRESSED2 with
// its size and padding.
func compressed(r *raw, kind perfdata.RecordType, piece []byte) {
	if kind == perffile.RecordCompressed2 {
		body := r.body().u64(uint64(len(piece))).bytes(piece...).b
		for len(body)%8 != 0 {
			body = append(body, 0)
		}
		piece = body
	}
	r.record(kind, 0, piece)
}

// TestCompressedJoined reads what some versions of perf wrote when one piece did
// not fit into a record: several records, the first with the size of all.
func TestCompressedJoined(t *testing.T) {
	noise := little()
	for i := range uint64(4000) { // hard to compress
		x := i * 0x9e3779b97f4a7c15
		x ^= x >> 29
		noise.record(perffile.RecordSample, 2, noise.body().u64(41, x*0xbf58476d1ce4e5b9).u32(uint32(x), 100).u64(x*x).u32(uint32(x>>32), 0).u64(1000).b)
	}
	piece := zstdPieces(t, noise.b, len(noise.b))[0]
	const full = 1<<16 - 1 - 16
	if len(piece) < full+1000 {
		t.Fatalf("%d bytes do not need two records", len(piece))
	}
	r := samplesPipe(little())
	var body []byte
	for i, part := range slices.Collect(slices.Chunk(piece, full)) {
		if i > 0 {
			body = append(body, r.body().u32(uint32(perffile.RecordCompressed2)).u16(0, uint16(16+len(part))).u64(0xdeadbeef).b...)
		}
		body = append(body, part...)
	}
	pad := -(16 + len(body)) & 7
	r.u32(uint32(perffile.RecordCompressed2)).u16(0, uint16(16+len(body)+pad)).u64(uint64(len(body))).bytes(body...).bytes(make([]byte, pad)...)
	r.record(perffile.RecordFinishedRound, 0, nil)
	d := open(t, r.b)
	for d.Next() {
	}
	if s := d.Stats(); s.Samples != 4000 || d.Err() != nil || s.Records[perffile.RecordFinishedRound] != 1 {
		t.Errorf("%v, %+v", d.Err(), s)
	}
}

func TestCompressedDamaged(t *testing.T) {
	piece := zstdPieces(t, rawSamples(little(), 10), 560)[0]
	for name, payload := range map[string][]byte{
		"no zstd": []byte("this is no zstd stream at all"),
		"flipped": append(bytes.Clone(piece[:len(piece)/2]), bytes.Repeat([]byte{0xff}, 64)...),
		"zeros":   zstdPieces(t, make([]byte, 1<<16), 1<<16)[0],
	} {
		r := samplesPipe(little())
		r.record(perffile.RecordCompressed, 0, payload)
		d := open(t, r.b)
		for d.Next() {
		}
		if d.Err() == nil {
			t.Errorf("%s: no error, %+v", name, d.Stats())
		} else {
			oneLine(t, d.Err())
		}
	}
	// A record that the stream ends in is none.
	r := samplesPipe(little())
	r.record(perffile.RecordCompressed, 0, zstdPieces(t, rawSamples(little(), 10)[:555], 555)[0])
	d := open(t, r.b)
	for d.Next() {
	}
	if s := d.Stats(); s.Samples != 9 || d.Err() != nil || s.Truncated < 0 {
		t.Errorf("%v %+v", d.Err(), s)
	}
}

// What follows records without being one is passed over.
func TestPayloads(t *testing.T) {
	r := samplesPipe(little())
	aux := bytes.Repeat([]byte{9}, 1<<20+3)
	r.record(perffile.RecordAuxtrace, 0, r.body().u64(uint64(len(aux)), 0, 0).u32(0, 1, 2, 0).b).bytes(aux...)
	r.record(perffile.RecordHeaderTracingData, 0, r.body().u32(16, 0).b).bytes(make([]byte, 16)...)
	r.b = rawSamples(r, 3)
	r.record(perffile.RecordAuxtrace, 0, r.body().u64(1<<63, 0, 0).u32(0, 1, 2, 0).b)
	for _, src := range []io.Reader{bytes.NewReader(r.b), onlyReader{bytes.NewReader(r.b)}} {
		d, err := perfdata.NewReader(src, "aux.data", perfdata.Options{Hold: -1})
		if err != nil {
			t.Fatal(err)
		}
		for d.Next() {
		}
		if s := d.Stats(); s.Samples != 3 || d.Err() != nil || s.AuxBytes < int64(len(aux)) || s.Truncated < 0 {
			t.Errorf("%v, %+v", d.Err(), s)
		}
	}
}

// A message of damage says how much of the data was not read, where that is known. One
// of a file that was cut off says how much is missing.
func TestDamaged(t *testing.T) {
	file := writeFile(t, perfwrite.WriterOptions{Events: someEvents()}, someFeatures(), &perfdata.FinishedRound{}, &perfdata.FinishedRound{})
	le := binary.LittleEndian
	data := le.Uint64(file[40:])
	for _, tt := range []struct {
		name   string
		change func(b []byte) []byte
		want   string
	}{
		{"empty", func(b []byte) []byte { return nil }, "this is no perf.data"},
		{"text", func(b []byte) []byte { return []byte("PERF IS FUN, PERFILE3") }, "this is no perf.data"},
		{"magic only", func(b []byte) []byte { return b[:8] }, "ends inside its header"},
		{"header cut", func(b []byte) []byte { return b[:90] }, "ends inside its header"},
		{"header size", func(b []byte) []byte { le.PutUint64(b[8:], 20); return b }, "a header of 20 bytes"},
		{"attr size", func(b []byte) []byte { le.PutUint64(b[16:], 0); return b }, "events of 0 bytes"},
		{"attrs outside", func(b []byte) []byte { le.PutUint64(b[24:], 1<<40); return b }, "the list of events lies behind the end of the file"},
		{"many attrs", func(b []byte) []byte { le.PutUint64(b[32:], 1<<60); return b }, "events"},
		{"attrs far outside", func(b []byte) []byte { le.PutUint64(b[24:], 1<<64-16); return b }, "at 0xfffffffffffffff0: the list of events lies behind the end of the file"},
		{"ids outside", func(b []byte) []byte { le.PutUint64(b[le.Uint64(b[24:])+le.Uint64(b[16:])-16:], 1<<40); return b }, "ids lies behind"},
		{"many ids", func(b []byte) []byte { le.PutUint64(b[le.Uint64(b[24:])+le.Uint64(b[16:])-8:], 1<<50); return b }, "ids of events"},
		{"data outside", func(b []byte) []byte { le.PutUint64(b[40:], 1<<40); return b }, "behind the end of the file"},
		{"data in header", func(b []byte) []byte { le.PutUint64(b[40:], 8); return b }, "inside the header"},
		{"data overflows", func(b []byte) []byte { le.PutUint64(b[48:], 1<<63+1); return b }, "a data section of"},
		{"record of 0", func(b []byte) []byte { le.PutUint16(b[data+6:], 0); return b }, "a record (FINISHED_ROUND) of 0 bytes"},
		{"record overruns", func(b []byte) []byte { le.PutUint16(b[data+6:], 100); return b }, "ends behind the data"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := perfdata.NewReader(bytes.NewReader(tt.change(bytes.Clone(file))), "damaged.data", perfdata.Options{})
			if err == nil {
				for r.Next() {
				}
				err = r.Err()
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "damaged.data: at 0x") {
				t.Fatalf("error %v, want one with %q", err, tt.want)
			}
			oneLine(t, err)
		})
	}
	if _, err := perfdata.NewReader(strings.NewReader("hello, world, hello"), "x", perfdata.Options{}); !errors.Is(err, perfdata.ErrFormat) {
		t.Errorf("%v is no ErrFormat", err)
	}
	failing := io.MultiReader(bytes.NewReader(file[:data+3]), iotest.ErrReader(errors.New("disk on fire")))
	r, err := perfdata.NewReader(failing, "x", perfdata.Options{Hold: -1})
	if err != nil {
		t.Fatal(err)
	}
	for r.Next() {
	}
	if r.Err() == nil || !strings.Contains(r.Err().Error(), "disk on fire") {
		t.Errorf("the error of the input is lost: %v", r.Err())
	}
}

// A damaged section of the header costs its content and no more.
func TestDamagedFeatures(t *testing.T) {
	file := writeFile(t, perfwrite.WriterOptions{Events: someEvents()}, someFeatures(), &perfdata.FinishedRound{})
	le := binary.LittleEndian
	table := le.Uint64(file[40:]) + le.Uint64(file[48:])
	le.PutUint64(file[table+16*2:], 1<<50) // where OSRELEASE is
	r := open(t, file)
	if f := r.Features(); f.OSRelease != "" || f.Hostname != "host" || f.Arch != "x86_64" {
		t.Errorf("%+v", f)
	}
	if got := types(r); len(got) != 1 || r.Err() != nil || len(r.Stats().Notes) != 1 {
		t.Errorf("%v %v %q", got, r.Err(), r.Stats().Notes)
	}
}

// Version 1 has another magic, names in the section of event types, and
// attributes without ids.
func TestVersion1(t *testing.T) {
	for name, r := range map[string]*raw{"little": little(), "big": big()} {
		const attrs, types, data = 104, 104 + 80, 104 + 80 + 72
		samples := rawSamples1(r.body(), 4)
		r.bytes([]byte("PERFFILE")...).u64(104, 80, attrs, 80, data, uint64(len(samples)), types, 72, 0, 0, 0, 0)
		r.bytes(r.attr(0, 0, 1000, uint64(perffile.SampleIP|perffile.SampleTID), 0, 0)...).u64(0, 0)
		r.u64(0).bytes(append([]byte("CPU cycles"), make([]byte, 54)...)...)
		r.bytes(samples...)
		d := open(t, r.b)
		if d.Version() != 1 || d.BigEndian() != (name == "big") {
			t.Errorf("%s: version %d, big %v", name, d.Version(), d.BigEndian())
		}
		n := 0
		for d.Next() {
			if s, ok := d.Record().(*perfdata.Sample); ok && s.Event().Name == "CPU cycles" && s.TID() == 101 && s.Period() == 1000 {
				n++
			}
		}
		if n != 4 || d.Err() != nil {
			t.Errorf("%s: %d samples, %v", name, n, d.Err())
		}
	}
}

func rawSamples1(r *raw, n int) []byte {
	for range n {
		r.record(perffile.RecordSample, 2, r.body().u64(0x401000).u32(100, 101).b)
	}
	return r.b
}

// Records of types that nobody knows are counted and handed out; any number of
// types takes a bounded amount of memory.
func TestUnknown(t *testing.T) {
	r := samplesPipe(little())
	for i := range uint32(5000) {
		r.record(perfdata.RecordType(1<<20+i), 0, r.body().u64(uint64(i)).b)
	}
	r.record(perffile.RecordBPFMetadata, 0, r.body().u64(1).b) // known, not decoded
	d := open(t, r.b)
	n := 0
	for d.Next() {
		if rec, ok := d.Record().(*perfdata.Raw); ok && rec.Why == "" && len(rec.Bytes()) == 16 {
			n++
		}
	}
	s := d.Stats()
	if n != 5001 || s.Unknown != 5000 || s.Malformed != 0 || len(s.Records) > 300 {
		t.Errorf("%d records, %d unknown, %d malformed, %d types", n, s.Unknown, s.Malformed, len(s.Records))
	}
	sum := int64(0)
	for _, n := range s.Records {
		sum += n
	}
	if sum != 5002 {
		t.Errorf("the types add up to %d", sum)
	}
	const loss = "5000 records are of types that are not known, and were passed over: type 1048576, type 1048577, type 1048578, type 1048579, …"
	if got := d.Losses(); !slices.Contains(counts.Texts(got), loss) {
		t.Errorf("losses %q, want %q", got, loss)
	}
}

// Simpleperf writes the descriptions of tracepoints into the record that perf writes in
// front of them.
func TestTracingInside(t *testing.T) {
	format := []byte("name: sched_switch\nID: 47\n")
	tracing := little().bytes([]byte("\x17\x08\x44tracing0.5\x00")...).bytes(0, 8).u32(4096)
	for _, name := range []string{"header_page\x00", "header_event\x00"} {
		tracing.bytes([]byte(name)...).u64(0)
	}
	tracing.u32(0, 1).bytes([]byte("sched\x00")...).u32(1).u64(uint64(len(format))).bytes(format...)
	for _, inside := range []bool{false, true} {
		r := little().pipe()
		kind := uint64(perffile.SampleIdentifier | perffile.SampleIP | perffile.SampleTID | perffile.SampleTime | perffile.SampleCPU | perffile.SamplePeriod)
		r.record(perffile.RecordHeaderAttr, 0, append(r.attr(2, 47, 1, kind, 0, 0), r.body().u64(41).b...))
		body := r.body().u32(uint32(len(tracing.b)))
		if inside {
			r.record(perffile.RecordHeaderTracingData, 0, body.bytes(tracing.b...).bytes(make([]byte, 20)...).b)
		} else {
			r.record(perffile.RecordHeaderTracingData, 0, body.b).bytes(tracing.b...)
		}
		r.b = rawSamples(r, 3)
		d := open(t, r.b)
		for d.Next() {
		}
		if s := d.Stats(); s.Samples != 3 || s.Unknown != 0 || s.Truncated >= 0 || d.Err() != nil || d.Events()[0].Name != "sched:sched_switch" {
			t.Errorf("inside %v: %v, %+v, %s", inside, d.Err(), s, d.Events()[0].Name)
		}
	}
}

// A message about damage says how much of the data was not read, where that is known.
// One about a file that was cut off says how much is missing.
func TestLossesOfDamage(t *testing.T) {
	plain, err := os.ReadFile("testdata/plain.data")
	if err != nil {
		t.Fatal(err)
	}
	le := binary.LittleEndian
	data, size := int64(le.Uint64(plain[40:])), int64(le.Uint64(plain[48:]))
	at := int64(0) // of a sample in the second half
	for r := open(t, plain); r.Next(); {
		if h := r.Record().Head(); at == 0 && h.Type == perffile.RecordSample && h.Offset > data+size/2 {
			at = h.Offset
		}
	}
	left := data + size - at
	damaged := bytes.Clone(plain)
	le.PutUint16(damaged[at+6:], 0)
	of := fmt.Sprintf("%d of %d bytes (%.2g %%)", left, size, 100*float64(left)/float64(size))
	for _, tt := range []struct {
		name string
		src  io.Reader
		want string
	}{
		{"file", bytes.NewReader(damaged), "not counted, " + of},
		{"stream", onlyReader{bytes.NewReader(damaged)}, "not counted, " + of},
		{"long stream", onlyReader{bytes.NewReader(damaged)}, "not counted, " + of},
		{"cut off", bytes.NewReader(plain[:at+9]), fmt.Sprintf("the file ends inside a record, at 0x%x: of %d bytes of data, as its header says, %d are missing", at, size, left)},
	} {
		o := perfdata.Options{}
		if tt.name == "long stream" {
			o.Hold = -1
		}
		r, err := perfdata.NewReader(tt.src, tt.name, o)
		if err != nil {
			t.Fatal(err)
		}
		for r.Next() {
		}
		if got := strings.Join(counts.Texts(r.Losses()), "\n"); !strings.Contains(got, tt.want) {
			t.Errorf("%s: losses %q, want %q", tt.name, got, tt.want)
		}
	}
}

// Simpleperf's own records can be longer than the 16 bits of their size.
func TestSimpleperf(t *testing.T) {
	r := samplesPipe(little())
	r.record(perfdata.RecordType(32769), 2, make([]byte, 8))
	r.bytes(make([]byte, 2<<16)...)
	r.b = rawSamples(r, 2)
	d := open(t, r.b)
	for d.Next() {
	}
	if s := d.Stats(); s.Samples != 2 || s.Unknown != 1 || d.Err() != nil {
		t.Errorf("%v %+v", d.Err(), s)
	}
}

func TestCPUMaps(t *testing.T) {
	for _, tt := range []struct {
		name string
		body []byte
		want []int
	}{
		{"list", little().u16(0, 3, 0, 5, 0xffff).b, []int{0, 5, -1}},
		{"mask of 32 bits", little().u16(1, 2, 4).u32(1<<3, 1).b, []int{3, 32}},
		{"mask of 64 bits", little().u16(1, 2, 8).bytes(0, 0, 0, 0).u64(1<<63, 1).b, []int{63, 64}},
		{"range", little().u16(2).bytes(1, 0).u16(4, 6).b, []int{-1, 4, 5, 6}},
		{"backwards", little().u16(2).bytes(0, 0).u16(6, 4).b, nil},
		{"too long", little().u16(0, 0xffff, 1).b, nil},
		{"a mask of odd words", little().u16(1, 1, 3).u64(1).b, nil},
		{"unknown", little().u16(9).b, nil},
	} {
		r := little().pipe()
		r.record(perffile.RecordCPUMap, 0, tt.body)
		d := open(t, r.b)
		var got []int
		for d.Next() {
			if m, ok := d.Record().(*perfdata.CPUMap); ok {
				got = slices.Clone(m.CPUs)
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestEventNames(t *testing.T) {
	for _, tt := range []struct {
		kind          uint32
		config, flags uint64
		want          string
	}{
		{0, 0, 0, "cycles"},
		{0, 1, 1<<5 | 1<<6, "instructions:u"},
		{0, 0, 1 << 4, "cycles:kh"},
		{0, 10 << 32, 0, "pmu10/cycles/"},
		{0, 99, 0, "hardware 0x63"},
		{1, 2, 0, "page-faults"},
		{1, 99, 0, "software 0x63"},
		{2, 300, 0, "tracepoint 300"},
		{3, 0x10002, 0, "LLC-load-misses"},
		{3, 0x101, 2 << 15, "L1-icache-stores:pp"},
		{3, 0xff, 0, "cache 0xff"},
		{4, 0x1a8, 1<<5 | 1<<6, "r1a8:u"},
		{12, 0x3c, 1<<5 | 1<<6, "pmu12/config=0x3c/u"},
		{5, 0, 0, "mem:0x0:"},
		{0, 4 << 32, 0, "cpu_core/cycles/"},
		{4, 0xc0, 1 << 19, "rc0:G"},
	} {
		r := little().pipe()
		r.record(perffile.RecordHeaderAttr, 0, r.attr(tt.kind, tt.config, 1, 1, 0, tt.flags))
		pmus := r.body().u64(uint64(perffile.FeaturePMUMappings)).u32(1, 4, 9).bytes([]byte("cpu_core\x00")...)
		r.record(perffile.RecordHeaderFeature, 0, pmus.b)
		d := open(t, r.b)
		for d.Next() {
		}
		if e := d.Events()[0]; e.Name != tt.want || e.Named {
			t.Errorf("type %d config %#x: %q, want %q", tt.kind, tt.config, e.Name, tt.want)
		}
	}
}

func TestDetect(t *testing.T) {
	b, err := os.ReadFile("testdata/plain.data")
	if err != nil {
		t.Fatal(err)
	}
	for name, head := range map[string][]byte{"plain": b[:100], "gzip": gzipped(t, b)[:2000], "zstd": zstded(t, b), "big": []byte("2ELIFREP\x00"), "old": []byte("PERFFILE")} {
		if !perfdata.Detect(head) {
			t.Errorf("%s is not detected", name)
		}
	}
	for name, head := range map[string][]byte{"empty": nil, "text": []byte("PERFILE3"), "short": []byte("PERF"), "gzip": gzipped(t, []byte("hello, world")), "cut": {0x1f, 0x8b, 8}} {
		if perfdata.Detect(head) {
			t.Errorf("%s is detected", name)
		}
	}
}

// The walk allocates nothing for each record.
func TestAllocations(t *testing.T) {
	r := samplesPipe(little())
	r.b = rawSamples(r, 50000)
	n := testing.AllocsPerRun(3, func() {
		d := open(t, r.b)
		for d.Next() {
			if s, ok := d.Record().(*perfdata.Sample); ok {
				sink += s.IP()
			}
		}
	})
	if n > 500 {
		t.Errorf("%v allocations for 50000 samples", n)
	}
}

// EVENT_UPDATE records bring what an event's attribute does not say.
func TestEventUpdates(t *testing.T) {
	r := samplesPipe(little())
	update := func(kind uint64, body []byte) {
		r.record(perffile.RecordEventUpdate, 0, append(r.body().u64(kind, 41).b, body...))
	}
	update(0, []byte("Joules\x00\x00"))
	update(1, r.body().u64(0x3fe0000000000000).b) // 0.5
	update(1, r.body().u64(0x7ff8000000000000).b) // NaN, which is no scale
	update(2, []byte("power/energy/\x00\x00\x00"))
	update(3, r.body().u16(0, 2, 0, 4).b)
	r.record(perffile.RecordEventUpdate, 0, r.body().u64(2, 999, 0).b) // nobody's
	d := open(t, r.b)
	for d.Next() {
	}
	e := d.Events()[0]
	if e.Unit != "Joules" || e.Scale != 0.5 || e.Name != "power/energy/" || !e.Named || !slices.Equal(e.CPUs, []int{0, 4}) {
		t.Errorf("%+v", e)
	}
}

// The bits of the header's sections are words of 32 bits on a big-endian machine
// of 32 bits.
func TestFeatureBits32(t *testing.T) {
	file := writeFile(t, perfwrite.WriterOptions{Events: someEvents(), BigEndian: true}, someFeatures(), &perfdata.FinishedRound{})
	for at := 72; at < 104; at += 8 {
		word := bytes.Clone(file[at : at+8])
		copy(file[at:], word[4:])
		copy(file[at+4:], word[:4])
	}
	if f := open(t, file).Features(); f.Hostname != "host" || f.CPUID == "" || len(f.PMUCaps) != 1 {
		t.Errorf("%+v", f)
	}
}

// The first versions of perf wrote build ids without the process.
func TestOldBuildIDs(t *testing.T) {
	id := func(b byte) []byte { return append(bytes.Repeat([]byte{b}, 20), 0, 0, 0, 0) }
	r := little().pipe()
	table := r.body()
	table.record(perffile.RecordHeaderBuildID, 1, append(id(1), []byte("[kernel.kallsyms]\x00\x00\x00\x00\x00\x00\x00")...))
	table.record(perffile.RecordHeaderBuildID, 2, append(id(2), []byte("/bin/ls\x00")...))
	r.record(perffile.RecordHeaderFeature, 0, append(r.body().u64(uint64(perffile.FeatureBuildID)).b, table.b...))
	d := open(t, r.b)
	for d.Next() {
	}
	got := d.Features().BuildIDs
	if len(got) != 2 || got[0].Filename != "[kernel.kallsyms]" || got[1].Filename != "/bin/ls" || got[1].BuildID[0] != 2 || got[0].PID != -1 || got[0].Mode != perfdata.ModeKernel {
		t.Errorf("%+v", got)
	}
}

// Records that the writer does not write.
func TestOtherRecords(t *testing.T) {
	for _, order := range []*raw{little(), big()} {
		r := order.pipe()
		const kind = perffile.SampleTID | perffile.SampleTime
		flags := uint64(1 << 18)
		if r.order == binary.AppendByteOrder(binary.BigEndian) {
			flags = 1 << (63 - 18)
		}
		r.record(perffile.RecordHeaderAttr, 0, append(r.attr(1, 0, 1, uint64(kind), 7, flags), r.body().u64(1).b...))
		r.record(perffile.RecordRead, 0, r.body().u32(10, 11).u64(500, 30, 20, 1).u32(10, 11).u64(77).b)
		r.record(perffile.RecordAuxtraceError, 0, r.body().u32(1, 5, 3, 10, 11, 1).u64(0x401000, 99).bytes([]byte("overflow")...).u64(0).b)
		r.record(perffile.RecordAuxtraceError, 0, r.body().u32(1, 5, 3, 10, 11, 0).u64(0x401000).bytes([]byte("old")...).b)
		r.record(perffile.RecordAuxtraceInfo, 0, r.body().u32(3, 0).u64(8, 9).b)
		r.record(perffile.RecordHeaderEventType, 0, r.body().u64(0).bytes([]byte("cpu-clock!\x00")...).b)
		r.record(perffile.RecordCallchainDeferred, 0, r.body().u64(5, 2, 0x10, 0x20).u32(10, 11).u64(78).b)
		d := open(t, r.b)
		var got []string
		for d.Next() {
			switch rec := d.Record().(type) {
			case *perfdata.Read:
				got = append(got, fmt.Sprint(rec.TID, rec.Reading.Values, rec.Reading.Enabled, rec.Reading.Running, rec.Trailer().Time))
			case *perfdata.CallchainDeferred:
				got = append(got, fmt.Sprint(rec.Cookie, rec.Callchain.AppendTo(nil), rec.Trailer().Time))
			case *perfdata.Raw:
				if rec.Why != "" {
					t.Errorf("%v: %s", rec.Type, rec.Why)
				}
				got = append(got, fmt.Sprint(rec.Type))
			}
		}
		want := []string{"HEADER_ATTR", "11 [{500 1 0}] 30 20 77", "AUXTRACE_ERROR", "AUXTRACE_ERROR", "AUXTRACE_INFO", "HEADER_EVENT_TYPE", "5 [16 32] 78"}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if name := d.Events()[0].Name; name != "cpu-clock!" {
			t.Errorf("event %q", name)
		}
	}
}

// An unfinished file may end in space that nothing was written to.
func TestUnfinishedSpace(t *testing.T) {
	file := writeFile(t, perfwrite.WriterOptions{Events: someEvents()}, nil, &perfdata.FinishedRound{})
	le := binary.LittleEndian
	end := le.Uint64(file[40:]) + le.Uint64(file[48:])
	le.PutUint64(file[48:], 0)
	d := open(t, append(file[:end:end], make([]byte, 4096)...))
	if got := types(d); len(got) != 1 || d.Err() != nil || d.Stats().Truncated != int64(end) {
		t.Errorf("%v, %v, %+v", got, d.Err(), d.Stats())
	}
}

// The files of a directory are read one after the other, each with a zstd
// stream of its own.
func TestParts(t *testing.T) {
	head := samplesPipe(little())
	packed := little()
	for _, piece := range zstdPieces(t, rawSamples(little(), 5), 100) {
		compressed(packed, perffile.RecordCompressed, piece)
	}
	dir := t.TempDir()
	for name, b := range map[string][]byte{"data": head.b, "data.0": rawSamples(little(), 3), "data.1": packed.b, "data.2": nil, "data.3": packed.b,
		"data.4": append(rawSamples(little(), 1), 9, 0, 0, 0)} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d, err := perfdata.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	r, err := perfdata.NewReader(d.Head, dir, perfdata.Options{Parts: d.Parts})
	if err != nil {
		t.Fatal(err)
	}
	for r.Next() {
	}
	if s := r.Stats(); s.Samples != 3+5+5+1 || s.Decompressed != 10*56 || s.Truncated != 56 || r.Err() != nil {
		t.Errorf("%v, %+v", r.Err(), s)
	}
	bad := perfdata.Part{Name: "dir/data.7", R: bytes.NewReader(make([]byte, 8))}
	if r, err = perfdata.NewReader(bytes.NewReader(head.b), dir, perfdata.Options{Parts: []perfdata.Part{bad}}); err != nil {
		t.Fatal(err)
	}
	for r.Next() {
	}
	if r.Err() == nil || !strings.HasPrefix(r.Err().Error(), "dir/data.7: at 0x0: ") {
		t.Errorf("%v does not name the part", r.Err())
	}
	if _, err := perfdata.OpenDir(t.TempDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an empty directory: %v", err)
	}
}
