package samples_test

import (
	"bytes"
	"errors"
	"math"
	"os"
	"reflect"
	"runtime"
	"testing"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/source/samples"
	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// TestInstructions compares the instructions of each module, from a reading by function, with
// those of a reading of their own.
func TestInstructions(t *testing.T) {
	compared := 0
	for _, file := range []string{"examples/annotate.data", "examples/functions.data", "examples/levels.data", "examples/stacks.data",
		"source/perfdata/testdata/plain.data", "source/perfdata/testdata/zstd.data", "source/perfdata/testdata/threads.data"} {
		rec := open(t, "../../../"+file)
		o := samples.Options{By: counts.Function, NoInline: true, Again: true, Symbols: profile.Config{Root: "../../../examples/annotate"}}
		in := rec.Samples(o).(*samples.Reader)
		byFunction := tableOf(t, in).Clone()
		for _, s := range byFunction.Scopes {
			if s.Code == nil {
				continue
			}
			only := samples.Filter{Modules: []string{s.Code.Module}, Addresses: []samples.Range{{From: s.Code.Addr, To: math.MaxUint64}}}
			got, err := in.Instructions(only)
			fresh := rec.Samples(samples.Options{By: counts.Instruction, NoInline: true, Filter: only, Symbols: o.Symbols})
			if !fresh.Next() {
				if err == nil || fresh.Err() == nil || err.Error() != fresh.Err().Error() {
					t.Errorf("%s, %s: %v, want %v", file, s.Label, err, fresh.Err())
				}
				fresh.Close()
				continue
			}
			if err != nil || got == nil {
				t.Fatalf("%s, %s: %v: nothing was kept", file, s.Label, err)
			}
			compared++
			want := fresh.Table()
			if !reflect.DeepEqual(got.Scopes, want.Scopes) || !reflect.DeepEqual(got.Notes, want.Notes) || !reflect.DeepEqual(rows(got), rows(want)) {
				t.Errorf("%s, %s: %+v, want %+v", file, s.Label, got, want)
			}
			fresh.Close()
		}
	}
	if compared < 10 {
		t.Errorf("%d tables were compared", compared)
	}
}

func rows(t *counts.Table) (list [][]counts.Cell) {
	for i := range t.Scopes {
		row := append([]counts.Cell(nil), t.Row(i)...)
		for k := range row {
			if math.IsNaN(row[k].Value) {
				row[k].Value = -1
			}
			if math.IsNaN(row[k].Variance) {
				row[k].Variance = -1
			}
		}
		list = append(list, row)
	}
	return list
}

// TestEnough stops at the second function of a name. Of a large recording little is read.
func TestEnough(t *testing.T) {
	root := perfMap(t, t.TempDir(), "tmp/perf-7.map", "10000 1000 same\n11000 1000 other\n12000 1000 same\n13000 1000 alone\n")
	r := newRecording(t, sampleType, "cycles")
	const n = 1 << 17
	for i := range uint64(n) {
		r.sample(1, 7, 0x10000+i%4*0x1000, i+1, 1000, perfdata.Misc(perfdata.ModeUser))
		if i == 0 {
			r.add(0, &perfdata.Mmap{Header: perfdata.Header{Misc: perfdata.Misc(perfdata.ModeUser)}, PID: 7, TID: 7, Addr: 0x10000, Len: 0x10000, Filename: []byte("//anon")})
		}
		if i%1024 == 0 {
			r.round()
		}
	}
	data := r.bytes()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // else it is read ahead
	for _, tt := range []struct {
		name    string
		stopped bool
	}{{"same", true}, {"alone", false}, {"none", false}} {
		src := &counted{Reader: bytes.NewReader(data)}
		found := map[uint64]bool{}
		in := samples.NewReader(src, "test.data", samples.Options{By: counts.Function, Symbols: profile.Config{Root: root}, Enough: func(f *profile.Function, _ *profile.Symbolizer) bool {
			if f.Name == tt.name {
				found[f.Addr] = true
			}
			return len(found) > 1
		}})
		ok := in.Next()
		if ok == tt.stopped || errors.Is(in.Err(), samples.ErrEnough) != tt.stopped {
			t.Errorf("%s: %t, %v", tt.name, ok, in.Err())
		}
		if tt.stopped && src.n > len(data)*3/4 || !tt.stopped && src.n < len(data) {
			t.Errorf("%s: %d of %d bytes were read", tt.name, src.n, len(data))
		}
		in.Close()
	}
}

// counted counts the bytes that are read.
type counted struct {
	*bytes.Reader
	n int
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += n
	return n, err
}

func (c *counted) ReadAt(p []byte, at int64) (int, error) {
	n, err := c.Reader.ReadAt(p, at)
	c.n += n
	return n, err
}

// TestPlaces compares tables by function and by instruction, from a reading by module, with
// those of readings of their own.
func TestPlaces(t *testing.T) {
	for _, file := range []string{"examples/annotate.data", "examples/functions.data", "examples/levels.data", "examples/stacks.data",
		"source/perfdata/testdata/plain.data", "source/perfdata/testdata/zstd.data", "source/perfdata/testdata/threads.data"} {
		rec := open(t, "../../../"+file)
		o := samples.Options{By: counts.Module, Again: true, Waits: true, Symbols: profile.Config{Root: "../../../examples/functions"}}
		in := rec.Samples(o).(*samples.Reader)
		tableOf(t, in)
		defer in.Close()
		for _, by := range []counts.Kind{counts.Function, counts.Instruction, counts.Line, counts.Module} {
			got, err := in.Places(samples.Options{By: by, NoInline: by == counts.Instruction})
			if err != nil || got == nil {
				t.Fatalf("%s, %v: %v: nothing was kept", file, by, err)
			}
			fresh := rec.Samples(samples.Options{By: by, NoInline: by == counts.Instruction, Symbols: o.Symbols})
			want := tableOf(t, fresh)
			if !reflect.DeepEqual(got.Scopes, want.Scopes) || !reflect.DeepEqual(got.Notes, want.Notes) || !reflect.DeepEqual(rows(got), rows(want)) {
				t.Errorf("%s, %v: %+v, want %+v", file, by, got, want)
			}
			fresh.Close()
		}
		if got, err := in.Places(samples.Options{By: counts.Function, Filter: samples.Filter{Modules: []string{"*"}}}); got != nil || err != nil {
			t.Errorf("%s: a filter of samples that were not kept apart: %v", file, err)
		}
	}
}

// TestOnce: a recording of a file is opened and read once, though its times and waits are
// asked for first.
func TestOnce(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // else it is read ahead
	data, err := os.ReadFile("../../../source/perfdata/testdata/plain.data")
	if err != nil {
		t.Fatal(err)
	}
	read := func(o samples.Options) int {
		src := &counted{Reader: bytes.NewReader(data)}
		in := samples.NewReader(src, "plain.data", o)
		defer in.Close()
		tableOf(t, in)
		return src.n
	}
	least := read(samples.Options{By: counts.Module})
	for name, o := range map[string]samples.Options{"waits": {By: counts.Module, Waits: true}, "intervals": {Within: counts.By(0).With(counts.Interval)},
		"both": {Within: counts.By(0).With(counts.Interval), Waits: true}} {
		if n := read(o); n > least {
			t.Errorf("%s: %d bytes were read, %d without", name, n, least)
		}
	}
}

// TestFold compares a table by instruction with one that has one row of each light function.
func TestFold(t *testing.T) {
	folded, stayed := 0, 0
	for _, file := range []string{"examples/functions.data", "examples/stacks.data", "source/perfdata/testdata/group.data", "source/perfdata/testdata/zstd.data"} {
		in := open(t, "../../../"+file).Samples(samples.Options{By: counts.Module, Again: true, Symbols: profile.Config{Root: "../../../examples/functions"}}).(*samples.Reader)
		tableOf(t, in)
		o := samples.Options{By: counts.Instruction, NoInline: true}
		all, err := in.Places(o)
		if err != nil || all == nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = all.Clone()
		o.Fold = 0.3
		got, err := in.Places(o)
		if err != nil || got == nil {
			t.Fatalf("%s: %v", file, err)
		}
		functions := func(t *counts.Table) map[counts.Code][]int64 {
			list := map[counts.Code][]int64{}
			for i := 1; i < len(t.Scopes); i++ {
				c := *t.Scopes[i].Code
				key := counts.Code{Module: c.Module, BuildID: c.BuildID, Function: c.Function}
				if list[key] == nil {
					list[key] = make([]int64, len(t.Columns)+1)
				}
				for col := range t.Columns {
					list[key][col] += t.Cell(i, col).Samples
				}
				list[key][len(t.Columns)]++
			}
			return list
		}
		want, have := functions(all), functions(got)
		if len(have) != len(want) || !reflect.DeepEqual(got.Row(0), all.Row(0)) {
			t.Errorf("%s: %d functions, want %d", file, len(have), len(want))
		}
		n := len(all.Columns)
		for f, sums := range want {
			hot := false
			for col := range n {
				hot = hot || sums[col] > 0 && float64(sums[col]) >= o.Fold*float64(all.Cell(0, col).Samples)
			}
			rows := sums[n]
			if hot = hot && (f.Function != "" || n > 1); !hot {
				rows = 1
			}
			if own := have[f]; own == nil || !reflect.DeepEqual(own[:n], sums[:n]) || own[n] != rows && (hot || own[n] != sums[n]) {
				t.Errorf("%s: %s: %v, want %v in %d rows", file, f.Function, own, sums, rows)
			}
			if hot {
				stayed++
			} else if sums[n] > 1 {
				folded++
			}
		}
	}
	if folded == 0 || stayed == 0 {
		t.Errorf("%d functions were folded, %d were not", folded, stayed)
	}
}
