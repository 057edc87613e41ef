package profile

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/cyclestack/cyclestack/internal/disasm"
	"github.com/cyclestack/cyclestack/internal/object"
)

const source = `__attribute__((noinline)) int triple(int n) { return 3 * n; }
static inline int square(int n)
{
	return n * n + triple(n);
}
int main(int argc, char **argv)
{
	int sum = 0;
	for (int i = 0; i < argc * 100; i++)
		sum += square(i);
	return sum & 1;
}
`

// compile builds a C program under a root directory, and returns its path there.
func compile(t *testing.T, root, path string, flags ...string) {
	t.Helper()
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("needs gcc")
	}
	src := filepath.Join(root, "src", "main.c")
	for _, dir := range []string{filepath.Dir(src), filepath.Dir(filepath.Join(root, path))} {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(src, []byte(source), 0o666); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"-O2", "-g", "-ffile-prefix-map=" + root + "=", "-o", filepath.Join(root, path), src}, flags...)
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
}

// load maps a program as the kernel would, and returns the address less that in
// the file.
func load(t *testing.T, s *Spaces, root, path, id string) (*object.Object, func(addr uint64) Place) {
	t.Helper()
	o, err := object.Open(filepath.Join(root, path), object.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	const base = 0x555500000000
	s.Map(0, Mapping{PID: 1, Start: base, Len: 1 << 20, File: path, BuildID: id})
	s.Settle()
	return o, func(addr uint64) Place {
		offset, ok := o.Offset(addr)
		if !ok {
			t.Fatalf("%#x is nowhere in the file", addr)
		}
		return s.Find(0, 1, base+offset, User)
	}
}

func TestSymbolizer(t *testing.T) {
	root := t.TempDir()
	compile(t, root, "/bin/prog")
	s := NewSpaces()
	o, place := load(t, s, root, "/bin/prog", "")
	y := NewSymbolizer(Config{Root: root})
	defer y.Close()

	mains, err := y.Lookup(s.Files()[0], object.Named("main"))
	if err != nil || len(mains) != 1 {
		t.Fatalf("looked up %v, %v", mains, err)
	}
	main := mains[0]
	if again := y.Function(place(main.Addr + 1)); again != main {
		t.Errorf("main is %+v and %+v", main, again)
	}
	if got := y.Addr(place(main.Addr + 1)); got != main.Addr+1 {
		t.Errorf("an address in main is %#x, want %#x", got, main.Addr+1)
	}
	if st := y.Status(main.File); st.Err != nil || st.Verified || st.Path != filepath.Join(root, "/bin/prog") {
		t.Errorf("the status is %+v", st)
	}

	calls, inlined := 0, 0
	for _, i := range instructions(t, y, main) {
		at := Place{main.File, main.Offset + i.Addr - main.Addr}
		if y.Function(at) != main {
			t.Errorf("%x is in %+v", i.Addr, y.Function(at))
		}
		if i.Flow == disasm.Call {
			calls++
			if name, offset := y.Symbol(main.File, i.Target); name != "triple" || offset != 0 {
				t.Errorf("%x calls %s+%d", i.Addr, name, offset)
			}
		}
		if frames := y.Frames(at); len(frames) > 1 {
			inlined++
			if frames[0].Func != "square" || !frames[0].Inlined || frames[1].Func != "main" || frames[1].Line != 10 {
				t.Errorf("%x: frames %+v", i.Addr, frames)
			}
			if file, line := y.Line(at); line != frames[0].Line || !strings.HasSuffix(file, "main.c") {
				t.Errorf("%x: %s:%d", i.Addr, file, line)
			}
		}
	}
	if calls != 1 || inlined == 0 {
		t.Errorf("%d calls and %d inlined instructions", calls, inlined)
	}
	_ = o
}

// instructions are those of a function.
func instructions(t *testing.T, y *Symbolizer, f *Function) []disasm.Inst {
	t.Helper()
	code, arch, err := y.Code(f, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	d, err := disasm.New(disasm.Arch(arch), disasm.ATT)
	if err != nil {
		t.Fatal(err)
	}
	return disasm.Instructions(d, code, f.Addr)
}

// TestMissing asks about files that are not there or are others.
func TestMissing(t *testing.T) {
	root := t.TempDir()
	compile(t, root, "/bin/prog")
	const wrong = "0123456789abcdef0123456789abcdef01234567"
	tests := []struct {
		m    Mapping
		want string
	}{
		{Mapping{File: "/bin/absent", BuildID: wrong}, "no such file"},
		{Mapping{File: "/bin/prog", BuildID: wrong}, "is another build"},
		{Mapping{File: "/bin"}, "not a regular file"},
		{Mapping{File: "relative"}, "is not the path"},
		{Mapping{File: "/../../../../../../../../bin/true"}, "no such file"}, // stays under the root
		{Mapping{File: "/../../../../../../../../tmp/jit-1.dump"}, "no such file"},
		{Mapping{File: "/bin/prog (deleted)"}, "was deleted"},
		{Mapping{File: "/src/main.c"}, "bad magic"},
		{Mapping{File: "//anon"}, "made at run time"},
		{Mapping{File: "[vdso]"}, "another system"},
		{Mapping{File: "/tmp/jit-1.dump"}, "no such file"},
		{Mapping{PID: kernelPID, Kernel: true, File: "[kernel.kallsyms]_text", BuildID: wrong}, "no vmlinux"},
	}
	y := NewSymbolizer(Config{Root: root})
	defer y.Close()
	for _, test := range tests {
		s := NewSpaces()
		m := test.m
		m.Start, m.Len = 0x10000, 0x10000
		s.Map(0, m)
		s.Settle()
		p := s.Find(0, m.PID, 0x10010, 0)
		if p.File == nil || p.File.BuildID != m.BuildID {
			t.Errorf("%s: the place is %+v", m.File, p)
			continue
		}
		f := y.Function(p)
		if f.File != p.File || f.Symbol != "" || y.Function(Place{p.File, p.Offset + 1}) != f {
			t.Errorf("%s: got %+v", m.File, f)
		}
		if frames := y.Frames(p); len(frames) != 0 {
			t.Errorf("%s: got frames %+v", m.File, frames)
		}
		if err := y.Status(p.File).Err; err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got error %v, want one with %q", m.File, err, test.want)
		}
		if _, _, err := y.Code(f, 100); err == nil {
			t.Errorf("%s: there is code", m.File)
		}
	}
	nowhere := y.Function(Place{Offset: 5})
	if nowhere.File != nil || nowhere.Symbol != "" || y.Addr(Place{Offset: 5}) != 5 || !errors.Is(y.Status(nil).Err, errNoFile) {
		t.Errorf("nothing is at %+v", nowhere)
	}
}

// TestByBuildID finds a program that is only in perf's cache, and another by its debug file
// alone.
func TestByBuildID(t *testing.T) {
	root := t.TempDir()
	compile(t, root, "/bin/prog", "-Wl,--build-id=0xabcdef0123456789abcdef0123456789abcdef01")
	const id = "abcdef0123456789abcdef0123456789abcdef01"
	move := func(to ...string) {
		path := filepath.Join(append([]string{root}, to...)...)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(root, "/bin/prog"), path); err != nil {
			t.Fatal(err)
		}
	}
	s := NewSpaces()
	o, place := load(t, s, root, "/bin/prog", id)
	mains, err := o.Lookup(object.Named("main"))
	if err != nil || len(mains) != 1 {
		t.Fatalf("looked up %v, %v", mains, err)
	}
	for _, to := range [][]string{
		{"cache", ".build-id", id[:2], id[2:], "elf"},
		{"usr", "lib", "debug", ".build-id", id[:2], id[2:] + ".debug"},
	} {
		move(to...)
		y := NewSymbolizer(Config{Root: root, BuildIDCache: filepath.Join(root, "cache")})
		if f := y.Function(place(mains[0].Addr)); f.Symbol != "main" || !y.Status(f.File).Verified {
			t.Errorf("%v: got %+v, %+v", to, f, y.Status(f.File))
		}
		y.Close()
		if err := os.Rename(filepath.Join(append([]string{root}, to...)...), filepath.Join(root, "/bin/prog")); err != nil {
			t.Fatal(err)
		}
	}
}

// TestKernelElsewhere uses a list of symbols of another boot, with the kernel elsewhere.
func TestKernelElsewhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kallsyms")
	if err := os.WriteFile(path, []byte(kallsymsText), 0o666); err != nil {
		t.Fatal(err)
	}
	s := NewSpaces()
	s.Map(0, Mapping{PID: kernelPID, Kernel: true, Start: 0xffffffff91000000, Len: 0x1000000, PgOff: 0xffffffff91000000, File: "[kernel.kallsyms]_text"})
	s.Map(0, Mapping{PID: kernelPID, Kernel: true, Start: 0xffffffffc0000000, Len: 0x1000, File: "[ext4]"})
	s.KernelSymbol(0, 0xffffffffc0005000, 0x100, "bpf_prog_1", false)
	s.Settle()
	y := NewSymbolizer(Config{Kallsyms: path})
	defer y.Close()
	for addr, want := range map[uint64]string{
		0xffffffff91000110: "helper",
		0xffffffff91000210: "memcpy",
		0xffffffffc0000110: "ext4_read",
		0xffffffffc0005010: "bpf_prog_1",
		0xffffffff80000000: "", // in no mapping
	} {
		if got := y.Function(s.Find(0, 5, addr, Kernel)).Name; got != want {
			t.Errorf("%#x: got %q, want %q", addr, got, want)
		}
	}
	bpf := y.Function(s.Find(0, 5, 0xffffffffc0005010, Kernel))
	if again := y.Function(s.Find(0, 5, 0xffffffffc0005020, Kernel)); again != bpf || bpf.Addr != 0xffffffffc0005000 {
		t.Errorf("got %+v and %+v", bpf, again)
	}
	if found, err := y.Lookup(s.Files()[0], object.Named("helper")); err != nil || len(found) != 1 || found[0] != y.Function(s.Find(0, 5, 0xffffffff91000110, Kernel)) {
		t.Errorf("looked up %+v, %v", found, err)
	}
}

// TestOwnKernel names code of the running kernel only if the recording says that
// it is the same.
func TestOwnKernel(t *testing.T) {
	own, err := openKallsyms("/proc/kallsyms")
	if err != nil || own.marks["_stext"] == 0 {
		t.Skipf("the kernel shows no symbols: %v", err)
	}
	stext := own.marks["_stext"]
	for _, test := range []struct {
		about string
		m     Mapping
		ok    bool
	}{
		{"the same build id", Mapping{File: "[kernel.kallsyms]_stext", PgOff: stext, BuildID: runningBuildID()}, true},
		{"the same build id, elsewhere", Mapping{File: "[kernel.kallsyms]_stext", PgOff: stext - 0x1000000, BuildID: runningBuildID()}, true},
		{"no build id, at the same address", Mapping{File: "[kernel.kallsyms]_stext", PgOff: stext}, true},
		{"no build id, elsewhere", Mapping{File: "[kernel.kallsyms]_stext", PgOff: stext - 0x1000000}, false},
		{"another build id", Mapping{File: "[kernel.kallsyms]_stext", PgOff: stext, BuildID: strings.Repeat("12", 20)}, false},
		{"no reference", Mapping{File: "[kernel.kallsyms]", PgOff: stext}, false},
	} {
		if test.m.BuildID == "" && test.about[:3] == "the" {
			continue // this kernel does not tell its build id
		}
		s := NewSpaces()
		test.m.PID, test.m.Start, test.m.Len = kernelPID, test.m.PgOff, 0x1000000
		s.Map(0, test.m)
		s.Settle()
		y := NewSymbolizer(Config{BuildIDCache: t.TempDir(), Debug: []string{}})
		f := y.Function(s.Find(0, 1, test.m.PgOff, Kernel))
		if got := f.Symbol != ""; got != test.ok {
			t.Errorf("%s: got %q, %v", test.about, f.Symbol, y.Status(f.File).Err)
		}
		y.Close()
	}
}

func TestOwnVDSO(t *testing.T) {
	s := NewSpaces()
	s.Map(0, Mapping{PID: 1, Start: 0x7ffff7fc0000, Len: 0x2000, File: "[vdso]"})
	s.Settle()
	y := NewSymbolizer(Config{BuildIDCache: t.TempDir()})
	defer y.Close()
	f := s.Files()[0]
	if err := y.Status(f).Err; err != nil {
		t.Skipf("no vdso here: %v", err)
	}
	found, err := y.Lookup(f, object.Named("__vdso_clock_gettime"))
	if err != nil || len(found) == 0 {
		t.Skipf("the vdso has no such function: %v", err)
	}
	if got := y.Function(Place{f, found[0].Offset + 1}); got != found[0] {
		t.Errorf("got %+v, want %+v", got, found[0])
	}
}

// TestConcurrently asks from several goroutines; the race detector looks on.
func TestConcurrently(t *testing.T) {
	s := NewSpaces()
	s.Map(0, Mapping{PID: 1, Start: 0x10000, Len: 0x1000, PgOff: 0x1000, File: "/tiny.elf"})
	s.Settle()
	y := NewSymbolizer(Config{Root: filepath.Join("..", "internal", "object", "testdata")})
	defer y.Close()
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			c := s.Copy()
			for a := range uint64(0x40) {
				p := c.Find(a, 1, 0x10000+a, User)
				if f := y.Function(p); f.Symbol == "" && a < 0x20 {
					t.Errorf("%#x: no function", a)
				}
				y.Frames(p)
				y.Status(p.File)
			}
		})
	}
	wait.Wait()
}
