package object

import (
	"maps"
	"slices"
	"testing"

	"github.com/cyclestack/cyclestack/internal/testlong"
)

// memoryIndexes keep indexes in memory.
type memoryIndexes map[string][]byte

func (m memoryIndexes) Read(name string, at int64, most int) []byte { return m[name][at:] }
func (m memoryIndexes) Write(name string, data []byte)              { m[name] = data }

// withoutIndexes opens a program without what may be kept of it, and lists its functions.
func withoutIndexes(t *testing.T, path string) (*Object, []Symbol) {
	t.Helper()
	plain := open(t, path, Options{})
	if plain.keptName() == "" {
		t.Skip("nothing can be kept here")
	}
	functions, err := plain.Functions()
	if err != nil {
		t.Fatal(err)
	}
	return plain, functions
}

// TestInlineIndex asks about all of a program's code: without an index, while one is made,
// with it, with a half that another process kept, and with damaged ones.
func TestInlineIndex(t *testing.T) {
	for _, p := range programs {
		if p.inline == "" {
			continue
		}
		t.Run(p.name, func(t *testing.T) { testInlineIndex(t, p.build(t)) })
	}
}

func testInlineIndex(t *testing.T, path string) {
	plain, functions := withoutIndexes(t, path)
	var addrs []uint64
	for i, f := range functions {
		if i%7 == 0 || len(functions) < 2000 {
			for at := f.Addr; at < f.Addr+min(f.Size, 1<<12); at += uint64(testlong.Size(13, 3)) {
				addrs = append(addrs, at)
			}
		}
	}
	want, inlined := map[uint64]string{}, 0
	for _, at := range addrs {
		if want[at] = plain.Innermost(at); want[at] != "" {
			inlined++
		}
	}
	if inlined == 0 {
		t.Fatalf("nothing is inlined at %d addresses", len(addrs))
	}
	ask := func(how string, kept memoryIndexes, addrs []uint64) (read bool) {
		t.Helper()
		o, err := Open(path, Options{Indexes: kept})
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
		wrong := 0
		for _, at := range addrs {
			if got := o.Innermost(at); got != want[at] {
				if wrong++; wrong < 4 {
					t.Errorf("%s: %#x is in %q, want %q", how, at, got, want[at])
				}
			}
		}
		return o.dwarf != nil
	}
	kept := memoryIndexes{}
	if !ask("while it is made", kept, addrs) || len(kept) != 1 {
		t.Fatalf("%d indexes", len(kept))
	}
	if ask("with it", kept, addrs) {
		t.Error("the debug information was read again")
	}
	half := memoryIndexes{}
	ask("the first half", half, addrs[:len(addrs)/2])
	ask("both halves", half, addrs)
	if ask("with both", half, addrs) {
		t.Error("the debug information was read again after two parts")
	}
	whole := kept[plain.keptName()]
	for _, damaged := range [][]byte{nil, whole[:10], whole[:len(whole)/2], append([]byte("x"), whole[1:]...), changed(whole, indexHeader+8), changed(whole, len(indexMark)+5)} {
		kept := maps.Clone(kept)
		kept[plain.keptName()] = damaged
		if !ask("damaged", kept, addrs[:len(addrs)/testlong.Size(8, 1)]) {
			t.Errorf("a damaged index of %d bytes was used", len(damaged))
		}
	}
}

func changed(data []byte, at int) []byte {
	out := append([]byte(nil), data...)
	out[at] ^= 0x40
	return out
}

// FuzzInlineIndex has indexes of any contents, with a right checksum or not.
func FuzzInlineIndex(f *testing.F) {
	x := &inlineIndex{}
	for _, p := range []indexPiece{{span{16, 32}, "one"}, {span{64, 70}, "two"}, {span{32, 40}, ""}} {
		x.put(p)
	}
	f.Add(x.data(), uint64(20))
	f.Add([]byte(indexMark), uint64(0))
	f.Fuzz(func(t *testing.T, data []byte, addr uint64) {
		for _, data := range [][]byte{data, Seal(slices.Clone(data), len(indexMark))} {
			x := &inlineIndex{kept: parseIndex(data)}
			if n := x.kept.lookup(addr); n >= indexFirst {
				x.kept.name(n)
			}
			again := parseIndex(x.data())
			if x.kept.pieces > 0 && again.pieces == 0 {
				t.Error("what was read cannot be kept again")
			}
		}
	})
}

// TestFrameIndex asks about frames and lines: without an index, while one is made, with it, with
// a half that another process kept, and with damaged ones.
func TestFrameIndex(t *testing.T) {
	for _, p := range programs {
		if p.inline != "" {
			t.Run(p.name, func(t *testing.T) { testFrameIndex(t, p.build(t)) })
		}
	}
}

func testFrameIndex(t *testing.T, path string) {
	plain, functions := withoutIndexes(t, path)
	type known struct {
		frames []Frame
		file   string
		line   int
	}
	want, addrs := map[uint64]known{}, []uint64{0, 1<<64 - 1}
	for i, f := range functions {
		if i%7 == 0 || len(functions) < 2000 {
			for at := f.Addr; at < f.Addr+min(f.Size, 1<<10); at += 13 {
				addrs = append(addrs, at, at+1)
			}
		}
	}
	deep := 0
	for _, at := range addrs {
		k := known{frames: plain.Frames(at)}
		k.file, k.line = plain.Line(at)
		if want[at] = k; len(k.frames) > 1 {
			deep++
		}
	}
	if deep == 0 {
		t.Fatalf("nothing is inlined at %d addresses", len(addrs))
	}
	ask := func(how string, kept memoryIndexes, addrs []uint64) (read bool) {
		t.Helper()
		o, err := Open(path, Options{Indexes: kept})
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
		for _, at := range addrs {
			if got := o.Frames(at); !slices.Equal(got, want[at].frames) {
				t.Fatalf("%s: %#x has %+v, want %+v", how, at, got, want[at].frames)
			}
			if file, line := o.Line(at); file != want[at].file || line != want[at].line {
				t.Fatalf("%s: %#x is in %s:%d, want %s:%d", how, at, file, line, want[at].file, want[at].line)
			}
		}
		return o.dwarf != nil || o.slim != nil
	}
	half, kept := addrs[2:len(addrs)/2], memoryIndexes{}
	if ask("the first half", kept, half); !ask("both halves", kept, addrs) {
		t.Error("the second half was known")
	}
	if ask("with it", kept, addrs[2:]) {
		t.Error("the debug information was read again")
	}
	for name, whole := range maps.Clone(kept) {
		for _, damaged := range [][]byte{nil, whole[:len(whole)/2], append(slices.Clone(whole[:len(whole)-1]), whole[len(whole)-1]^1)} {
			kept[name] = damaged
			ask("damaged", kept, addrs)
		}
	}
}
