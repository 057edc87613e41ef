package export

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestFlameGraphSwept: a tree that leaves out narrow boxes on the way is written as one that has
// them all.
func TestFlameGraphSwept(t *testing.T) {
	frames := make([]*Frame, 400)
	for i := range frames {
		frames[i] = &Frame{Function: fmt.Sprint("f", i), Module: fmt.Sprint("m", i%7), Inlined: i%5 == 0, Kernel: i%11 == 0}
	}
	random := rand.New(rand.NewPCG(1, 2))
	var list []*Stack
	var visit func(path []int, samples float64)
	visit = func(path []int, samples float64) { // depth first, half of the samples in few stacks
		s := &Stack{Thread: fmt.Sprint("t", path[0]), Values: []float64{samples / 2, 3 * samples}, Bottleneck: []string{"", "A", "B", "C"}[random.IntN(4)]}
		for _, n := range path[1:] {
			s.Frames = append(s.Frames, frames[n])
		}
		if n := len(list); n > 0 && list[n-1].Thread == s.Thread {
			before := list[n-1].Frames
			for s.Same < min(len(before), len(s.Frames)) && before[s.Same] == s.Frames[s.Same] {
				s.Same++
			}
		}
		list = append(list, s)
		next := random.IntN(len(frames))
		for rest := samples; rest > 1 && len(path) < 40; next++ {
			part := max(1, float64(int(rest/2)))
			visit(append(slices.Clone(path), next%len(frames)), part)
			rest -= part
		}
	}
	for thread := range 3 {
		visit([]int{thread}, 20000)
	}
	write := func(full int) []byte {
		defer func(was int) { fullTree = was }(fullTree)
		fullTree = full
		for _, f := range frames {
			f.tree = nil
		}
		var b bytes.Buffer
		if _, err := Stacks(&b, &Profile{Types: []Type{{Name: "Node", Path: "Node"}, {Name: "cycles"}}, Default: 1, Stacks: slices.Values(list)}); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	all := write(1 << 30)
	var d struct{ Boxes [][]float64 }
	if err := json.Unmarshal(all, &d); err != nil || len(d.Boxes) < 1000 || len(d.Boxes) > len(list)/2 {
		t.Fatalf("%d stacks, %d boxes: %v", len(list), len(d.Boxes), err)
	}
	for _, full := range []int{1, 100, 5000} {
		if !bytes.Equal(write(full), all) {
			t.Errorf("other boxes with a sweep after %d", full)
		}
	}
}
