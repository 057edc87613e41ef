package profile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cyclestack/cyclestack/internal/disasm"
)

// A jitFile is a jitdump in the making.
type jitFile struct {
	bytes.Buffer
	order binary.AppendByteOrder
}

func newJitFile(order binary.AppendByteOrder, flags uint64) *jitFile {
	f := &jitFile{order: order}
	for _, v := range []uint32{jitMagic, 1, jitHeaderSize, 62, 0, 7} {
		f.u32(v)
	}
	f.u64(12345)
	f.u64(flags)
	return f
}

func (f *jitFile) u32(v uint32) { f.Write(f.order.AppendUint32(nil, v)) }
func (f *jitFile) u64(v uint64) { f.Write(f.order.AppendUint64(nil, v)) }

func (f *jitFile) record(kind uint32, time uint64, size int) {
	f.u32(kind)
	f.u32(uint32(size + jitRecordHeader))
	f.u64(time)
}

func (f *jitFile) load(time, addr uint64, name, code string) {
	f.record(jitCodeLoad, time, 40+len(name)+1+len(code))
	f.u32(7)
	f.u32(7)
	for _, v := range []uint64{addr, addr, uint64(len(code)), 1} {
		f.u64(v)
	}
	f.WriteString(name + "\x00" + code)
}

func (f *jitFile) move(time, from, to uint64, size int) {
	f.record(jitCodeMove, time, 48)
	f.u32(7)
	f.u32(7)
	for _, v := range []uint64{to, from, to, uint64(size), 1} {
		f.u64(v)
	}
}

func (f *jitFile) debug(addr uint64, lines ...jitLine) {
	size := 16
	for _, l := range lines {
		size += 16 + len(l.File) + 1
	}
	f.record(jitDebugInfo, 0, size)
	f.u64(addr)
	f.u64(uint64(len(lines)))
	for _, l := range lines {
		f.u64(l.Addr)
		f.u32(uint32(l.Line))
		f.u32(0)
		f.WriteString(l.File + "\x00")
	}
}

// sampleJitdump has a function with lines that is moved, and another one at its
// old address.
func sampleJitdump(order binary.AppendByteOrder) *jitFile {
	f := newJitFile(order, 0)
	f.debug(0x5000, jitLine{0x5000, "/src/a.js", 3}, jitLine{0x5001, sameFile, 4})
	f.load(10, 0x5000, "first", "\x90\x90\xc3")
	f.record(99, 0, 4)
	f.u32(0)
	f.move(20, 0x5000, 0x6000, 3)
	f.load(30, 0x5000, "second", "\x55\xc3")
	f.record(jitClose, 40, 0)
	return f
}

func TestReadJitdump(t *testing.T) {
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		got, err := readJitdump(&sampleJitdump(order).Buffer)
		if err != nil {
			t.Fatal(err)
		}
		want := &jitdump{
			PID: 7, Arch: "amd64", Unknown: 1,
			Codes: []jitCode{
				{Time: 10, Addr: 0x5000, Size: 3, Offset: 178, Name: "first", Lines: []jitLine{{0x5000, "/src/a.js", 3}, {0x5001, "/src/a.js", 4}}},
				{Time: 30, Addr: 0x5000, Size: 2, Offset: 328, Name: "second"},
			},
			Moves: []jitMove{{20, 0x5000, 0x6000, 3}},
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%v (-want +got):\n%s", order, d)
		}
	}
}

func TestReadJitdumpErrors(t *testing.T) {
	whole := sampleJitdump(binary.LittleEndian).Bytes()
	for n := jitHeaderSize; n < len(whole); n++ {
		d, err := readJitdump(bytes.NewReader(whole[:n]))
		if err != nil {
			t.Errorf("cut after %d bytes: %v", n, err)
		} else if !d.Truncated && n != jitHeaderSize && !cutAtRecord(whole, n) {
			t.Errorf("cut after %d bytes: not noticed", n)
		}
	}
	huge := newJitFile(binary.LittleEndian, 0)
	huge.record(jitCodeLoad, 0, 1<<30)
	large := newJitFile(binary.LittleEndian, 0)
	large.record(jitCodeLoad, 0, 41)
	for _, v := range []uint64{0, 0, 0, 1 << 40, 0} {
		large.u64(v)
	}
	lines := newJitFile(binary.LittleEndian, 0)
	lines.record(jitDebugInfo, 0, 16)
	lines.u64(0)
	lines.u64(1 << 60)
	for want, data := range map[string][]byte{
		"is not a jitdump":                     []byte("\x7fELF"),
		"starts with 7f 45 4c 46":              append([]byte("\x7fELF"), make([]byte, 100)...),
		"a size of 1073741840 bytes":           huge.Bytes(),
		"1099511627776 bytes of code":          large.Bytes(),
		"1152921504606846976 lines do not fit": lines.Bytes(),
	} {
		if _, err := readJitdump(bytes.NewReader(data)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want one with %q", err, want)
		}
	}
	if _, err := readJitdump(strings.NewReader("")); !errors.Is(err, errJitdump) {
		t.Errorf("an empty file: %v", err)
	}
}

// cutAtRecord says whether n bytes are whole records.
func cutAtRecord(whole []byte, n int) bool {
	at := jitHeaderSize
	for at < n {
		at += int(binary.LittleEndian.Uint32(whole[at+4:]))
	}
	return at == n
}

// TestJitdump finds code made at run time by time, with its lines and its
// instructions.
func TestJitdump(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jit-7.dump")
	if err := os.WriteFile(path, sampleJitdump(binary.LittleEndian).Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	s := NewSpaces()
	s.Map(1, Mapping{PID: 7, Start: 0x5000, Len: 0x2000, File: "//anon"})
	s.Map(2, Mapping{PID: 7, Start: 0x9000, Len: 0x1000, File: path})
	dump, err := openJitdump(path)
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
	if found, err := y.Lookup(s.Files()[1], "second"); err != nil || len(found) != 1 || found[0] != second {
		t.Errorf("looked up %v, %v", found, err)
	}
}

func TestJitdumpOfAnotherClock(t *testing.T) {
	dump, err := readJitdump(&newJitFile(binary.LittleEndian, 1).Buffer)
	if err != nil || !dump.ArchTime {
		t.Fatalf("got %+v, %v", dump, err)
	}
	s := NewSpaces()
	s.addJitdump(&File{}, &jitdump{ArchTime: true, Codes: []jitCode{{Addr: 1, Size: 1}}})
	s.Settle()
	if len(s.processes) != 0 {
		t.Error("code was mapped at times of another clock")
	}
}

func FuzzJitdump(f *testing.F) {
	f.Add(sampleJitdump(binary.LittleEndian).Bytes())
	f.Add(sampleJitdump(binary.BigEndian).Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := readJitdump(bytes.NewReader(b))
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("an error of several lines: %v", err)
			}
			return
		}
		for i, c := range d.Codes {
			if c.Offset+c.Size > uint64(len(b)) {
				t.Fatalf("code at %d of %d bytes", c.Offset, len(b))
			}
			if i > 0 && c.Offset < d.Codes[i-1].Offset {
				t.Fatal("codes are out of order")
			}
		}
		s := NewSpaces()
		s.addJitdump(&File{PID: 1, kind: kindJitdump}, d)
		s.Settle()
		for _, c := range d.Codes {
			s.Find(c.Time, 1, c.Addr, User)
			d.frames(c.Offset)
		}
	})
}
