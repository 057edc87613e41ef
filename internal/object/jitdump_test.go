package object

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cyclestack/cyclestack/internal/testjitdump"
)

func TestReadJitdump(t *testing.T) {
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		got, err := ReadJitdump(&testjitdump.Sample(order).Buffer)
		if err != nil {
			t.Fatal(err)
		}
		want := &Jitdump{
			PID: 7, Arch: "amd64", Unknown: 1,
			Codes: []JitCode{
				{Time: 10, Addr: 0x5000, Size: 3, Offset: 178, Name: "first", Lines: []JitLine{{0x5000, "/src/a.js", 3}, {0x5001, "/src/a.js", 4}}},
				{Time: 30, Addr: 0x5000, Size: 2, Offset: 328, Name: "second"},
			},
			Moves: []JitMove{{20, 0x5000, 0x6000, 3}},
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%v (-want +got):\n%s", order, d)
		}
	}
}

func TestReadJitdumpErrors(t *testing.T) {
	whole := testjitdump.Sample(binary.LittleEndian).Bytes()
	for n := jitHeaderSize; n < len(whole); n++ {
		d, err := ReadJitdump(bytes.NewReader(whole[:n]))
		if err != nil {
			t.Errorf("cut after %d bytes: %v", n, err)
		} else if !d.Truncated && n != jitHeaderSize && !cutAtRecord(whole, n) {
			t.Errorf("cut after %d bytes: not noticed", n)
		}
	}
	huge := testjitdump.New(binary.LittleEndian, 0)
	huge.Record(jitCodeLoad, 0, 1<<30)
	large := testjitdump.New(binary.LittleEndian, 0)
	large.Record(jitCodeLoad, 0, 41)
	for _, v := range []uint64{0, 0, 0, 1 << 40, 0} {
		large.U64(v)
	}
	lines := testjitdump.New(binary.LittleEndian, 0)
	lines.Record(jitDebugInfo, 0, 16)
	lines.U64(0)
	lines.U64(1 << 60)
	for want, data := range map[string][]byte{
		"is not a jitdump":                     []byte("\x7fELF"),
		"starts with 7f 45 4c 46":              append([]byte("\x7fELF"), make([]byte, 100)...),
		"a size of 1073741840 bytes":           huge.Bytes(),
		"1099511627776 bytes of code":          large.Bytes(),
		"1152921504606846976 lines do not fit": lines.Bytes(),
	} {
		if _, err := ReadJitdump(bytes.NewReader(data)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want one with %q", err, want)
		}
	}
	if _, err := ReadJitdump(strings.NewReader("")); !errors.Is(err, errJitdump) {
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

// TestMadeCode finds code by address and time, and has no lines behind a name that is garbage.
func TestMadeCode(t *testing.T) {
	f := testjitdump.Sample(binary.LittleEndian)
	f.Debug(0x8000, testjitdump.Line{Addr: 0x8000, File: "/src/b.js", Line: 1}, testjitdump.Line{Addr: 0x8001, File: "\x1e\x80", Line: 2}, testjitdump.Line{Addr: 0x8002, File: "/src/b.js", Line: 3})
	f.Load(50, 0x8000, "third", "\x90\x90\xc3")
	d, err := ReadJitdump(&f.Buffer)
	if err != nil {
		t.Fatal(err)
	}
	m := NewMadeCode(d)
	for _, test := range []struct {
		time, addr uint64
		want       string
		line       int
	}{
		{9, 0x5001, "", 0},
		{15, 0x5002, "first", 4},
		{15, 0x6000, "", 0},
		{20, 0x6001, "first", 4},
		{30, 0x5001, "second", 0},
		{30, 0x5002, "first", 4}, // what was not overwritten is still there
		{60, 0x8002, "third", 1},
	} {
		name, line := "", 0
		if c, made, ok := m.At(test.time, test.addr); ok {
			name = c.Name
			_, line = c.Line(made)
		}
		if name != test.want || line != test.line {
			t.Errorf("time %d, %#x: got %q, line %d, want %q, line %d", test.time, test.addr, name, line, test.want, test.line)
		}
	}
}

func FuzzJitdump(f *testing.F) {
	f.Add(testjitdump.Sample(binary.LittleEndian).Bytes())
	f.Add(testjitdump.Sample(binary.BigEndian).Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := ReadJitdump(bytes.NewReader(b))
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
		made := NewMadeCode(d)
		for _, c := range d.Codes {
			d.Frames(c.Offset)
			if _, _, ok := made.At(c.Time, c.Addr); !ok && c.Size > 0 && !d.ArchTime {
				t.Fatalf("no code at %#x", c.Addr)
			}
		}
	})
}
