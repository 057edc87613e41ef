package samples

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/profile"
)

// TestWindows: the places of addresses are those that Spaces finds, whatever was asked
// before. A file has one number in all processes.
func TestWindows(t *testing.T) {
	s := profile.NewSpaces()
	for pid := 1; pid <= 3; pid++ {
		base := uint64(pid) << 20
		s.Map(1, profile.Mapping{PID: pid, Start: base, Len: 0x4000, PgOff: 0x1000, File: "/bin/prog"})
		s.Map(1, profile.Mapping{PID: pid, Start: base + 0x8000, Len: 0x2000, File: "/lib/one.so"})
		s.Map(uint64(pid)*10, profile.Mapping{PID: pid, Start: base + 0x2000, Len: 0x1000, File: "/lib/two.so"})
	}
	s.Map(1, profile.Mapping{PID: -1, Kernel: true, Start: 1 << 40, Len: 1 << 16, File: "[kernel.kallsyms]_text"})
	s.Settle()
	w := newWindows(s)
	random := rand.New(rand.NewPCG(3, 4))
	numbers := map[*profile.File]uint32{}
	modes := []profile.Mode{profile.User, profile.User, profile.Kernel, 0, 3}
	for range 20000 {
		pid, time := 1+random.IntN(4), uint64(random.IntN(40))
		addr := uint64(pid)<<20 + uint64(random.IntN(0xb000))
		mode := modes[random.IntN(len(modes))]
		if mode == profile.Kernel && random.IntN(2) == 0 {
			addr = 1<<40 + uint64(random.IntN(1<<17))
		}
		in := w.space(pid, time)
		got, want := w.place(&in, addr, mode), s.Find(time, pid, addr, mode)
		if known, ok := numbers[want.File]; ok && known != got.file {
			t.Fatalf("%v has the numbers %d and %d", want.File, known, got.file)
		}
		if numbers[want.File] = got.file; got.offset != want.Offset {
			t.Fatalf("%#x of %d at %d, mode %d: offset %#x, want %#x", addr, pid, time, mode, got.offset, want.Offset)
		}
	}
	if len(numbers) != 6 { // with the kernel outside of its mapping, and no file
		t.Errorf("%d files, want 6", len(numbers))
	}
}

// TestCodes: frames have a number, and where there is no room for more they are others.
func TestCodes(t *testing.T) {
	file := &profile.File{Name: "/bin/prog"}
	c := newCodes(profile.NewSpaces(), 7, newPlaces(counts.Run, 0, nil, functionsOf{}), func(at profile.Place) []int32 { return []int32{1, int32(at.Offset / 2)} })
	c.most = 12
	for range 2 {
		for i := range uint64(40) {
			n := c.number(codePlace{i, c.files.of(file)})
			c.lookUp(inOrder(&c.places, len(c.numbers)))
			n = c.numbers[n].frames
			want := []int32{1, int32(i / 2)}
			if i >= 20 { // the first two numbers are taken
				want = []int32{7}
			}
			if got := c.at(n); !slices.Equal(got, want) {
				t.Errorf("place %d has the frames %v, want %v", i, got, want)
			}
		}
	}
}

// TestStackTree compares trees with maps: paths are found again, rows come in the order of
// the names, and a cut keeps what is heavy.
func TestStackTree(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	var tree stackTree
	var rows stackRows
	want := map[string]int32{}
	for range 20000 {
		n, key := int32(0), ""
		for range 1 + random.IntN(12) {
			f := int32(random.IntN(9))
			n = tree.child(n, f)
			key += string(rune('a' + f))
		}
		row := rows.of(&tree, stackRow{node: n}, 1)
		known, ok := want[key]
		if !ok {
			known = int32(len(want))
			want[key] = known
		}
		if row != known || rows.at(int(row)).node != n {
			t.Fatalf("%s has row %d, want %d", key, row, known)
		}
	}
	if tree.index.n == 0 {
		t.Error("no node has many children")
	}
	ranks := []int32{0, 1, 2, 3, 4, 4, 5, 6, 7} // two have one name
	last, seen := []int32(nil), 0
	tree.rows(ranks, func(row int32, path []int32, same int) bool {
		key := ""
		for _, f := range path {
			key += string(rune('a' + f))
		}
		if want[key] != row || !slices.Equal(last[:same], path[:same]) {
			t.Fatalf("row %d has the path %s, want row %d; %d frames as before", row, key, want[key], same)
		}
		byName := func(a, b int32) int { return int(ranks[a] - ranks[b]) }
		if slices.CompareFunc(last, path, byName) > 0 {
			t.Fatalf("%v comes before %v", last, path)
		}
		last = slices.Clone(path)
		seen++
		return true
	})
	if seen != len(want) {
		t.Errorf("%d rows of %d", seen, len(want))
	}
	weights := make([]uint32, tree.nodes.n)
	for i := range rows.n() {
		weights[rows.at(i).node] = uint32(1 + i%50)
	}
	before, were := tree.nodes.n, [][]int32(nil)
	for i, all := 0, tree.parents(); i < rows.n(); i++ {
		were = append(were, all.path(&tree, rows.at(i).node, nil))
	}
	moved := tree.cut(weights, before/3, 5)
	if tree.nodes.n > before/3+1 || tree.nodes.n < 2 {
		t.Errorf("%d nodes of %d are left", tree.nodes.n, before)
	}
	left := tree.parents()
	for i, was := range were {
		now, kept := moved.of(rows.at(i).node)
		path := left.path(&tree, now, nil)
		if kept && !slices.Equal(path, was) || !slices.Equal(path, was[:len(path)]) || slices.Contains(path, 5) {
			t.Fatalf("row %d is at %v, %v; it was at %v", i, path, kept, was)
		}
		n := int32(0)
		for _, f := range path {
			n = tree.child(n, f)
		}
		if n != now {
			t.Fatalf("%v is found at %d, want %d", path, n, now)
		}
	}
}

// TestSmallest: as many weights are kept as there is room for, also where many are the same.
func TestSmallest(t *testing.T) {
	for _, tt := range []struct {
		weights []uint32
		most    int
		least   uint32
		more    int
	}{
		{[]uint32{9, 1, 1, 1, 5, 1}, 4, 1, 2},
		{[]uint32{9, 1, 1, 1, 5, 1}, 2, 1, 0},
		{[]uint32{9, 2, 1, 1, 5, 1}, 1, 5, 0},
		{[]uint32{3, 3, 3}, 2, 3, 2},
		{[]uint32{1 << 20, 1 << 21, 1 << 22, 7}, 2, 1 << 20, 0},
		{[]uint32{1 << 20, 1 << 22, 1 << 20, 1 << 20}, 3, 1 << 20, 2},
	} {
		if least, more := smallest(tt.weights, tt.most); least != tt.least || more != tt.more {
			t.Errorf("%d of %d: those above %d, and %d of it, want %d and %d", tt.most, tt.weights, least, more, tt.least, tt.more)
		}
	}
}

// TestCutOfEqual: of nodes with the same weight, a cut keeps as many as are asked for.
func TestCutOfEqual(t *testing.T) {
	tree := stackTree{}
	for frame := range int32(100) {
		tree.child(tree.child(0, frame), frame)
	}
	weights := make([]uint32, tree.nodes.n)
	for i := range weights {
		weights[i] = 1
	}
	heavy := tree.child(tree.child(0, 99), 99)
	weights[heavy] = 9
	moved := tree.cut(weights, 60, -1)
	if now, kept := moved.of(heavy); tree.nodes.n != 60 || !kept || now == 0 {
		t.Errorf("%d nodes are left, want 60; the heaviest is %d, kept %t", tree.nodes.n, now, kept)
	}
}
