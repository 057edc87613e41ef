package unwind_test

import (
	"debug/elf"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/unwind"
)

// sections returns what a file says of unwinding.
func sections(t testing.TB, path string) unwind.Sections {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	section := func(name string) unwind.Section {
		if s := f.Section(name); s != nil {
			data, err := s.Data()
			if err != nil {
				t.Fatal(err)
			}
			return unwind.Section{Data: data, Addr: s.Addr}
		}
		return unwind.Section{}
	}
	arch := map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64"}[f.Machine]
	s := unwind.Sections{Arch: arch, Order: f.ByteOrder, EHFrame: section(".eh_frame"), Header: section(".eh_frame_hdr"), SFrame: section(".sframe")}
	debug := section(".debug_frame")
	s.Debug = func() []byte { return debug.Data }
	return s
}

// functions returns the addresses of a file's code.
func functions(t testing.TB, path string) (list []elf.Symbol) {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Size > 0 && s.Section != elf.SHN_UNDEF {
			list = append(list, s)
		}
	}
	return list
}

const source = `
int leaf(int n) { return n * 3; }
__attribute__((noinline)) int third(int n) { volatile int room[40]; room[n % 40] = n; return leaf(room[n % 40]) + n; }
__attribute__((noinline)) int second(int n, int m) { int list[n]; list[m] = third(n); return list[m] + m; }
int main(int argc, char **argv) { return second(argc + 10, argc); }
`

// build builds a small program with a compiler.
func build(t testing.TB, compiler string, flags ...string) string {
	t.Helper()
	if _, err := exec.LookPath(compiler); err != nil {
		t.Skipf("there is no %s", compiler)
	}
	dir := t.TempDir()
	src, out := filepath.Join(dir, "prog.c"), filepath.Join(dir, "prog")
	if err := os.WriteFile(src, []byte(source), 0o666); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command(compiler, append(flags, "-o", out, src)...).CombinedOutput(); err != nil {
		t.Skipf("%s %v: %v\n%s", compiler, flags, err, text)
	}
	return out
}

// TestRowsAgree compares the rows of a program by its three tables: they describe the same
// frames.
func TestRowsAgree(t *testing.T) {
	path := build(t, "gcc", "-g", "-O2", "-fno-omit-frame-pointer", "-Wa,--gsframe")
	all := sections(t, path)
	if all.SFrame.Data == nil {
		t.Skip("this assembler makes no .sframe")
	}
	only := func(s unwind.Sections) *unwind.Table {
		table, err := unwind.New(s)
		if err != nil {
			t.Fatal(err)
		}
		return table
	}
	none := func() []byte { return nil }
	eh := only(unwind.Sections{Arch: all.Arch, Order: all.Order, EHFrame: all.EHFrame, Header: all.Header, Debug: none})
	walked := only(unwind.Sections{Arch: all.Arch, Order: all.Order, EHFrame: all.EHFrame, Debug: none})
	sframes := map[string]*unwind.Table{
		"version 1": only(unwind.Sections{Arch: all.Arch, Order: all.Order, SFrame: all.SFrame, Debug: none}),
		"version 2": only(unwind.Sections{Arch: all.Arch, Order: all.Order, SFrame: second(t, all.SFrame), Debug: none}),
		"version 3": only(unwind.Sections{Arch: all.Arch, Order: all.Order, SFrame: third(t, all.SFrame), Debug: none}),
	}
	checked := 0
	for _, f := range functions(t, path) {
		for pc := f.Value; pc < f.Value+f.Size; pc++ {
			want := eh.Row(pc)
			if want == nil {
				continue
			}
			if a, b := step(want), step(walked.Row(pc)); a != b {
				t.Fatalf("%s+%#x: %v with the index, %v without", f.Name, pc-f.Value, a, b)
			}
			for name, table := range sframes {
				row := table.Row(pc)
				if row == nil {
					continue
				}
				checked++
				if a, b := step(want), step(row); a != b {
					t.Fatalf("%s: %s+%#x: %v by .eh_frame, %v by .sframe", name, f.Name, pc-f.Value, a, b)
				}
			}
		}
	}
	if checked < 100 {
		t.Errorf("%d addresses have rows in .sframe", checked)
	}
}

// A stepped is what a step of made-up registers and memory gives.
type stepped struct {
	outcome unwind.Outcome
	pc      uint64
	sp, fp  uint64
}

// step executes a row: the memory at an address has the address itself.
func step(row *unwind.Row) stepped {
	if row == nil {
		return stepped{outcome: 99}
	}
	const base = 0x7fff0000
	stack := make([]byte, 1<<14)
	for i := 0; i+8 <= len(stack); i += 8 {
		binary.LittleEndian.PutUint64(stack[i:], base+uint64(i))
	}
	r := unwind.Registers{PC: 0x1000}
	for i := range 17 {
		r.Set(i, base+0x1000)
	}
	k := unwind.MachineOf("amd64")
	r.Set(k.SP, base+0x800)
	outcome := row.Step(&r, &unwind.Memory{Start: base, Stack: stack}, 0)
	return stepped{outcome, r.PC, r.Value[k.SP], r.Value[k.FP]}
}

// TestLacks: a section .sframe of an unknown version, and a damaged one, are named.
func TestLacks(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "amd64.sframe"))
	if err != nil {
		t.Fatal(err)
	}
	for version, want := range map[byte]string{1: "", 0: ".sframe has version 0", 4: ".sframe has version 4", 2: ".sframe is damaged"} {
		b := slices.Clone(data)
		if b[2] = version; version == 2 {
			b = b[:40] // its functions are behind the end
		}
		table, err := unwind.New(unwind.Sections{Arch: "amd64", Order: binary.LittleEndian, SFrame: unwind.Section{Data: b}})
		if err != nil {
			t.Fatal(err)
		}
		if got := table.Lacks(); got != want && (want == "" || !strings.HasPrefix(got, want)) {
			t.Errorf("version %d: %q, want %q", version, got, want)
		}
	}
}

// second makes a section of version 2 of one of version 1, whose entries of functions lack
// three bytes.
func second(t *testing.T, s unwind.Section) unwind.Section {
	t.Helper()
	u := binary.LittleEndian
	if s.Data[2] != 1 {
		return s // the assembler wrote version 2
	}
	const header = 28
	n, fres := int(u.Uint32(s.Data[8:])), int(u.Uint32(s.Data[24:]))
	out := append([]byte(nil), s.Data[:header]...)
	out[2] = 2
	u.PutUint32(out[24:], uint32(fres+3*n))
	for i := range n {
		out = append(out, s.Data[header+17*i:header+17*(i+1)]...)
		out = append(out, 0, 0, 0)
	}
	return unwind.Section{Data: append(out, s.Data[header+fres:]...), Addr: s.Addr}
}

// FuzzTable asks damaged tables for rows, and executes them.
func FuzzTable(f *testing.F) {
	for file, addr := range map[string]uint64{"amd64.eh_frame": 0x2048, "amd64.debug_frame": 0, "amd64.sframe": 0x2130, "arm64.eh_frame": 0x878, "arm64.sframe": 0x968} {
		data, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			f.Fatal(err)
		}
		arch, kind, _ := strings.Cut(file, ".")
		f.Add(data, addr, arch == "arm64", kind)
	}
	third := linked()
	f.Add(third.Data, third.Addr-0x401000+0x600, false, "sframe")
	third.Data[28+32+8+3] = 1 // the second function is a flexible one
	f.Add(third.Data, third.Addr-0x401000+0x600, false, "sframe")
	f.Fuzz(func(t *testing.T, data []byte, addr uint64, arm bool, kind string) {
		s := unwind.Sections{Arch: "amd64", Order: binary.LittleEndian}
		if arm {
			s.Arch = "arm64"
		}
		section := unwind.Section{Data: data, Addr: addr}
		switch kind {
		case "debug_frame":
			s.Debug = func() []byte { return data }
		case "sframe":
			s.SFrame = section
		default:
			s.EHFrame = section
			if half := len(data) / 2; addr%2 == 1 { // an index of anything
				s.Header = unwind.Section{Data: data[half:], Addr: addr + uint64(half)}
			}
		}
		table, err := unwind.New(s)
		if err != nil {
			t.Fatal(err)
		}
		for pc := uint64(0x600); pc < 0x1400; pc += 4 {
			if row := table.Row(pc); row != nil {
				step(row)
			}
		}
	})
}

// FuzzExpression executes damaged expressions, as the CFA of an entry.
func FuzzExpression(f *testing.F) {
	// That of a stub of the PLT, and of the registers of a signal's frame.
	f.Add([]byte{0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22})
	f.Add([]byte{0x77, 0xa0, 1, 0x06})
	f.Add([]byte{0x2f, 0xfd, 0xff})
	f.Fuzz(func(t *testing.T, expr []byte) {
		if len(expr) > 100 {
			return
		}
		table, err := unwind.New(unwind.Sections{Arch: "amd64", Order: binary.LittleEndian, Debug: func() []byte { return frameOf(expr) }})
		if err != nil {
			t.Fatal(err)
		}
		row := table.Row(0x1008)
		if row == nil {
			t.Fatal("no row")
		}
		step(row)
	})
}

// frameOf is a .debug_frame of one function whose CFA is an expression.
func frameOf(expr []byte) []byte {
	u := binary.LittleEndian
	cie := []byte{0xff, 0xff, 0xff, 0xff, 3, 0, 1, 0x78, 16, 0x90, 1}
	fde := u.AppendUint64(u.AppendUint64(u.AppendUint32(nil, 0), 0x1000), 0x100)
	fde = append(append(fde, 0x0f, byte(len(expr))), expr...)
	out := append(u.AppendUint32(nil, uint32(len(cie))), cie...)
	return append(append(out, u.AppendUint32(nil, uint32(len(fde)))...), fde...)
}

// TestExpression has the values of some expressions.
func TestExpression(t *testing.T) {
	for _, tt := range []struct {
		name string
		expr []byte
		sp   uint64 // of the caller: the CFA
	}{
		{"stub of the PLT", []byte{0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22}, 0x7fff0808},
		{"memory", []byte{0x77, 0x10, 0x06}, 0x7fff0810},
		{"literals", []byte{0x77, 0, 0x08, 16, 0x22, 0x38, 0x1c}, 0x7fff0808},
		{"branch taken", []byte{0x77, 8, 0x31, 0x28, 1, 0, 0x13}, 0x7fff0808},
		{"swap and rot", []byte{0x77, 8, 0x31, 0x16, 0x16, 0x32, 0x17, 0x22, 0x22}, 0x7fff080b},
		{"endless", []byte{0x2f, 0xfd, 0xff}, 0},
		{"empty stack", []byte{0x22}, 0},
	} {
		table, err := unwind.New(unwind.Sections{Arch: "amd64", Order: binary.LittleEndian, Debug: func() []byte { return frameOf(tt.expr) }})
		if err != nil {
			t.Fatal(err)
		}
		got := step(table.Row(0x1008))
		switch {
		case tt.sp == 0 && got.outcome != unwind.Broken:
			t.Errorf("%s: %+v", tt.name, got)
		case tt.sp != 0 && got.outcome == unwind.Caller && got.sp != tt.sp, tt.sp%8 == 0 && tt.sp > 0 && got.outcome != unwind.Caller:
			t.Errorf("%s: %+v, want the stack pointer %#x", tt.name, got, tt.sp)
		}
	}
}
