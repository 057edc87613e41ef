package object

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/cyclestack/cyclestack/internal/testlong"
)

// xzOf compresses data with the field's own program.
func xzOf(t testing.TB, data []byte, args ...string) []byte {
	t.Helper()
	if _, err := exec.LookPath("xz"); err != nil {
		t.Skip("there is no xz")
	}
	cmd := exec.Command("xz", append(args, "-c")...)
	cmd.Stdin = bytes.NewReader(data)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestInflateXZ decompresses what xz makes: of nothing, of text, of noise, in several blocks
// and with other contexts.
func TestInflateXZ(t *testing.T) {
	text := bytes.Buffer{}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range testlong.Size(12000, 40000) {
		fmt.Fprintf(&text, "%d %x\n", i, r.Uint32N(1<<uint(i%31)))
	}
	noise := make([]byte, testlong.Size(120000, 300000))
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	tiny, err := os.ReadFile(filepath.Join("testdata", "tiny.elf"))
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"nothing": {}, "byte": {7}, "text": text.Bytes(), "noise": noise, "zeros": make([]byte, testlong.Size(1<<18, 1<<20)), "program": tiny} {
		for _, args := range [][]string{{"-6"}, {"-9e"}, {"-0", "--check=crc32"}, {"--check=none", "--block-size=100000"}, {"--lzma2=lc=0,lp=3,pb=4,dict=64KiB"}, {"--check=sha256", "-T2"}} {
			packed := xzOf(t, data, args...)
			got, err := inflateXZ(packed, len(data))
			if err != nil || !bytes.Equal(got, data) {
				t.Errorf("%s, %v: %d bytes, %v", name, args, len(got), err)
			}
			if len(data) > 0 {
				if _, err := inflateXZ(packed, len(data)-1); err == nil {
					t.Errorf("%s, %v: more than the limit", name, args)
				}
				if _, err := inflateXZ(packed[:len(packed)/2], len(data)); err == nil {
					t.Errorf("%s, %v: a half is enough", name, args)
				}
			}
		}
	}
}

// FuzzInflateXZ decompresses damaged data.
func FuzzInflateXZ(f *testing.F) {
	tiny, err := os.ReadFile(filepath.Join("testdata", "tiny.elf.xz"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(tiny)
	f.Add(tiny[:200])
	f.Fuzz(func(t *testing.T, data []byte) {
		if got, err := inflateXZ(data, 1<<16); err == nil && len(got) > 1<<16 {
			t.Fatalf("%d bytes", len(got))
		}
		// The coder itself, without checksums.
		d := lzmaDecoder{in: data, limit: 1 << 16}
		d.lzma2()
		if len(d.out) > 1<<16 {
			t.Fatalf("%d bytes", len(d.out))
		}
	})
}

// TestMiniDebugInfo strips a program as distributions do (GDB's manual, "MiniDebugInfo"),
// and compares its functions with those of before.
func TestMiniDebugInfo(t *testing.T) {
	dir := t.TempDir()
	src, err := os.ReadFile("testdata/programs/shapes.c")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "shapes.c"), string(src))
	run(t, dir, "gcc", "-g", "-O1", "-Wl,--export-dynamic-symbol=path", "-o", "prog", "shapes.c", "-lm")
	run(t, dir, "cp", "prog", "whole")
	for _, command := range []string{
		`nm -D prog --format=posix --defined-only | awk '{ print $1 }' | sort > dynsyms`,
		`nm prog --format=posix --defined-only | awk '{ if ($2 == "T" || $2 == "t" || $2 == "D") print $1 }' | sort > funcsyms`,
		`comm -13 dynsyms funcsyms > keep`,
		`objcopy --only-keep-debug prog debug && objcopy -S --remove-section .gdb_index --remove-section .comment --keep-symbols=keep debug mini`,
		`strip --strip-all -R .comment prog && xz mini && objcopy --add-section .gnu_debugdata=mini.xz prog`,
	} {
		run(t, dir, "sh", "-c", command)
	}
	got, want := open(t, filepath.Join(dir, "prog"), Options{}), open(t, filepath.Join(dir, "whole"), Options{})
	for _, name := range []string{"path", "main"} { // a static function, and one that is exported
		if a, b := names(t, got)[name], names(t, want)[name]; a != b || a == 0 {
			t.Errorf("%s is at %#x, want %#x", name, a, b)
		}
	}
	if notes := got.Notes(); len(notes) > 0 {
		t.Errorf("notes %q", notes)
	}
}
