package valgrind

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A recorder writes down what it is told.
type recorder struct{ said []string }

func (r *recorder) Exec() { r.said = append(r.said, "exec") }

func (r *recorder) Fork(parent Follower) {
	r.said = append(r.said, "fork of "+parent.(*recorder).said[0])
}

func (r *recorder) Mapped(file string, bias uint64) {
	r.said = append(r.said, fmt.Sprintf("%s+%x", file, bias))
}

func (r *recorder) Blocks(addrs []uint64) {
	for _, a := range addrs {
		r.said = append(r.said, fmt.Sprintf("%x", a))
	}
}

func (r *recorder) End() {}

// traced reads a log in pieces of a size. It returns what it says and how many blocks might
// have followed.
func traced(text string, size int, limit int64) (*traceLog, []string, int64) {
	r := &recorder{}
	log := newTraceLog(r, named, &limit)
	for piece := range slices.Chunk([]byte(text), size) {
		log.write(piece)
	}
	log.settle()
	return log, r.said, limit
}

// named is a follower of the process of a number.
func named(pid string) Follower { return &recorder{said: []string{pid}} }

func TestTraceLog(t *testing.T) {
	greeting := "==12== Lackey, an example Valgrind tool\n==12== Command: prog\n==12== Parent PID: 11\n--12-- \n"
	mapping := "--12-- Reading syms from a\n--12--    svma 0x0000001060, avma 0x0000109060\n"
	for _, tt := range []struct {
		name, log string
		limit     int64
		want      string
	}{
		{"blocks", mapping + "SB 04001060\nSB 0ffefff123\nSB ffffffffff600000\n", 9, "exec a+108000 4001060 ffefff123 ffffffffff600000"},
		{"no more than the limit", mapping + "SB 04001060\nSB 04001070\nSB 04001080\n", 2, "exec a+108000 4001060 4001070"},
		{"a name with a space", greeting + "--12-- Reading syms from /tmp/a file\n--12--    svma 0x0000001060, avma 0x0000109060\nSB 00109060\n", 9,
			"exec /tmp/a file+108000 109060"},
		{"a mapping between blocks", mapping + "SB 00109060\n--12-- Reading syms from /lib/c.so\n--12--    Considering /usr/lib/debug/c.debug ..\n--12--    svma 0x0000026380, avma 0x000486b380\nSB 04870000\n", 9,
			"exec a+108000 109060 /lib/c.so+4845000 4870000"},
		{"one below its address in the file", "--12-- Reading syms from a\n--12--    svma 0x2000, avma 0x1000\n", 9, "exec a+fffffffffffff000"},
		{"an address of no file", "--12--    svma 0x0000026380, avma 0x000486b380\n", 9, ""},
		{"a fork", greeting + "SB 04001060\n" + mapping + "SB 04001070\n", 9, "fork of 11 4001060 a+108000 4001070"},
		{"a fork that executes a program", greeting + "SB 04001060\n" + greeting + mapping + "SB 04001070\n", 9, "exec a+108000 4001070"},
		{"a fork of no parent", "SB 04001060\n", 9, "fork of  4001060"},
		{"another program", greeting + mapping + "SB 00001000\n" + greeting + mapping + "SB 00002000\n", 9, "exec a+108000 1000 exec a+108000 2000"},
		{"no end", mapping + "SB 04001060\nSB 04001", 9, "exec a+108000 4001060"},
		{"no addresses", mapping + "SB \nSB g\nSB 0400 1060\nSB 00000000004001060\nSB04001060\n SB 04001060\nSB 4\n", 9, "exec a+108000 4"},
		{"no mappings", "Reading syms from a\n--12-- Reading syms from a\n--12--    svma 0x, avma 0x1\n--12--    svma 0x1, avma 0x2\n--12-- Reading syms from a\n--12--    svma 0x1 avma 0x2\n", 9, ""},
		{"other lines", "\n\n== ==\n**12** SB 04001060\n--12-- SB 04001060\n", 9, ""},
		{"a line that is too long", mapping + strings.Repeat("S", 3*maxTraceLine) + "\nSB 04001060\n", 9, "exec a+108000 4001060"},
		{"many blocks of a fork", greeting + strings.Repeat("SB 01\n", maxHeld+1) + greeting + mapping, 2, "fork of 11 1 1 exec a+108000"},
	} {
		for _, size := range []int{1, 2, 7, 100, 1 << 22} {
			if _, got, left := traced(tt.log, size, tt.limit); strings.Join(got, " ") != tt.want || left < 0 {
				t.Errorf("%s, %d bytes at a time: %q, want %q; %d left", tt.name, size, got, tt.want, left)
			}
		}
	}
}

// TestTraceFailures checks that what valgrind says of failing is kept.
func TestTraceFailures(t *testing.T) {
	t.Parallel()
	const want = "valgrind: the 'impossible' happened:"
	if log, _, _ := traced("==12== Lackey, \nSB 01\n"+want+"\nSB 02\n", 10, 9); log.failed != want {
		t.Errorf("%q, want %q", log.failed, want)
	}
}

// FuzzTraceLog reads logs with any contents: the blocks do not depend on the pieces of the log,
// and their order and number are bounded.
func FuzzTraceLog(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.lackey"))
	if err != nil || len(files) == 0 {
		f.Fatalf("%q, %v", files, err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, uint8(7))
	}
	f.Fuzz(func(t *testing.T, text []byte, size uint8) {
		const limit = 100
		_, whole, left := traced(string(text), max(len(text), 1), limit)
		log, pieces, _ := traced(string(text), int(size)+1, limit)
		if !slices.Equal(whole, pieces) {
			t.Errorf("%q in one piece, %q in several", whole, pieces)
		}
		if left < 0 || len(whole) > bytes.Count(text, []byte("\n")) || cap(log.rest) > 2*maxTraceLine {
			t.Errorf("%d lines, %d left, %d bytes kept", len(whole), left, cap(log.rest))
		}
	})
}

// BenchmarkTraceLog reads blocks as lackey prints them.
func BenchmarkTraceLog(b *testing.B) {
	text := bytes.Repeat([]byte("SB 0401ab70\n"), 1<<16)
	limit := int64(1) << 62
	log := newTraceLog(ignorer{}, named, &limit)
	log.begun = true
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		log.write(text)
	}
}

// An ignorer is told, and does nothing.
type ignorer struct{}

func (ignorer) Exec()                 {}
func (ignorer) Fork(Follower)         {}
func (ignorer) Mapped(string, uint64) {}
func (ignorer) Blocks([]uint64)       {}
func (ignorer) End()                  {}
