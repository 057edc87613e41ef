package profile

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/cyclestack/cyclestack/internal/disasm"
	"github.com/cyclestack/cyclestack/internal/object"
	"github.com/cyclestack/cyclestack/internal/testjitdump"
)

// TestJitdump finds code made at run time by time, with its lines and its
// instructions.
func TestJitdump(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jit-7.dump")
	if err := os.WriteFile(path, testjitdump.Sample(binary.LittleEndian).Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	s := NewSpaces()
	s.Map(1, Mapping{PID: 7, Start: 0x5000, Len: 0x2000, File: "//anon"})
	s.Map(2, Mapping{PID: 7, Start: 0x9000, Len: 0x1000, File: path})
	dump, err := object.OpenJitdump(path)
	if err != nil {
		t.Fatal(err)
	}
	s.addJitdump(s.Files()[1], dump)
	s.Settle()
	y := NewSymbolizer(Config{BuildIDCache: t.TempDir()})
	defer y.Close()
	for _, test := range []struct {
		time, addr uint64
		want       string
		line       int
	}{
		{9, 0x5001, "", 0},
		{10, 0x5000, "first", 3},
		{15, 0x5002, "first", 4},
		{15, 0x6000, "", 0},
		{20, 0x6001, "first", 4},
		{30, 0x5001, "second", 0},
		{30, 0x5002, "first", 4}, // what was not overwritten is still there
	} {
		p := s.Find(test.time, 7, test.addr, User)
		file, line := y.Line(p)
		if got := y.Function(p).Name; got != test.want || line != test.line || line > 0 && file != "/src/a.js" {
			t.Errorf("time %d, %#x: got %q, %s:%d, want %q, line %d", test.time, test.addr, got, file, line, test.want, test.line)
		}
	}
	second := y.Function(s.Find(30, 7, 0x5000, User))
	list := instructions(t, y, second)
	if len(list) != 2 || list[1].Flow != disasm.Return || list[1].Addr-second.Addr+second.Offset != s.Find(30, 7, 0x5001, User).Offset {
		t.Errorf("the instructions of %s are %+v", second.Name, list)
	}
	if found, err := y.Lookup(s.Files()[1], object.Named("second")); err != nil || len(found) != 1 || found[0] != second {
		t.Errorf("looked up %v, %v", found, err)
	}
}

func TestJitdumpOfAnotherClock(t *testing.T) {
	dump, err := object.ReadJitdump(&testjitdump.New(binary.LittleEndian, 1).Buffer)
	if err != nil || !dump.ArchTime {
		t.Fatalf("got %+v, %v", dump, err)
	}
	s := NewSpaces()
	s.addJitdump(&File{}, &object.Jitdump{ArchTime: true, Codes: []object.JitCode{{Addr: 1, Size: 1}}})
	s.Settle()
	if len(s.processes) != 0 {
		t.Error("code was mapped at times of another clock")
	}
}
