package object

import (
	"math/rand/v2"
	"testing"
)

// TestLineTo compares lines of stretches with those of addresses, from the debug information and kept.
func TestLineTo(t *testing.T) {
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) { testLineTo(t, p.build(t)) })
	}
}

func testLineTo(t *testing.T, path string) {
	plain, functions := withoutIndexes(t, path)
	kept, random, stretches := memoryIndexes{}, rand.New(rand.NewPCG(1, 1)), 0
	for range 3 {
		o, err := Open(path, Options{Indexes: kept})
		if err != nil {
			t.Fatal(err)
		}
		for range 200 {
			f := functions[random.IntN(len(functions))]
			for at := f.Addr; at < f.End() && at < f.Addr+256; {
				file, line, until := o.LineTo(at)
				if until <= at {
					t.Fatalf("%#x: the line ends at %#x", at, until)
				}
				for ; at < until && at < f.End(); at++ {
					if wantFile, wantLine := plain.Line(at); file != wantFile || line != wantLine {
						t.Fatalf("%#x is in %s:%d, want %s:%d", at, file, line, wantFile, wantLine)
					}
				}
				stretches++
			}
		}
		if err := o.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if len(kept) == 0 {
		t.Error("nothing was kept")
	}
	t.Logf("%d stretches", stretches)
}
