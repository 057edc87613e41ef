package export_test

import (
	"fmt"
	"io"
	"testing"

	"github.com/cyclestack/cyclestack/internal/export"
)

// BenchmarkFormats writes 100,000 different stacks of 20 frames, with five kinds of values:
// those of a recording of hours.
func BenchmarkFormats(b *testing.B) {
	const stacks, depth, types = 100_000, 20, 5
	var frames []*export.Frame
	for i := range 5000 {
		frames = append(frames, &export.Frame{Function: fmt.Sprint("function", i), Module: fmt.Sprint("lib", i%20), File: fmt.Sprint("file", i%500), Line: 1 + i%900, Addr: uint64(i) << 4})
	}
	p := &export.Profile{Title: "./prog"}
	for i := range types {
		p.Types = append(p.Types, export.Type{Name: fmt.Sprint("type", i), Unit: "slots"})
	}
	p.Stacks = func(yield func(*export.Stack) bool) {
		s := &export.Stack{Thread: "prog", Frames: make([]*export.Frame, depth), Values: make([]float64, types)}
		random := uint64(1)
		for i := range stacks {
			for k := range s.Frames {
				random = random*6364136223846793005 + 1442695040888963407
				s.Frames[k] = frames[k*250+int(random>>56)%250]
			}
			for k := range s.Values {
				s.Values[k] = float64(i*types + k + 1)
			}
			if !yield(s) {
				return
			}
		}
	}
	for _, f := range export.Formats {
		b.Run(f.Name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := f.Write(io.Discard, p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
