package object

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestSymbolIndex asks for the functions of programs without an index, while one is made, with
// it, and with damaged ones.
func TestSymbolIndex(t *testing.T) {
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) { testSymbolIndex(t, p.build(t)) })
	}
}

func testSymbolIndex(t *testing.T, path string) {
	plain := open(t, path, Options{})
	if plain.keptName() == "" {
		t.Skip("nothing can be kept here")
	}
	want, err := plain.Functions()
	if err != nil || len(want) == 0 {
		t.Fatalf("%d functions, %v", len(want), err)
	}
	kept := memoryIndexes{}
	ask := func(how string) (read bool) {
		t.Helper()
		o := open(t, path, Options{Indexes: kept})
		before := string(kept[plain.keptName()+symbolSuffix])
		if got, err := o.Functions(); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %d functions and %v, want %d", how, len(got), err, len(want))
		}
		for _, at := range []uint64{0, want[0].Addr, want[len(want)/2].Addr + 1, want[len(want)-1].End(), 1 << 63} {
			a, aok := plain.Symbol(at)
			b, bok := o.Symbol(at)
			if a != b || aok != bok {
				t.Errorf("%s: %#x is in %+v, want %+v", how, at, b, a)
			}
		}
		if got := o.Notes(); !reflect.DeepEqual(got, plain.Notes()) {
			t.Errorf("%s: notes %q, want %q", how, got, plain.Notes())
		}
		return string(kept[plain.keptName()+symbolSuffix]) != before
	}
	if !ask("while it is made") {
		t.Fatal("nothing was kept")
	}
	whole := slices.Clone(kept[plain.keptName()+symbolSuffix])
	if ask("with it") {
		t.Error("the symbols were kept again")
	}
	for _, damaged := range [][]byte{whole[:10], whole[:len(whole)/2], changed(whole, 0), changed(whole, symbolHeader+8)} {
		kept[plain.keptName()+symbolSuffix] = damaged
		if !ask("damaged") || string(kept[plain.keptName()+symbolSuffix]) != string(whole) {
			t.Errorf("a damaged index of %d bytes was not replaced", len(damaged))
		}
	}
}

// TestSymbolIndexOrigin: symbols that were kept of a stripped program do not count once its
// debug file is there.
func TestSymbolIndexOrigin(t *testing.T) {
	path := programs[0].build(t)
	objcopy, err := exec.LookPath("objcopy")
	if err != nil {
		t.Skip("needs objcopy")
	}
	dir := t.TempDir()
	stripped, debug := filepath.Join(dir, "stripped"), filepath.Join(dir, "debug")
	for _, args := range [][]string{{"--strip-all", path, stripped}, {"--only-keep-debug", path, debug}} {
		if out, err := exec.Command(objcopy, args...).CombinedOutput(); err != nil {
			t.Skipf("%v: %s", err, out)
		}
	}
	kept := memoryIndexes{}
	has := func(dirs ...string) bool {
		o := open(t, stripped, Options{Indexes: kept, Debug: dirs})
		all, err := o.Functions()
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(all, func(s Symbol) bool { return strings.Contains(s.Name, "area") || s.Name == "main" })
	}
	for range 2 {
		if has() {
			t.Fatal("a stripped program has names")
		}
	}
	id := open(t, path, Options{}).BuildID
	place := filepath.Join(dir, ".build-id", id[:2])
	if err := os.MkdirAll(place, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(debug, filepath.Join(place, id[2:]+".debug")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if !has(dir) {
			t.Error("with its debug file it has no names")
		}
	}
	if has() {
		t.Error("without it the names are still there")
	}
}

// FuzzSymbolIndex has kept symbols of any contents, with a right checksum or not.
func FuzzSymbolIndex(f *testing.F) {
	from := symbolOrigin{file: 1, names: []byte("\x00one\x00two\x00")}
	t := &symbolTable{names: from.names, extra: []string{"three@plt"}, entries: []entry{{addr: 16, size: 8, name: 1}, {addr: 32, size: 4, flags: named}},
		pieces: []piece{{16, 0}, {24, -1}, {32, 1}, {36, -1}}}
	f.Add(t.packed(from), uint64(33))
	f.Add([]byte(symbolMark), uint64(0))
	f.Fuzz(func(t *testing.T, data []byte, addr uint64) {
		for _, data := range [][]byte{data, Seal(slices.Clone(data), len(symbolMark))} {
			s := parseSymbols(data, from)
			if s == nil {
				continue
			}
			if i := s.lookup(addr); i >= 0 {
				s.symbol(i)
			}
			for i := range s.symbols {
				s.symbol(i)
			}
		}
	})
}

// TestRelease: frames are the same after debug information was given up.
func TestRelease(t *testing.T) {
	o := open(t, programs[0].build(t), Options{})
	functions, err := o.Functions()
	if err != nil {
		t.Fatal(err)
	}
	inlined := 0
	for _, f := range functions {
		for at := f.Addr; at < f.Addr+min(f.Size, 1<<11); at += 16 {
			before := o.Frames(at)
			o.Release()
			if after := o.Frames(at); !slices.Equal(before, after) {
				t.Errorf("%#x: %+v, want %+v", at, after, before)
			}
			if len(before) > 1 {
				inlined++
			}
		}
	}
	if inlined == 0 {
		t.Error("no inlined calls")
	}
}

// TestKeptName: a file that takes another's place has another name, with the same size and time.
func TestKeptName(t *testing.T) {
	with, without := programs[0].build(t), ""
	for _, p := range programs {
		if p.name == "c-no-build-id" {
			without = p.build(t)
		}
	}
	if o := open(t, with, Options{}); o.BuildID == "" || o.keptName() != o.BuildID {
		t.Errorf("kept as %q, with the build id %q", o.keptName(), o.BuildID)
	}
	data, err := os.ReadFile(without)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "program")
	names := map[string]bool{}
	for i := range 2 {
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Unix(1e9, 0), time.Unix(1e9, 0)); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			o := open(t, path, Options{})
			if o.keptName() == "" || o.BuildID != "" {
				t.Skipf("kept as %q, with the build id %q", o.keptName(), o.BuildID)
			}
			names[o.keptName()] = true
		}
		if len(names) != i+1 {
			t.Errorf("%d names of %d files", len(names), i+1)
		}
		time.Sleep(20 * time.Millisecond) // the kernel's clock for files ticks at least every 10 ms
	}
}
