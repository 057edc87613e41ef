package unwind_test

import (
	"debug/elf"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/unwind"
)

// third makes a section of version 3 of one of version 1: an index with starts of 8 bytes, and
// five bytes before each function's changes.
func third(t *testing.T, s unwind.Section) unwind.Section {
	t.Helper()
	u := binary.LittleEndian
	if s.Data[2] != 1 {
		t.Skip("this assembler makes no .sframe of version 1")
	}
	const header = 28
	n, fres := int(u.Uint32(s.Data[8:])), header+int(u.Uint32(s.Data[24:]))
	out := append([]byte(nil), s.Data[:header]...)
	out[2], out[3] = 3, s.Data[3]|4 // starts are relative to where they stand
	var index, changes []byte
	for i := range n {
		fde := s.Data[header+17*i:]
		start := int64(int32(u.Uint32(fde)))
		index = u.AppendUint64(index, uint64(start-int64(header+16*i)))
		index = append(index, fde[4:8]...)
		index = u.AppendUint32(index, uint32(len(changes)))
		changes = append(changes, fde[12], fde[13], fde[16], 0, 0)
		if fde[16]>>4&1 == 1 {
			changes[len(changes)-1] = 16 // of .plt, which version 1 does not say
		}
		changes = append(changes, s.Data[fres+int(u.Uint32(fde[8:])):]...) // the rest is not looked at
	}
	u.PutUint32(out[16:], uint32(len(changes)))
	u.PutUint32(out[24:], uint32(len(index)))
	return unwind.Section{Data: append(append(out, index...), changes...), Addr: s.Addr}
}

// linked is a section of version 3 as GNU ld 2.47 writes it for two functions: a leaf of two
// bytes, and one that saves the frame pointer, moves the stack pointer there, and leaves.
func linked() unwind.Section {
	const at = 0x402000 // functions are at 0x401000 and behind
	u := binary.LittleEndian
	data := []byte{0xe2, 0xde, 3, 5, 3, 0, 0xf8, 0}
	for _, n := range []uint32{2, 5, 28, 0, 32} {
		data = u.AppendUint32(data, n)
	}
	for i, size := range []uint32{2, 7} {
		data = u.AppendUint64(data, uint64(0x401000+2*i-(at+28+16*i)))
		data = u.AppendUint32(u.AppendUint32(data, size), uint32(8*i))
	}
	data = append(data, 1, 0, 0, 0, 0, 0, 3, 8)
	data = append(data, 4, 0, 0, 0, 0, 0, 3, 8, 1, 5, 16, 0xf0, 4, 4, 16, 0xf0, 6, 5, 8, 0xf0)
	return unwind.Section{Data: data, Addr: at}
}

// TestSFrameLinked has the frames of the two functions.
func TestSFrameLinked(t *testing.T) {
	table, err := unwind.New(unwind.Sections{Arch: "amd64", Order: binary.LittleEndian, SFrame: linked()})
	if err != nil {
		t.Fatal(err)
	}
	const sp, fp = 0x7fff0800, 0x7fff1000 // as step has them
	for pc, want := range map[uint64]stepped{
		0x401001: {unwind.Caller, sp, sp + 8, fp},
		0x401002: {unwind.Caller, sp, sp + 8, fp},
		0x401003: {unwind.Caller, sp + 8, sp + 16, sp},
		0x401006: {unwind.Caller, fp + 8, fp + 16, fp},
		0x401008: {unwind.Caller, sp, sp + 8, sp - 8},
	} {
		if got := step(table.Row(pc)); got != want {
			t.Errorf("%#x: %+v, want %+v", pc, got, want)
		}
	}
	if table.Row(0x401009) != nil || table.Row(0x400fff) != nil {
		t.Error("there is a row outside the functions")
	}
}

// TestSFrameFlexible has flexible entries for a function that aligns its stack. They are made of
// what objdump prints of .eh_frame. The rows are those of .eh_frame.
func TestSFrameFlexible(t *testing.T) {
	dir := t.TempDir()
	src, path := filepath.Join(dir, "prog.c"), filepath.Join(dir, "prog")
	const text = `__attribute__((noinline)) int aligned(int n) {
	_Alignas(64) volatile int room[32]; int list[n]; room[n % 32] = n; list[n / 2] = room[n % 31]; return list[n / 2] + room[n % 32]; }
int main(int argc, char **argv) { return aligned(argc + 10); }
`
	if err := os.WriteFile(src, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-O2", "-o", path, src).CombinedOutput(); err != nil {
		t.Skipf("gcc: %v\n%s", err, out)
	}
	dump, err := exec.Command("objdump", "--dwarf=frames", path).Output()
	if err != nil {
		t.Skipf("objdump: %v", err)
	}
	all := sections(t, path)
	eh, err := unwind.New(unwind.Sections{Arch: all.Arch, Order: all.Order, EHFrame: all.EHFrame, Header: all.Header})
	if err != nil {
		t.Fatal(err)
	}
	var f elf.Symbol
	for _, s := range functions(t, path) {
		if s.Name == "aligned" {
			f = s
		}
	}
	if f.Size == 0 || all.Arch != "amd64" {
		t.Skip("no such function of 64-bit x86")
	}
	for _, size := range []int{1, 2, 4} {
		section := flexible(t, string(dump), f, size)
		table, err := unwind.New(unwind.Sections{Arch: "amd64", Order: binary.LittleEndian, SFrame: section})
		if err != nil {
			t.Fatal(err)
		}
		for pc := f.Value; pc < f.Value+f.Size; pc++ {
			if a, b := step(eh.Row(pc)), step(table.Row(pc)); a != b || a.outcome != unwind.Caller {
				t.Fatalf("words of %d: aligned+%#x: %v by .eh_frame, %v by .sframe", size, pc-f.Value, a, b)
			}
		}
	}
}

// flexible makes a section with a flexible entry of a function, with words of a size.
func flexible(t *testing.T, dump string, f elf.Symbol, size int) unwind.Section {
	t.Helper()
	_, dump, found := strings.Cut(dump, "pc="+strings.Repeat("0", 12)+strconv.FormatUint(f.Value, 16)+"..")
	if !found {
		t.Skip("objdump prints something else")
	}
	dump, _, _ = strings.Cut(dump, "\n\n")
	number := func(text string) int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	var rows []byte
	count, cfa, fp, at := 0, [2]int64{7<<3 | 1, 8}, []int64(nil), uint64(0)
	add := func() {
		words := append([]int64{cfa[0], cfa[1]}, fp...)
		rows = append(rows, byte(at), byte(at>>8), byte(len(words)<<1|(size/2)<<5))
		for _, w := range words {
			rows = append(rows, binary.LittleEndian.AppendUint64(nil, uint64(w))[:size]...)
		}
		count++
	}
	expression := regexp.MustCompile(`DW_OP_breg(\d+) \(\w+\): (-?\d+)`)
	for _, line := range strings.Split(dump, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		e := expression.FindStringSubmatch(line)
		switch op := strings.TrimSuffix(words[0], ":"); {
		case strings.HasPrefix(op, "DW_CFA_advance_loc"):
			add()
			at += uint64(number(words[1]))
		case op == "DW_CFA_def_cfa":
			cfa = [2]int64{number(strings.TrimPrefix(words[1], "r"))<<3 | 1, number(words[4])}
		case op == "DW_CFA_expression" && words[1] == "r6":
			fp = []int64{0, number(e[1])<<3 | 3, number(e[2])} // the first is of the return address, which is fixed
		case op == "DW_CFA_def_cfa_expression":
			cfa = [2]int64{number(e[1])<<3 | 3, number(e[2])}
		}
	}
	add()
	if fp == nil {
		t.Skip("the compiler aligns the stack in another way")
	}
	u := binary.LittleEndian
	const at0 = 0x500000
	data := []byte{0xe2, 0xde, 3, 1, 3, 0, 0xf8, 0}
	for _, n := range []uint32{1, uint32(count), uint32(5 + len(rows)), 0, 16} {
		data = u.AppendUint32(data, n)
	}
	data = u.AppendUint64(data, f.Value-at0)
	data = u.AppendUint32(u.AppendUint32(data, uint32(f.Size)), 0)
	data = append(data, byte(count), byte(count>>8), 1, 1, 0) // starts of two bytes; flexible
	return unwind.Section{Data: append(data, rows...), Addr: at0}
}

// TestSFrameSignal has a handler's frame, and a function without a caller.
func TestSFrameSignal(t *testing.T) {
	u := binary.LittleEndian
	data := []byte{0xe2, 0xde, 3, 1, 3, 0, 0xf8, 0}
	for _, n := range []uint32{2, 2, 15, 0, 32} {
		data = u.AppendUint32(data, n)
	}
	for i := range 2 {
		data = u.AppendUint64(data, uint64(0x100*i))
		data = u.AppendUint32(u.AppendUint32(data, 0x100), uint32(8*i))
	}
	data = append(data, 1, 0, 0x80, 0, 0, 0, 3, 8)
	data = append(data, 1, 0, 0, 0, 0, 0, 1)
	table, err := unwind.New(unwind.Sections{Arch: "amd64", Order: u, SFrame: unwind.Section{Data: data, Addr: 0x1000}})
	if err != nil {
		t.Fatal(err)
	}
	if row := table.Row(0x1010); row == nil || !row.Signal {
		t.Errorf("%+v: not of a signal", row)
	}
	if row := table.Row(0x1110); row == nil || row.Signal || step(row).outcome != unwind.Outside {
		t.Errorf("%+v: it has a caller", row)
	}
	data[28+32+8+3] = 2 // a type of functions that is not known
	if row := table.Row(0x1110); row != nil {
		t.Errorf("%+v of an unknown type", row)
	}
}
