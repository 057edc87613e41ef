package valgrind

import (
	"bytes"
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/counts"
)

// A buffer is a file in memory.
type buffer struct{ bytes.Buffer }

func (b *buffer) WriteAt(p []byte, at int64) (int, error) { return copy(b.Bytes()[at:], p), nil }

// made are rates that are made up: of instructions by address, of lines by number.
type made func(place uint64) (Rate, bool)

func (m made) At(_ string, addr uint64) (Rate, bool) { return m(addr) }
func (m made) Line(_ string, line int) (Rate, bool)  { return m(uint64(line)) }

// odd knows the rates of odd places.
func odd(place uint64) (Rate, bool) {
	return Rate{Cycles: 0.3, Lost: 0.25, Second: 0.5, Third: 1, Memory: 2, Conditional: 0.01, Indirect: 0.001}, place%2 == 1
}

// timed returns a file with the events of rates.
func timed(text string, rates made) (string, error) {
	var out buffer
	err := newTimer(strings.NewReader(text), "x", &out, rates, "on a core").run()
	return out.String(), err
}

// TestTiming writes files of both simulators, with several parts and all that lines of
// costs can be.
func TestTiming(t *testing.T) {
	t.Parallel()
	about, events := func(key string) (lines string) {
		for i := range addedEvents {
			name, about := addedEvent(i)
			lines += key + name + ": " + about + "\n"
		}
		return lines
	}, " Ct Cbt C2t C3t Cmt Bct Bit Iru Bcmu Bimu D1mru D1mwu DLmru DLmwu\n"
	for _, tt := range []struct{ name, text, want string }{
		{"callgrind", `# callgrind format
version: 1
creator: callgrind-3.19.0
cmd: ./app
part: 1
positions: instr line
events: Ir Bc Bcm Bi Bim
summary: 111 20 10 4

ob=(1) /bin/app
fl=(1) a.c
fn=(1) main
0x11 7 110 10 6 5
+1 * 1
jcnd=1/2 +1 +1
* *
calls=1 0x20 3
* * 1000 1000
* +1 100 10 5 4 3
-1 -1
+2 * 3 .

totals: 214 20 11 9 3
part: 2
positions: instr line
events: Ir Bcm Bim
fn=(1)
0x13 2 1
+1 * 1
totals: 2
`, `# callgrind format
version: 1
creator: callgrind-3.19.0
desc: Timed: on a core
cmd: ./app
part: 1
positions: instr line
` + about("event: ") + `events: Ir Bc Bcm Bi Bim` + events + `summary: 111 20 10 4 0 34 28 57 113 226 1 0 101 5 3 0 0 0 0

ob=(1) /bin/app
fl=(1) a.c
fn=(1) main
0x11 7 110 10 6 5 0 33 28 55 110 220 1
+1 * 1 0 0 0 0 0 0 0 0 0 0 0 1
jcnd=1/2 +1 +1
* *
calls=1 0x20 3
* * 1000 1000
* +1 100 10 5 4 3 0 0 0 0 0 0 0 100 5 3
-1 -1
+2 * 3 . 0 0 0 1 0 2 3 6

totals: 214 20 11 9 3 34 28 57 113 226 1 0 101 5 3 0 0 0 0
part: 2
positions: instr line
` + about("event: ") + `events: Ir Bcm Bim` + events + `fn=(1)
0x13 2 1 0 0 0 1 0 1 2
+1 * 1 0 0 0 0 0 0 0 0 0 1
totals: 2 0 0 0 1 0 1 2 0 0 1 0 0 0 0 0 0
`},
		{"cachegrind", `desc: I1 cache: 32768 B, 64 B, 8-way associative
cmd: ./app
events: Ir Bc Bcm Bi Bim
fl=/src/a.c
fn=main
10 20 3 2 . .
11 100 1 0 1 0
fn=(below main)
0 1 0 0 0 0
summary: 121 4 2 1 0
`, `desc: I1 cache: 32768 B, 64 B, 8-way associative
desc: Timed: on a core
` + about("desc: ") + `cmd: ./app
events: Ir Bc Bcm Bi Bim` + events + `fl=/src/a.c
fn=main
10 20 3 2 . . 0 0 0 0 0 0 0 20 2 0 0 0 0 0
11 100 1 0 1 0 30 25 50 100 200 1 0 0 0 0 0 0 0 0
fn=(below main)
0 1 0 0 0 0 0 0 0 0 0 0 0 1 0 0 0 0 0 0
summary: 121 4 2 1 0 30 25 50 100 200 1 0 21 2 0 0 0 0 0
`},
		{"no newline at the end", "events: Ir Bcm Bim\nfn=f\n1 10", "events: Ir Bcm Bim" + events + "fn=f\n1 10 0 0 3 3 5 10 20 0 0 0 0 0 0 0 0 0\n"},
	} {
		got, err := timed(tt.text, odd)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		// Sums are written over blanks.
		if got = regexp.MustCompile(` +`).ReplaceAllString(got, " "); got != tt.want {
			t.Errorf("%s:\n%s\nwant\n%s", tt.name, got, tt.want)
		}
	}
}

// TestTimingErrors damages what is written anew.
func TestTimingErrors(t *testing.T) {
	t.Parallel()
	const start = "version: 1\nevents: Ir Bcm Bim\nfn=f\n"
	slow := func(uint64) (Rate, bool) { return Rate{Cycles: 0.3}, true }
	for _, tt := range []struct {
		name, text string
		rates      made
		want       string
	}{
		{"damage", start + "1 2 x\n", odd, "x:4: not a count"},
		{"no instructions", "events: Bcm Bim\nfn=f\n1 2\n", odd, "x:1: it does not count Ir"},
		{"no branches", "events: Ir Bim\nfn=f\n1 2\n", odd, "x:1: it does not count Bcm"},
		{"timed already", "events: Ir Bcm Bim Ct\nfn=f\n1 2\n", odd, "x:1: it has Ct already"},
		{"a rate that is none", start + "1 2\n", func(uint64) (Rate, bool) { return Rate{Cycles: math.NaN()}, true }, "x:4: NaN of Ct, which cannot be"},
		{"a negative rate", start + "1 2\n", func(uint64) (Rate, bool) { return Rate{Lost: -1}, true }, "x:4: -2 of Cbt, which cannot be"},
		{"too many cycles", start + "1 2\n1 9000000000000000000\n", slow, "x:5: 2.7e+18 of Ct, which cannot be"},
		{"too many in all", start + strings.Repeat("1 3000000000000000000\n", 2), slow, "x:5: 9e+17 of Ct, which cannot be"},
	} {
		if _, err := timed(tt.text, tt.rates); err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
	}
}

// timings are files that can be timed.
func timings(t testing.TB) map[string][]byte {
	t.Helper()
	files := map[string][]byte{"large": large(1 << 20)}
	for _, name := range []string{"calls.callgrind", "cache.cachegrind"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = text
	}
	return files
}

// TestTimingSums checks that the old events stay the same at each place, and new ones lose
// nothing by rounding.
func TestTimingSums(t *testing.T) {
	t.Parallel()
	for name, text := range timings(t) {
		written, err := timed(string(text), odd)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		by, place := counts.Line, func(c *counts.Code) uint64 { return uint64(c.Line) }
		if name == "large" {
			by, place = counts.Instruction, func(c *counts.Code) uint64 { return c.Addr }
		}
		got := table(t, NewReader(strings.NewReader(written), name, Options{By: by}))
		sameEvents(t, name, table(t, NewReader(bytes.NewReader(text), name, Options{By: by})), got)
		if slices.ContainsFunc(got.Notes, func(n counts.Note) bool { return strings.Contains(n.Text, "totals are not") }) {
			t.Errorf("%s: notes %q", name, got.Notes)
		}
		of := func(row int, event string) float64 {
			return got.Cell(row, slices.IndexFunc(got.Columns, func(c counts.Column) bool { return c.Event == event })).Value
		}
		sums := map[string]float64{}
		for i := 1; i < len(got.Scopes); i++ {
			ir := of(i, "Ir")
			want := map[string]float64{}
			if rate, ok := odd(place(got.Scopes[i].Code)); ok {
				want = map[string]float64{"Ct": ir * rate.Cycles, "Cbt": ir * rate.Lost, "C2t": ir * rate.Second, "C3t": ir * rate.Third, "Cmt": ir * rate.Memory,
					"Bct": ir * rate.Conditional, "Bit": ir * rate.Indirect}
			} else {
				for _, event := range []string{"Ir", "Bcm", "Bim", "D1mr", "D1mw", "DLmr", "DLmw"} {
					want[event+"u"] = of(i, event)
				}
			}
			for e := range addedEvents {
				event, _ := addedEvent(e)
				sums[event] += want[event]
				if math.Abs(of(i, event)-want[event]) > 4 { // 1 of each line that a place has
					t.Fatalf("%s: %s of %q is %v, want %v", name, event, got.Scopes[i].Label, of(i, event), want[event])
				}
			}
		}
		for event, want := range sums {
			if math.Abs(of(0, event)-want) > 0.51 {
				t.Errorf("%s: %s is %v, want %v", name, event, of(0, event), want)
			}
		}
	}
}

// sameEvents checks that a table has the columns of another, with the same counts at the
// same places.
func sameEvents(t testing.TB, name string, want, got *counts.Table) {
	t.Helper()
	if w, g := labels(want), labels(got); !slices.Equal(g, w) {
		t.Fatalf("%s: places %q, want %q", name, g, w)
	}
	for c, col := range want.Columns {
		if strings.Contains(col.Event, ".") { // which branches make
			continue
		}
		at := slices.IndexFunc(got.Columns, func(g counts.Column) bool { return g.Event == col.Event })
		for i := range want.Scopes {
			if at < 0 || *got.Cell(i, at) != *want.Cell(i, c) {
				t.Fatalf("%s: %s of %q: column %d of %v, want %v", name, col.Event, want.Scopes[i].Label, at, got.Row(i), want.Cell(i, c))
			}
		}
	}
}

// TestTime checks that all files of a simulation are written anew, or none.
func TestTime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := &Simulation{dir: dir}
	var old []string
	for _, name := range []string{"calls.callgrind", "cache.cachegrind"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		s.Files, old = append(s.Files, filepath.Join(dir, name)), append(old, string(text))
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := func() (list []string) {
		for _, name := range s.Files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, string(text))
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != len(s.Files) {
			t.Errorf("files %q", left)
		}
		return list
	}
	bad := func(line uint64) (Rate, bool) { return Rate{Cycles: math.Inf(1)}, line == 13 } // of the second
	if err := s.Time(made(bad), ""); err == nil || !slices.Equal(read(), old) {
		t.Errorf("%v, and the files are %q", err, read())
	}
	if err := s.Time(made(odd), "on a core, by 5 blocks"); err != nil {
		t.Fatal(err)
	}
	for i, text := range read() {
		if want, err := timed(old[i], odd); err != nil || text != strings.Replace(want, "on a core", "on a core, by 5 blocks", 1) {
			t.Errorf("%v: %s, want %s", err, text, want)
		}
	}
	got := table(t, Open(s.Files, Options{}))
	for _, want := range []string{"instructions and branches: on a core, by 5 blocks", "89 % of the instructions were not timed by the model of the core: they are estimated from their number, misses and mispredictions"} {
		if !slices.Contains(counts.Texts(got.Notes), want) {
			t.Errorf("notes %q, want %q", got.Notes, want)
		}
	}
}

// TestExposedUntimed checks that where there are rates the reader says how misses overlap
// of the instructions that have none.
func TestExposedUntimed(t *testing.T) {
	t.Parallel()
	const file = "positions: instr\nevents: Ir D1mr DLmr Bcm Bim Ct Iru Bcmu Bimu D1mru DLmru\nfn=f\n" +
		"1 900 50 25 80 20 300\n2 100 50 20 10 70 0 100 5 100 50 20\n"
	got := table(t, NewReader(strings.NewReader(file), "x", Options{Chained: func(_ string, addr uint64) bool { return addr == 1 }}))
	for event, want := range map[string]float64{exposedFirst: 10, exposedLast: 4, memory: 20} { // 5 + 0.05 × 100 of 50
		if v := value(t, got, "", event); v != want {
			t.Errorf("%s: %v, want %v", event, v, want)
		}
	}
}

// TestDataMisses checks where loads and stores miss, by instruction or by line, in all files.
func TestDataMisses(t *testing.T) {
	t.Parallel()
	const instructions = "positions: instr line\nevents: Ir Dr D1mr DLmr\nob=/bin/app\nfl=a.c\nfn=f\n0x10 1 9 5 3 2\n+4 * 9\n+4 * 9 1\ncalls=1 0x20\n* * 7 7 7 7\n"
	const lines = "cmd: x\nevents: Ir Dr Dw D1mr D1mw DLmr DLmw\nfl=b.c\nfn=f\n3 9 4 . . . . .\n4 9 0 0 0 0 0 0\n3 9 4 7 2 6 0 5\n"
	dir := t.TempDir()
	s := &Simulation{}
	for name, text := range map[string]string{"a": instructions, "b": lines, "c": instructions} {
		s.Files = append(s.Files, filepath.Join(dir, name))
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.DataMisses()
	want := map[DataPlace]DataMisses{
		{Object: "/bin/app", Addr: 0x10}: {Loads: Accesses{10, 6, 4}},
		{Object: "/bin/app", Addr: 0x18}: {Loads: Accesses{2, 0, 0}},
		{File: "b.c", Line: 3}:           {Loads: Accesses{8, 2, 0}, Stores: Accesses{7, 6, 5}},
	}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	s.Files = []string{filepath.Join(dir, "none")}
	if _, err := s.DataMisses(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

func FuzzTiming(f *testing.F) {
	files, err := filepath.Glob("testdata/*grind")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
		f.Add(strings.ReplaceAll(string(text), "events: Ir", "events: Ir Bcm Bim"))
	}
	f.Fuzz(func(t *testing.T, text string) {
		written, err := timed(text, odd)
		if err != nil {
			return
		}
		for _, by := range []counts.Kind{counts.Run, counts.Line, counts.Instruction} {
			before, after := NewReader(strings.NewReader(text), "x", Options{By: by}), NewReader(strings.NewReader(written), "x", Options{By: by})
			if before.Next() != after.Next() {
				t.Fatalf("by %s: %v, and timed %v", by, before.Err(), after.Err())
			}
			if before.Err() == nil {
				sameEvents(t, "x", before.Table(), after.Table())
			}
		}
	})
}
