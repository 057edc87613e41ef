package code_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/disasm"
	"github.com/cyclestack/cyclestack/internal/flow"
	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/perfwrite"
	"github.com/cyclestack/cyclestack/internal/source/code"
	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/source"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

const (
	recording = "../../../examples/annotate.data"
	root      = "../../../examples/annotate"
)

// solve is a place in the function of the example.
var solve = &counts.Code{Module: "solve", Function: "solve", Addr: 0x4000fa}

func open(t testing.TB, file string) *code.Reader {
	t.Helper()
	return openWith(t, file, profile.Config{Root: root})
}

// openWith opens a recording with a place for its symbols.
func openWith(t testing.TB, file string, symbols profile.Config) *code.Reader {
	t.Helper()
	rec, err := source.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rec.Close() })
	r, err := rec.Code(symbols)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func TestFunction(t *testing.T) {
	r := open(t, recording)
	f, err := r.Function(solve)
	if err != nil {
		t.Fatal(err)
	}
	l, err := r.List(f, disasm.ATT)
	if err != nil {
		t.Fatal(err)
	}
	if f.Addr != 0x4000e8 || len(l.Insts) == 0 || l.Insts[0].Line != 9 || l.Insts[0].File != "/src/solve.c" {
		t.Errorf("got %+v, %+v", f, l.Insts)
	}
	if s := r.Status(f.File); !strings.HasSuffix(s.Path, "bin/solve") || s.Verified {
		t.Errorf("got %+v", s)
	}
	if n := len(r.Events()); n != 7 {
		t.Errorf("%d events", n)
	}
	for _, c := range []counts.Code{
		{Module: "solve", Function: "nosuch"}, {Module: "other", Function: "solve", Addr: 0x4000fa},
		{Module: "solve", Function: "solve", Addr: 1}, {Module: "solve", Function: "solve", Addr: 0x4000fa, BuildID: "00"},
	} {
		if _, err := r.Function(&c); err == nil {
			t.Errorf("%+v was found", c)
		}
	}
}

func TestNewErrors(t *testing.T) {
	if _, err := code.New(strings.NewReader("no recording"), nil, "x.data", profile.Config{}); err == nil || !strings.Contains(err.Error(), "x.data") {
		t.Errorf("got %v", err)
	}
}

// record writes a recording of solve with the samples of events in alternation, and
// stacks of some branches: along the list and into it again.
func record(t testing.TB, samples, branches int, events ...*perfdata.Event) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "perf.data")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := perfwrite.NewWriter(f, perfwrite.WriterOptions{Events: events})
	if err != nil {
		t.Fatal(err)
	}
	m := &perfdata.Mmap{Header: perfdata.Header{Misc: perfdata.Misc(perfdata.ModeUser)}, PID: 7, TID: 7, Addr: 0x7f0000400000, Len: 0x1000, Filename: []byte("/bin/solve")}
	if err := w.WriteRecord(m, perfdata.Trailer{ID: 1}); err != nil {
		t.Fatal(err)
	}
	le := binary.LittleEndian
	for i := range samples {
		b := le.AppendUint16(le.AppendUint16(le.AppendUint32(nil, uint32(perffile.RecordSample)), uint16(perfdata.ModeUser)), uint16(8+4*8+8+24*branches))
		b = le.AppendUint64(le.AppendUint64(b, uint64(1+i%len(events))), 0x7f00004000f6)
		b = le.AppendUint64(le.AppendUint32(le.AppendUint32(b, 7), 7), uint64(i))
		b = le.AppendUint64(b, uint64(branches))
		for range branches { // the program is mapped elsewhere than it was linked
			b = le.AppendUint64(le.AppendUint64(le.AppendUint64(b, 0x7f0000400100), 0x7f00004000f6), 0)
		}
		if _, err := w.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(nil); err != nil {
		t.Fatal(err)
	}
	return file
}

func event(id uint64, name string, branches uint64) *perfdata.Event {
	return &perfdata.Event{Name: name, IDs: []uint64{id}, Attr: perfdata.Attr{
		Type: perffile.TypeRaw, SamplePeriod: 100, Flags: perffile.FlagSampleIDAll, BranchType: branches,
		SampleType: perffile.SampleIdentifier | perffile.SampleIP | perffile.SampleTID | perffile.SampleTime | perffile.SampleBranchStack}}
}

func TestBranches(t *testing.T) {
	const anyBranch, callStack = 1 << 3, 1 << 11
	taken := func(event string) bool { return event == "taken" }
	tests := []struct {
		name     string
		branches int
		events   []*perfdata.Event
		want     code.Stacks
		chase    float64 // executions of the loop's block
	}{
		{"taken branches", 3, []*perfdata.Event{event(1, "taken", anyBranch)}, code.Stacks{Samples: 10, Taken: true}, 10 * 100},
		{"cycles", 3, []*perfdata.Event{event(1, "cycles", anyBranch)}, code.Stacks{Samples: 10}, 10 * 2},
		{"several events", 3, []*perfdata.Event{event(1, "taken", anyBranch), event(2, "cycles", anyBranch)}, code.Stacks{Samples: 10}, 10 * 2},
		{"open calls", 3, []*perfdata.Event{event(1, "taken", anyBranch|callStack)}, code.Stacks{}, 0},
		{"open calls of another event", 3, []*perfdata.Event{event(1, "taken", anyBranch), event(2, "cycles", anyBranch|callStack)}, code.Stacks{Samples: 5, Taken: true}, 5 * 100},
		{"a single branch says nothing", 1, []*perfdata.Event{event(1, "taken", anyBranch)}, code.Stacks{Taken: true}, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := open(t, record(t, 10, test.branches, test.events...))
			f, err := r.Function(solve)
			if err != nil {
				t.Fatal(err)
			}
			l, err := r.List(f, disasm.ATT)
			if err != nil {
				t.Fatal(err)
			}
			b := flow.NewBranches(l.Graph)
			got, err := r.Branches([]code.FunctionBranches{{Function: f, Branches: b}}, taken)
			if err != nil || got != test.want {
				t.Errorf("got %+v, %v, want %+v", got, err, test.want)
			}
			if c := b.Blocks()[l.Graph.BlockAt(0x4000f6)]; c.Value != test.chase {
				t.Errorf("%v executions, want %v", c.Value, test.chase)
			}
		})
	}
}

func ExampleReader_List() {
	rec, err := source.Open(recording)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer rec.Close()
	r, err := rec.Code(profile.Config{Root: root})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer r.Close()
	f, err := r.Function(solve)
	if err != nil {
		fmt.Println(err)
		return
	}
	l, err := r.List(f, disasm.Intel)
	if err != nil {
		fmt.Println(err)
		return
	}
	i := l.Insts[l.Graph.BlockAt(0x4000f6)+1]
	fmt.Printf("%s:%d %#x %s\n", i.File, i.Line, i.Addr, i.Text)
	// Output: /src/solve.c:10 0x4000f0 mov r8d, 0x0
}

// TestJitdump lists a function that a just-in-time compiler made.
func TestJitdump(t *testing.T) {
	dir := t.TempDir()
	le := binary.LittleEndian
	var b []byte
	for _, v := range []uint32{0x4a695444, 1, 40, 62, 0, 7} { // magic, version, size, EM_X86_64, pad, pid
		b = le.AppendUint32(b, v)
	}
	b = le.AppendUint64(le.AppendUint64(b, 1), 0)
	const name, text = "jitted\x00", "\x48\xff\xc8\x75\xfb\xc3" // dec %rax; jne to it; ret
	b = le.AppendUint32(le.AppendUint32(b, 0), uint32(16+40+len(name)+len(text)))
	b = le.AppendUint64(b, 1)
	b = le.AppendUint32(le.AppendUint32(b, 7), 7)
	for _, v := range []uint64{0x5000, 0x5000, uint64(len(text)), 1} {
		b = le.AppendUint64(b, v)
	}
	b = append(b, name+text...)
	if err := os.WriteFile(filepath.Join(dir, "jit-7.dump"), b, 0o666); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "perf.data")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := perfwrite.NewWriter(f, perfwrite.WriterOptions{Events: []*perfdata.Event{event(1, "cycles", 0)}})
	if err != nil {
		t.Fatal(err)
	}
	m := &perfdata.Mmap{Header: perfdata.Header{Misc: perfdata.Misc(perfdata.ModeUser)}, PID: 7, TID: 7, Addr: 0x9000, Len: 0x1000, Filename: []byte("/jit-7.dump")}
	if err := errors.Join(w.WriteRecord(m, perfdata.Trailer{ID: 1}), w.Close(nil)); err != nil {
		t.Fatal(err)
	}
	r := openWith(t, file, profile.Config{Root: dir})
	fn, err := r.Function(&counts.Code{Module: "jit-7.dump", Function: "jitted", Addr: 0x5003})
	if err != nil {
		t.Fatal(err)
	}
	l, err := r.List(fn, disasm.ATT)
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Insts) != 3 || len(l.Graph.Loops) != 1 || l.Insts[0].Addr != 0x5000 {
		t.Errorf("got %+v", l.Insts)
	}
}
