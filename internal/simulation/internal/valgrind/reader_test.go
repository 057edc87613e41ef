package valgrind

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/fault"
)

// readFile reads a file of testdata.
func readFile(t *testing.T, name string, opts Options) *counts.Table {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return table(t, NewReader(f, name, opts))
}

func table(t *testing.T, r *Reader) *counts.Table {
	t.Helper()
	if !r.Next() {
		t.Fatal(r.Err())
	}
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	return r.Table()
}

// value is the count of an event in the scope of a label.
func value(t *testing.T, table *counts.Table, label, event string) float64 {
	t.Helper()
	col := slices.IndexFunc(table.Columns, func(c counts.Column) bool { return c.Event == event })
	row := slices.IndexFunc(table.Scopes, func(s counts.Scope) bool { return s.Label == label })
	if col < 0 || row < 0 {
		t.Fatalf("no %s of %q: there are %v, %v", event, label, labels(table), table.Columns)
	}
	if c := table.Cell(row, col); c.Ok() {
		return c.Value
	}
	return math.NaN()
}

func labels(table *counts.Table) []string {
	var list []string
	for _, s := range table.Scopes {
		list = append(list, s.Label)
	}
	return list
}

func TestReader(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		file   string
		by     counts.Kind
		label  string
		events map[string]float64
	}{
		{"calls.callgrind", counts.Run, "", map[string]float64{"Ir": 1151, "Dr": 310, "Dw": 20, "I1mr": 4, "D1mr": 100, "DLmr": 50, "Bcm": 10, "Bim": 0}},
		{"calls.callgrind", counts.Module, "app", map[string]float64{"Ir": 851, "Dr": 210, "D1mr": 100}},
		{"calls.callgrind", counts.Module, "libc.so.6", map[string]float64{"Ir": 300, "Dr": 100}},
		{"calls.callgrind", counts.Function, "", map[string]float64{"Ir": 1151}},
		{"calls.callgrind", counts.Function, "main  (app)", map[string]float64{"Ir": 151, "Dr": 10, "Dw": 20}},
		{"calls.callgrind", counts.Function, "work  (app)", map[string]float64{"Ir": 700, "Dr": 200, "I1mr": 4, "Bcm": 10}},
		{"calls.callgrind", counts.Function, "strlen  (libc.so.6)", map[string]float64{"Ir": 300, "Dr": 100}},
		{"calls.callgrind", counts.Line, "app.c:10  main  (app)", map[string]float64{"Ir": 100}},
		{"calls.callgrind", counts.Line, "app.c:12  main  (app)", map[string]float64{"Ir": 20, "Dr": 0}},
		{"calls.callgrind", counts.Line, "inline.h:5  main  (app)", map[string]float64{"Ir": 30, "Dw": 20}},
		{"calls.callgrind", counts.Line, "app.c:4  main  (app)", map[string]float64{"Ir": 1}},
		{"calls.callgrind", counts.Line, "app.c:40  work  (app)", map[string]float64{"Ir": 400}},
		{"calls.callgrind", counts.Line, "app.c:41  work  (app)", map[string]float64{"Ir": 100}},
		{"calls.callgrind", counts.Line, "app.c:42  work  (app)", map[string]float64{"Ir": 200, "I1mr": 4}},
		{"calls.callgrind", counts.Line, "strlen.c:20  strlen  (libc.so.6)", map[string]float64{"Ir": 300}},
		{"instructions.callgrind", counts.Instruction, "0x1149  main  app.c:10  (app)", map[string]float64{"Ir": 5}},
		{"instructions.callgrind", counts.Instruction, "0x114d  main  app.c:10  (app)", map[string]float64{"Ir": 10, "D1mr": 4}},
		{"instructions.callgrind", counts.Instruction, "0x115d  main  app.c:12  (app)", map[string]float64{"Ir": 20}},
		{"instructions.callgrind", counts.Instruction, "0x1159  main  app.c:11  (app)", map[string]float64{"Ir": 1}},
		{"instructions.callgrind", counts.Instruction, "0x2000  chase  app.c:3  (app)", map[string]float64{"Ir": 10, "DLmr": 8}},
		{"instructions.callgrind", counts.Function, "main  (app)", map[string]float64{"Ir": 36, "Bcm": 3}},
		{"instructions.callgrind", counts.Line, "app.c:3  chase  (app)", map[string]float64{"Ir": 10}},
		{"parts.callgrind", counts.Run, "", map[string]float64{"Ir": 19, "Dr": 5, "Dw": 3, "Sum": 29, "Twice": 58}},
		{"parts.callgrind", counts.Function, "main  ([unknown])", map[string]float64{"Ir": 12, "Dr": 5, "Dw": 0, "Sum": 22}},
		{"parts.callgrind", counts.Function, "worker  ([unknown])", map[string]float64{"Ir": 7, "Dw": 3}},
		{"cache.cachegrind", counts.Run, "", map[string]float64{"Ir": 130, "Dr": 10, "D1mr": 4, "Dw": 5, "Bcm": 1}},
		{"cache.cachegrind", counts.Function, "main  ([unknown])", map[string]float64{"Ir": 129}},
		{"cache.cachegrind", counts.Function, "(below main)  ([unknown])", map[string]float64{"Ir": 1}},
		{"cache.cachegrind", counts.Line, "inline.h:3  main  ([unknown])", map[string]float64{"Ir": 8}},
		{"old.cachegrind", counts.Run, "", map[string]float64{"Ir": 5, "D2mr": 1}},
		{"xdebug.callgrind", counts.Function, "{main}  ([unknown])", map[string]float64{"Time_(10ns)": 100}},
	} {
		got := readFile(t, tt.file, Options{By: tt.by})
		for event, want := range tt.events {
			if v := value(t, got, tt.label, event); v != want {
				t.Errorf("%s by %s: %s of %q is %v, want %v", tt.file, tt.by, event, tt.label, v, want)
			}
		}
	}
}

// TestSums checks that places sum to the run, for all kinds of places.
func TestSums(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*grind")
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		for _, by := range []counts.Kind{counts.Module, counts.Function, counts.Line} {
			got := readFile(t, filepath.Base(file), Options{By: by, Chained: func(string, uint64) bool { return true }})
			for c, col := range got.Columns {
				sum := 0.0
				for i := 1; i < len(got.Scopes); i++ {
					sum += got.Cell(i, c).Value
				}
				if want := got.Cell(0, c).Value; math.Abs(sum-want) > 1e-9*want {
					t.Errorf("%s by %s: %s sums to %v, the run has %v", file, by, col.Event, sum, want)
				}
			}
		}
	}
}

func TestHeader(t *testing.T) {
	t.Parallel()
	got := readFile(t, "calls.callgrind", Options{})
	if got.Label != "./app one two" || got.CPU != AnyCPU {
		t.Errorf("of %q, on %q", got.Label, got.CPU)
	}
	if want := []string{"simulated caches: I1 32 KiB 8-way, D1 32 KiB 8-way, LL 1 MiB 8-way"}; !slices.Equal(counts.Texts(got.Notes), want) {
		t.Errorf("notes %q, want %q", got.Notes, want)
	}
	for file, want := range map[string]string{"calls.callgrind": KindCallgrind, "cache.cachegrind": KindCachegrind, "xdebug.callgrind": KindCallgrind} {
		f, err := os.Open(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		r := NewReader(f, file, Options{})
		table(t, r)
		f.Close()
		if r.Kind() != want {
			t.Errorf("%s is of %s, want %s", file, r.Kind(), want)
		}
	}
}

// TestExposed checks the events that the reader adds: how many misses nothing hides.
func TestExposed(t *testing.T) {
	t.Parallel()
	// 12 misses and 3 mispredicted branches: a quarter of the misses outside chains. main
	// has 4 and chase has 8, and of these 2 and 8 go further.
	plain := readFile(t, "instructions.callgrind", Options{By: counts.Function})
	chase := func(object string, addr uint64) bool { return object == "/usr/bin/app" && addr == 0x2000 }
	chained := readFile(t, "instructions.callgrind", Options{By: counts.Function, Chained: chase, Beyond: 0.25})
	for _, tt := range []struct {
		table *counts.Table
		label string
		want  [4]float64 // D1mr.exposed, DLmr.exposed, DLm.memory, DLmr.memory.exposed
	}{
		{plain, "", [4]float64{3, 2.5, 10, 2.5}},
		{plain, "main  (app)", [4]float64{1, 0.5, 2, 0.5}},
		{plain, "chase  (app)", [4]float64{2, 2, 8, 2}},
		{chained, "", [4]float64{9, 8.5, 7.5, 6.375}},
		{chained, "main  (app)", [4]float64{1, 0.5, 1.5, 0.375}},
		{chained, "chase  (app)", [4]float64{8, 8, 6, 6}},
	} {
		for i, event := range []string{exposedFirst, exposedLast, memory, exposedMemory} {
			if got := value(t, tt.table, tt.label, event); got != tt.want[i] {
				t.Errorf("%s of %q is %v, want %v", event, tt.label, got, tt.want[i])
			}
		}
	}
	if c := readFile(t, "parts.callgrind", Options{}).Columns; slices.ContainsFunc(c, func(c counts.Column) bool { return c.Event == exposedFirst }) {
		t.Errorf("exposed misses are known where none were counted: %v", c)
	}
}

// TestTasks checks that processes and threads are kept, if asked for.
func TestTasks(t *testing.T) {
	t.Parallel()
	f, err := os.Open("testdata/parts.callgrind")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := NewReader(f, "parts", Options{})
	r.Keep(counts.By(0).With(counts.Thread))
	got := table(t, r)
	for label, want := range map[string]float64{"thread 1": 10, "thread 2": 9} {
		if v := value(t, got, label, "Ir"); v != want {
			t.Errorf("%s: %v, want %v", label, v, want)
		}
	}
}

// TestOpen checks that several files are summed, and that numbers of names hold for
// one file.
func TestOpen(t *testing.T) {
	t.Parallel()
	files := []string{"testdata/calls.callgrind", "testdata/instructions.callgrind"}
	got := table(t, Open(files, Options{By: counts.Function}))
	for label, want := range map[string]float64{"": 1197, "main  (app)": 187, "work  (app)": 700, "chase  (app)": 10} {
		if v := value(t, got, label, "Ir"); v != want {
			t.Errorf("Ir of %q: %v, want %v", label, v, want)
		}
	}
	r := Open([]string{"testdata/none"}, Options{})
	if r.Next() || !errors.Is(r.Err(), os.ErrNotExist) {
		t.Errorf("of a file that is not there: %v", r.Err())
	}
}

const start = "# callgrind format\nversion: 1\ncreator: callgrind-3.19.0\nevents: Ir Dr\n"

func TestErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, text, want string }{
		{"empty", "", "it ends before it names any events"},
		{"no costs", start, "it holds no costs"},
		{"no events", "fn=main\n1 2\n", "x:2: costs before a line that names the events"},
		{"events without names", "events:\n", "x:1: no events are named"},
		{"an event twice", "events: Ir Ir\n", `x:1: the event "Ir" is named twice`},
		{"too many counts", start + "fn=f\n1 2 3 4\n", "x:6: more counts than the 2 events"},
		{"not a count", start + "fn=f\n1 2 x\n", "x:6: not a count"},
		{"a number too large", start + "fn=f\n1 99999999999999999999\n", "x:6: not a count"},
		{"an address too large", "positions: instr\n" + start + "fn=f\n0x11111111111111111 1\n", "x:7: not a position"},
		{"a position without a number", start + "fn=f\n+ 5\n", "x:6: not a position"},
		{"a later version", "version: 2\nevents: Ir\n", "x:1: version 2 of the format is not known"},
		{"no positions", "positions: none\nevents: Ir\n", "x:1: costs without positions"},
		{"a bad pid", "pid: me\nevents: Ir\n", `x:1: not a number: "me"`},
		{"totals of other events", start + "fn=f\n1 2\ntotals: 1 2 3\n", "x:7: not totals of 2 events"},
		{"a bad sum", "event: A = B C\nevents: Ir\n", "x:1: not a sum of events"},
		{"a long line", start + "fn=" + strings.Repeat("x", maxLine), "x:5: a line of more than 1048576 bytes"},
	} {
		r := NewReader(strings.NewReader(tt.text), "x", Options{})
		if r.Next() || r.Err() == nil || !strings.Contains(r.Err().Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.name, r.Err(), tt.want)
		}
		var damage *fault.LineError
		if !errors.As(r.Err(), &damage) {
			t.Errorf("%s: %T", tt.name, r.Err())
		}
	}
	r := NewReader(strings.NewReader(start+"fn=f\n1 2\n"), "x", Options{By: counts.Instruction})
	if r.Next() || !strings.Contains(fmt.Sprint(r.Err()), "--dump-instr=yes") {
		t.Errorf("instructions of a file of lines: %v", r.Err())
	}
}

// TestNamesAreForPeople reads names that would change colours of a terminal.
func TestNamesAreForPeople(t *testing.T) {
	t.Parallel()
	got := table(t, NewReader(strings.NewReader("ob=/bin/a\x1bb\n"+start+"fl=c\x07.c\nfn=f\x1b[31m\n1 2\ntotals: 2\n"), "x", Options{By: counts.Line, Within: counts.By(0).With(counts.Function)}))
	for _, s := range got.Scopes {
		if c := s.Code; strings.ContainsAny(s.Label, "\x1b\x07") || c != nil && strings.ContainsAny(c.Module+c.File+c.Function, "\x1b\x07") {
			t.Errorf("%q: %+v", s.Label, c)
		}
	}
	if n := len(got.Scopes); n != 2 {
		t.Errorf("%d scopes, want 2", n)
	}
}

// TestCaches reads the descriptions of caches, and of those that were not simulated.
func TestCaches(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"desc: I1 cache: \n": false, "desc: I1 cache: 32768 B, 64 B, 8-way associative\n": true} {
		got := table(t, NewReader(strings.NewReader(text+start+"fn=f\n1 2\ntotals: 2\n"), "x", Options{}))
		if said := slices.ContainsFunc(got.Notes, func(n counts.Note) bool { return strings.HasPrefix(n.Text, "simulated caches: ") }); said != want {
			t.Errorf("%q: notes %q", text, got.Notes)
		}
	}
}

// TestNotes checks that what is odd about a file is said.
func TestNotes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, text, want string }{
		{"cut off", start + "fn=f\n1 2\n", "it ends before its totals"},
		{"other totals", start + "fn=f\n1 2\ntotals: 3\n", "its totals are not what its lines sum to: line 7 says that Ir is 3 in all, and its lines have 2"},
		{"unknown lines", start + "fn=f\nwhat is this\n1 2\ntotals: 2\n", `1 lines were not understood: the first is line 6, "what is this"`},
		{"unknown names", start + "fn=(7)\n1 2\ntotals: 2\n", "1 names are numbers that it does not explain"},
		{"instructions only", start + "fn=f\n1 2\ntotals: 2\n", "caches and branches were not both simulated"},
	} {
		got := table(t, NewReader(strings.NewReader(tt.text), "x", Options{}))
		if !slices.ContainsFunc(got.Notes, func(n counts.Note) bool { return strings.Contains(n.Text, tt.want) }) {
			t.Errorf("%s: notes %q, want %q", tt.name, got.Notes, tt.want)
		}
	}
}

// TestManyPlaces checks that what there is no room for is put together.
func TestManyPlaces(t *testing.T) {
	t.Parallel()
	events := make([]string, maxEvents)
	for i := range events {
		events[i] = fmt.Sprintf("e%d", i)
	}
	const places = maxCells/maxEvents + 100
	var b strings.Builder
	fmt.Fprintf(&b, "events: %s\n", strings.Join(events, " "))
	for i := range places {
		fmt.Fprintf(&b, "fn=f%d\n1 %d\n", i, 1+i)
	}
	got := table(t, NewReader(strings.NewReader(b.String()), "x", Options{By: counts.Function}))
	if n := len(got.Scopes) * len(got.Columns); n > maxCells {
		t.Errorf("%d cells", n)
	}
	kept, others := 0.0, value(t, got, "others", "e0")
	for i := 1; i < len(got.Scopes); i++ {
		kept += got.Cell(i, 0).Value
	}
	if want := value(t, got, "", "e0"); kept != want || others <= 0 {
		t.Errorf("places sum to %v of %v, the others are %v", kept, want, others)
	}
	if v := value(t, got, fmt.Sprintf("f%d  ([unknown])", places-1), "e0"); v != places {
		t.Errorf("the largest place has %v", v)
	}
}

func TestDetect(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*grind")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !Detect(text) || !Detect(text[:len(text)*3/4]) {
			t.Errorf("%s is not recognised", file)
		}
	}
	for _, text := range []string{"", "events", "events:\n# cpu: power7\n\n 1,234 cycles\n", "cmd: x\nhello: x\n", "desc: x\ncmd: y\n",
		"fl=x\nfn=y\n1 2\n", "PERFILE2", "cycles,1,2\n", "events: a b\nnothing of the kind\n"} {
		if Detect([]byte(text)) {
			t.Errorf("%q is recognised", text)
		}
	}
}

// called has callers of a line. The last three say nothing, and are comments.
const called = `# callgrind format
positions: instr line
events: Ir
ob=(1) a
fl=(1) /usr/include/c++/12/lib.h
fn=(1) sort
0x1 3 40
fn=(2) find
0x2 3 60
0x3 4 1
# called: sort	/usr/include/c++/12/lib.h	3	/home/me/a.cpp	7	750
# called: 	/usr/include/c++/12/lib.h	3	/home/me/a.cpp	9	500
# called: sort	/usr/include/c++/12/lib.h	4	/home/me/a.cpp	0	1000
# called: find	/usr/include/c++/12/lib.h	4	/home/me/a.cpp	3	1500
# called: find	/usr/include/c++/12/lib.h	4
`

// TestCalled reads callers: of a line in one function, and in all.
func TestCalled(t *testing.T) {
	for _, within := range []counts.By{0, counts.By(0).With(counts.Function)} {
		r := NewReader(strings.NewReader(called), "called", Options{By: counts.Line, Within: within})
		if !r.Next() {
			t.Fatal(r.Err())
		}
		var got []string
		for _, s := range r.Table().Scopes[1:] {
			if s.Caller != nil {
				got = append(got, fmt.Sprintf("%s %d: %s:%d %g", s.Code.Function, s.Code.Line, s.Caller.File, s.Caller.Line, s.CallerShare))
			}
		}
		want := []string{" 3: /home/me/a.cpp:9 0.5"}
		if within != 0 {
			want = []string{"sort 3: /home/me/a.cpp:7 0.75"}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func FuzzReader(f *testing.F) {
	files, err := filepath.Glob("testdata/*grind")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, uint8(len(text)))
	}
	f.Add([]byte(called), uint8(3))
	kinds := []counts.Kind{counts.Run, counts.Module, counts.Function, counts.Line, counts.Instruction}
	f.Fuzz(func(t *testing.T, text []byte, by uint8) {
		Detect(text)
		r := NewReader(strings.NewReader(string(text)), "fuzz", Options{By: kinds[int(by)%len(kinds)], Chained: func(_ string, addr uint64) bool { return addr%2 == 0 }})
		r.Keep(counts.By(0).With(counts.Thread))
		for r.Next() {
			got := r.Table()
			for i := range got.Scopes {
				for _, c := range got.Row(i) {
					if c.Ok() && (math.IsNaN(c.Value) || c.Value < 0) {
						t.Fatalf("%q counts %v", got.Scopes[i].Label, c.Value)
					}
				}
			}
		}
		if err := r.Err(); err != nil && strings.Contains(err.Error(), "\n") {
			t.Fatalf("an error of several lines: %q", err)
		}
	})
}

// TestRecursion checks that a function is one, however deep it calls itself: callgrind
// numbers the levels.
func TestRecursion(t *testing.T) {
	t.Parallel()
	const file = "events: Ir\nfl=(1) a.c\nfn=(1) sort\n3 5\nfn=(2) sort'2\n3 40\ncfn=(2)\ncalls=1 0\n4 99\nfn=(3) it's\n9 7\n"
	got := table(t, NewReader(strings.NewReader(file), "recursion", Options{By: counts.Function}))
	if len(got.Scopes) != 3 {
		t.Errorf("scopes %v, want the run, sort and it's", labels(got))
	}
	for i, s := range got.Scopes {
		want := map[string]float64{"": 52, "sort": 45, "it's": 7}
		name := ""
		if s.Code != nil {
			name = s.Code.Function
		}
		if v := got.Cell(i, 0).Value; v != want[name] {
			t.Errorf("%s: %v instructions, want %v", s.Label, v, want[name])
		}
	}
}

// A line inlined into several functions is one place without a function, or one of each if
// split by function.
func TestLinesOfSeveralFunctions(t *testing.T) {
	t.Parallel()
	const file = "events: Ir\nob=app\nfl=app.c\nfn=one\n4 10\n5 1\nfn=two\n4 200\n6 2\nfn=one\n4 1000\n"
	for _, tt := range []struct {
		within counts.By
		want   map[string]float64
	}{
		{0, map[string]float64{"app.c:4  (app)": 1210, "app.c:5  one  (app)": 1, "app.c:6  two  (app)": 2}},
		{counts.By(0).With(counts.Function), map[string]float64{
			"app.c:4  one  (app)": 1010, "app.c:4  two  (app)": 200, "app.c:5  one  (app)": 1, "app.c:6  two  (app)": 2}},
	} {
		got := table(t, NewReader(strings.NewReader(file), "x.callgrind", Options{By: counts.Line, Within: tt.within}))
		if len(got.Scopes) != 1+len(tt.want) {
			t.Errorf("within %v: %q, want %v", tt.within, labels(got), tt.want)
		}
		for label, want := range tt.want {
			if v := value(t, got, label, "Ir"); v != want {
				t.Errorf("within %v: %s is %v, want %v", tt.within, label, v, want)
			}
		}
	}
}

// TestOnly counts some places: the whole is their sum, and their misses overlap as those
// of all of the run do.
func TestOnly(t *testing.T) {
	t.Parallel()
	const file = "# callgrind format\npositions: line\nevents: Ir Dr D1mr DLmr Bc Bcm\nob=app\nfl=a.c\nfn=one\n1 100 40 20 10 10 5\nfn=two\n2 200 60 20 10 10 5\nfl=b.c\nfn=one\n1 7 0 0 0 0 0\n"
	for _, tt := range []struct {
		name string
		only func(*counts.Code) bool
		ir   float64
		rows int
	}{
		{"all", nil, 307, 3},
		{"a function", func(c *counts.Code) bool { return c.Function == "one" }, 107, 2},
		{"a line", func(c *counts.Code) bool { return c.Module == "app" && c.File == "a.c" && c.Line == 2 }, 200, 1},
		{"nothing", func(*counts.Code) bool { return false }, 0, 0},
	} {
		r := NewReader(strings.NewReader(file), "f", Options{By: counts.Line, Only: tt.only})
		if !r.Next() {
			t.Fatalf("%s: %v", tt.name, r.Err())
		}
		got := r.Table()
		value := func(row int, event string) float64 {
			return got.Cell(row, slices.IndexFunc(got.Columns, func(c counts.Column) bool { return c.Event == event })).Value
		}
		if value(0, "Ir") != tt.ir || len(got.Scopes)-1 != tt.rows {
			t.Errorf("%s: %v instructions in %d places, want %v in %d", tt.name, value(0, "Ir"), len(got.Scopes)-1, tt.ir, tt.rows)
		}
		if want := 0.25 * value(0, "D1mr"); value(0, exposedFirst) != want {
			t.Errorf("%s: %v misses that nothing hides, want %v", tt.name, value(0, exposedFirst), want)
		}
	}
}
