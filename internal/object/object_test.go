package object

import (
	"debug/dwarf"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cyclestack/cyclestack/internal/testlong"
)

// run runs a command in a directory, or skips the test where there is none.
func run(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("needs %s", name)
	}
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func names(t *testing.T, o *Object) map[string]uint64 {
	t.Helper()
	list, err := o.Functions()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]uint64{}
	for _, s := range list {
		found[s.Name] = s.Addr
	}
	return found
}

// TestTiny reads a program that is in the repository, on every machine.
func TestTiny(t *testing.T) {
	for _, file := range []string{"tiny.elf", "tiny-compressed.elf"} {
		o := open(t, filepath.Join("testdata", file), Options{})
		if o.Arch != "amd64" || len(o.BuildID) != 40 {
			t.Errorf("%s: architecture %q, build id %q", file, o.Arch, o.BuildID)
		}
		found, err := o.Lookup(Named("sum"))
		if err != nil || len(found) != 1 {
			t.Fatalf("%s: sum is %v, %v", file, found, err)
		}
		sum := found[0]
		inlined := 0
		for a := sum.Addr; a < sum.End(); a++ {
			s, ok := o.Symbol(a)
			if !ok || s != sum {
				t.Fatalf("%s: %#x is in %+v", file, a, s)
			}
			frames := o.Frames(a)
			if len(frames) == 2 {
				inlined++
				want := []Frame{{"square", "/src/tiny.c", 6, true}, {"sum", "/src/tiny.c", 12, false}}
				if d := cmp.Diff(want, frames); d != "" {
					t.Errorf("%s: %#x (-want +got):\n%s", file, a, d)
				}
			}
		}
		if inlined == 0 {
			t.Errorf("%s: nothing is inlined", file)
		}
		offset, ok := o.Offset(sum.Addr)
		if addr, ok2 := o.Addr(offset); !ok || !ok2 || addr != sum.Addr {
			t.Errorf("%s: %#x is at %#x in the file, which is at %#x", file, sum.Addr, offset, addr)
		}
		if v, ok := o.Value("_start"); !ok || v == 0 {
			t.Errorf("%s: _start has the value %#x", file, v)
		}
		if code, err := o.Code(sum.Addr, 1<<30); err != nil || uint64(len(code)) < sum.Size {
			t.Errorf("%s: %d bytes of code, %v", file, len(code), err)
		}
		if notes := o.Notes(); len(notes) != 0 {
			t.Errorf("%s: notes %q", file, notes)
		}
	}
}

func TestSymbols(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.s"), `
	.text
	.globl global_name
	.type global_name, @function
	.type local_name, @function
	.weak weak_name_that_is_longer
	.type weak_name_that_is_longer, @function
	.globl __global_name
	.type __global_name, @function
local_name:
weak_name_that_is_longer:
global_name:
__global_name:
	nop
	nop
	.size global_name, 2
	.size __global_name, 2
	.size local_name, 2
	.size weak_name_that_is_longer, 2
label:
	nop
	nop
	.hidden hidden
	.globl hidden
hidden:
	nop
	.type outer, @function
outer:
	nop
	.type inner, @function
inner:
	nop
	.size inner, 1
	nop
	.size outer, 3
	nop
	.section .other,"ax"
	.type last, @function
last:
	nop
	nop
`)
	run(t, dir, "gcc", "-c", "-o", "a.o", "a.s")
	run(t, dir, "ld", "-Ttext=0x401000", "--section-start=.other=0x402000", "-e", "0x401000", "-o", "a", "a.o")
	o := open(t, filepath.Join(dir, "a"), Options{})
	for addr, want := range map[uint64]string{
		0x400fff: "", 0x401000: "global_name", 0x401001: "global_name",
		0x401002: "label", 0x401004: "label", // without a size: up to the next
		0x401005: "outer", 0x401006: "inner", 0x401007: "outer", 0x401008: "",
		0x402000: "last", 0x402001: "last", 0x402002: "", // up to the end of the section
	} {
		if s, _ := o.Symbol(addr); s.Name != want {
			t.Errorf("%#x: got %q, want %q", addr, s.Name, want)
		}
		start, size, ok := o.Extent(addr)
		if s, ok2 := o.Symbol(addr); ok != ok2 || s.Addr != start || s.Size != size {
			t.Errorf("%#x: the extent is %#x, %d", addr, start, size)
		}
	}
}

// TestPLT looks for the stubs of the procedure linkage table in the three
// layouts of linkers.
func TestPLT(t *testing.T) {
	for _, flags := range []string{"-fcf-protection=none", "-fcf-protection -Wl,-z,ibtplt", "-fcf-protection=none -Wl,-z,now", "-m32"} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "a.c"), `#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) { printf("%d\n", atoi(argv[0])); return argc > 1 ? system("") : getenv("") != 0; }`)
		args := append(strings.Fields(flags), "-fno-builtin", "-O1", "-o", "a", "a.c")
		if err := exec.Command("gcc", append(strings.Fields(flags), "-x", "c", "-o", filepath.Join(dir, "try"), "testdata/programs/shapes.c", "-lm")...).Run(); err != nil {
			t.Logf("gcc %s: %v", flags, err)
			continue
		}
		run(t, dir, "gcc", args...)
		found := names(t, open(t, filepath.Join(dir, "a"), Options{}))
		for _, want := range []string{"printf@plt", "system@plt", "getenv@plt"} {
			if found[want] == 0 {
				t.Errorf("%s: no %s among %v", flags, want, found)
			}
		}
	}
}

func TestDebugFiles(t *testing.T) {
	dir := t.TempDir()
	run(t, filepath.Join("testdata", "programs"), "gcc", "-g", "-O2", "-o", filepath.Join(dir, "whole"), "shapes.c", "-lm")
	whole := open(t, filepath.Join(dir, "whole"), Options{})
	wantName, wantLine := names(t, whole)["path"], 0
	_, wantLine = whole.Line(wantName)
	if wantName == 0 || wantLine == 0 {
		t.Fatalf("path is at %#x, line %d", wantName, wantLine)
	}
	run(t, dir, "objcopy", "--only-keep-debug", "whole", "prog.debug")
	run(t, dir, "objcopy", "--strip-all", "--add-gnu-debuglink=prog.debug", "whole", "prog")
	run(t, dir, "objcopy", "--strip-all", "whole", "bare")
	debug, id := filepath.Join(dir, "debug"), whole.BuildID
	rename := func(from string, to ...string) {
		path := filepath.Join(append([]string{dir}, to...)...)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, from), path); err != nil {
			t.Fatal(err)
		}
	}
	check := func(what, file string) {
		t.Helper()
		o := open(t, filepath.Join(dir, file), Options{Debug: []string{debug}})
		if _, line := o.Line(wantName); line != wantLine || names(t, o)["path"] != wantName || o.DebugPath == "" {
			t.Errorf("%s: line %d, debug file %q, notes %q", what, line, o.DebugPath, o.Notes())
		}
	}
	check("beside", "prog")
	rename("prog.debug", ".debug", "prog.debug")
	check("in .debug", "prog")
	rename(".debug/prog.debug", "debug", dir, "prog.debug")
	check("in the debug directory", "prog")
	rename(filepath.Join("debug", dir, "prog.debug"), "debug", ".build-id", id[:2], id[2:]+".debug")
	check("by build id", "bare")

	write(t, filepath.Join(dir, "prog.debug"), "something else")
	o := open(t, filepath.Join(dir, "prog"), Options{})
	if _, line := o.Line(wantName); line != 0 || names(t, o)["path"] != 0 {
		t.Errorf("a wrong debug file gives line %d", line)
	}
	if notes := strings.Join(o.Notes(), "\n"); !strings.Contains(notes, "no symbol table") {
		t.Errorf("notes are %q", notes)
	}
	run(t, filepath.Join("testdata", "programs"), "gcc", "-g", "-O1", "-Wl,--build-id=none", "-o", filepath.Join(dir, "prog.debug"), "shapes.c", "-lm")
	o = open(t, filepath.Join(dir, "prog"), Options{})
	if notes := strings.Join(o.Notes(), "\n"); !strings.Contains(notes, "of another build") {
		t.Errorf("the debug file of another build: notes are %q", notes)
	}
}

func TestBuildIDs(t *testing.T) {
	path := filepath.Join("testdata", "tiny.elf")
	id := open(t, path, Options{}).BuildID
	for want, ok := range map[string]bool{
		"": true, id: true, id + "00000000": true, id[:32]: false, strings.Repeat("0", 40): false, "ab": false,
	} {
		o, err := Open(path, Options{BuildID: want})
		if (err == nil) != ok || err != nil && !errors.Is(err, ErrBuildID) {
			t.Errorf("build id %q: %v", want, err)
		}
		if err == nil {
			o.Close()
		}
	}
	short := strings.Repeat("ab", 8) // as the Go linker's and lld's are
	if !SameBuildID(short+strings.Repeat("0", 24), short) || SameBuildID(short+strings.Repeat("1", 24), short) {
		t.Error("short build ids are compared wrongly")
	}
}

// TestGoWithoutSymbols reads what the Go runtime knows, and compares it with the same program's
// symbols and lines.
func TestGoWithoutSymbols(t *testing.T) {
	dir := t.TempDir()
	src := filepath.Join("testdata", "programs")
	run(t, src, "go", "build", "-buildvcs=false", "-trimpath=false", "-o", filepath.Join(dir, "whole"), "primes.go")
	run(t, src, "go", "build", "-buildvcs=false", "-trimpath=false", "-ldflags=-s -w", "-o", filepath.Join(dir, "bare"), "primes.go")
	whole, bare := open(t, filepath.Join(dir, "whole"), Options{}), open(t, filepath.Join(dir, "bare"), Options{})
	functions, err := whole.Functions()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]uint64{}
	faults := 0
	for _, f := range functions {
		want[f.Name] = f.Addr
		if f.Name == "runtime.etext" { // the end of the code
			continue
		}
		// The linker marks functions of the stack ABI, and numbers those alike.
		name := strings.TrimRight(strings.TrimSuffix(f.Name, ".abi0"), ".0123456789")
		if s, ok := bare.Symbol(f.Addr); !ok || s.Addr != f.Addr || strings.TrimRight(s.Name, ".·0123456789") != name {
			if faults++; faults < 10 {
				t.Errorf("got %+v, want %+v", s, f)
			}
		}
	}
	if len(functions) < 1000 {
		t.Errorf("there are %d functions", len(functions))
	}
	lines, other := 0, 0
	for _, name := range []string{"main.primes", "main.main", "fmt.Fprintln", "strings.Repeat", "sort.Slice"} {
		s, _ := whole.Symbol(want[name])
		for a := s.Addr; a < s.End(); a++ {
			f1, l1 := whole.Line(a)
			if f2, l2 := bare.Line(a); l1 > 0 {
				lines++
				other += truth(f1 != f2 || l1 != l2)
			}
		}
	}
	if lines == 0 || other > lines/100 {
		t.Errorf("%d of %d lines differ", other, lines)
	}
	if frames := bare.Frames(want["main.primes"]); len(frames) != 1 || frames[0].Func != "main.primes" || frames[0].Line == 0 {
		t.Errorf("main.primes has the frames %+v", frames)
	}
	t.Logf("%d functions, %d differ; %d lines, %d differ", len(want), faults, lines, other)
}

// TestGoLines compares the lines of a program with DWARF 5 with those of the same program
// with DWARF 4. GNU's tools do not read Go's DWARF 5.
func TestGoLines(t *testing.T) {
	five, four := programs[len(programs)-3], programs[len(programs)-2]
	if five.name != "go" || four.name != "go-dwarf4" {
		t.Fatal("the list of programs has changed")
	}
	five.long = false
	a, b := open(t, five.build(t), Options{}), open(t, four.build(t), Options{})
	functions, err := a.Functions()
	if err != nil {
		t.Fatal(err)
	}
	step := testlong.Size(20, 1) // functions
	for i := 0; i < len(functions); i += step {
		f := functions[i]
		if s, _ := b.Symbol(f.Addr); s != f {
			t.Skip("the two programs are not laid out alike")
		}
		for at := f.Addr; at < f.End(); at += 7 {
			if d := cmp.Diff(b.Frames(at), a.Frames(at)); d != "" {
				t.Fatalf("%s+%#x (-DWARF 4 +DWARF 5):\n%s", f.Name, at-f.Addr, d)
			}
		}
	}
}

func TestDemangle(t *testing.T) {
	for _, test := range []struct{ name, bare, full string }{
		{"main", "main", "main"},
		{"_ZN5trees6medianESt6vectorIiSaIiEE", "trees::median", "trees::median(std::vector<int, std::allocator<int> >)"},
		{"_RNvC4demo4main", "demo::main", "demo::main"},
		{"_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write", "core::fmt::write"},
		{"_ZN3std3sys9backtrace28__rust_begin_short_backtrace17h0123456789abcdefE", "std::sys::backtrace::__rust_begin_short_backtrace", "std::sys::backtrace::__rust_begin_short_backtrace"},
		{"_ZN42_$LT$$RF$T$u20$as$u20$core..fmt..Debug$GT$3fmt17h0123456789abcdefE", "<&T as core::fmt::Debug>::fmt", "<&T as core::fmt::Debug>::fmt"},
		{"_ZdlPv@plt", "operator delete@plt", "operator delete(void*)@plt"},
		{"runtime.mallocgc", "runtime.mallocgc", "runtime.mallocgc"},
		{"main.(*T[...]).Do", "main.(*T[...]).Do", "main.(*T[...]).Do"},
		{"_start", "_start", "_start"},
		{"_Zbroken", "_Zbroken", "_Zbroken"},
	} {
		if got := Demangle(test.name, false); got != test.bare {
			t.Errorf("%s: got %q, want %q", test.name, got, test.bare)
		}
		if got := Demangle(test.name, true); got != test.full {
			t.Errorf("%s with parameters: got %q, want %q", test.name, got, test.full)
		}
	}
}

// TestDemangleLong: a symbol of a million identifiers takes no quadratic time.
func TestDemangleLong(t *testing.T) {
	name := "_ZN" + strings.Repeat("2_a", 1<<20) + "17h0123456789abcdefE"
	if got := Demangle(name, false); len(got) > 1<<maxDemangled {
		t.Errorf("%d bytes became %d", len(name), len(got))
	}
}

// TestCache asks for lines all over a program with room for few units.
func TestCache(t *testing.T) {
	path := programs[len(programs)-2].build(t) // Go's have many units
	small, large := open(t, path, Options{Cache: 1}), open(t, path, Options{})
	addrs := instructionsOf(t, large, testlong.Size(500, 3000))
	for _, a := range addrs {
		if d := cmp.Diff(large.Frames(a), small.Frames(a)); d != "" {
			t.Fatalf("%#x (-large +small):\n%s", a, d)
		}
	}
	if n := small.dwarf.recent.Len(); n != 1 {
		t.Errorf("%d units are kept, want 1", n)
	}
	if n := large.dwarf.recent.Len(); n < 2 || large.dwarf.size == 0 {
		t.Errorf("%d units of %d bytes are kept", n, large.dwarf.size)
	}
}

// TestFileBecomesShorter cuts a file while it is mapped.
func TestFileBecomesShorter(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "tiny.elf"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "program")
	write(t, path, string(data))
	o := open(t, path, Options{})
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	if list, err := o.Functions(); err == nil {
		t.Errorf("got %v from an empty file", list)
	}
	if s, ok := o.Symbol(o.code[0].low); ok {
		t.Errorf("got %v from an empty file", s)
	}
	if _, line := o.Line(o.code[0].low); line != 0 {
		t.Errorf("got line %d from an empty file", line)
	}
}

// FuzzObject opens damaged files and asks for everything.
func FuzzObject(f *testing.F) {
	for _, file := range []string{"tiny.elf", "tiny-compressed.elf"} {
		data, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		for at := 0; at < len(data); at += len(data) / 40 {
			changed := append([]byte(nil), data...)
			for i := at; i < min(at+4, len(data)); i++ {
				changed[i] ^= 0xff
			}
			f.Add(changed)
			f.Add(data[:at])
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := FromMemory("fuzz", data, Options{})
		if err != nil {
			return
		}
		functions, _ := o.Functions()
		for i, s := range functions {
			if i > 0 && functions[i-1].Addr >= s.Addr || s.Addr+s.Size < s.Addr {
				t.Fatalf("%+v is behind %+v", s, functions[i-1])
			}
			o.Frames(s.Addr)
			o.Innermost(s.Addr)
			o.Unwind(s.Addr)
			o.Code(s.Addr, 64)
		}
		for _, c := range o.code {
			for i := range uint64(64) {
				o.Frames(c.low + i)
				o.Data(c.low + i)
				o.Unwind(c.low + i)
			}
		}
		for _, n := range o.Notes() {
			if strings.Contains(n, "\n") {
				t.Fatalf("a note of several lines: %q", n)
			}
		}
	})
}

// The directories of DWARF 5 are relative to the one that a unit was compiled in, unless
// that was hidden; and a unit's own name may be absolute.
func TestSourcePaths(t *testing.T) {
	for _, tt := range []struct{ dir, own, file, want string }{
		{"/build", "rec/p.c", "rec/p.c", "/build/rec/p.c"},
		{"/build", "../src/p.c", "../src/p.h", "/src/p.h"},
		{"/build", "/src/p.c", "/src/p.c", "/src/p.c"},
		{"/build", "/src/p.c", "/build/src/p.c", "/src/p.c"}, // as package dwarf joins clang's name
		{"/build", "/src/p.c", "/build/src/p.h", "/build/src/p.h"},
		{".", "rec/p.c", "rec/p.c", "rec/p.c"}, // by -fdebug-prefix-map
		{"", "rec/p.c", "rec/p.c", "rec/p.c"},
		{"/build", "p.c", "", ""},
		{`C:\build`, "p.c", `C:\build\p.c`, `C:\build\p.c`},
	} {
		u := &unit{entry: &dwarf.Entry{Field: []dwarf.Field{
			{Attr: dwarf.AttrCompDir, Val: tt.dir}, {Attr: dwarf.AttrName, Val: tt.own}}}}
		if got := u.source(tt.file); got != tt.want {
			t.Errorf("%s of %s, compiled in %s: %s, want %s", tt.file, tt.own, tt.dir, got, tt.want)
		}
	}
}
