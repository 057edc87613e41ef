package profile

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/object"
)

// TestKallsymsIndex keeps the list of symbols of lists_test.go and, if it can be read, the
// running kernel's.
func TestKallsymsIndex(t *testing.T) {
	lists := map[string]*nameTable{}
	var err error
	if lists["a copy"], err = readKallsyms(strings.NewReader(kallsymsText)); err != nil {
		t.Fatal(err)
	}
	if own, err := openKallsyms(ownKallsyms); err == nil {
		lists["the running kernel"] = own
	}
	for name, want := range lists {
		data := want.packed()
		got := parseKallsyms(data)
		if got == nil {
			t.Fatalf("%s: what was kept cannot be read", name)
		}
		if len(got.ranges) != len(want.ranges) || !reflect.DeepEqual(got.marks, want.marks) {
			t.Errorf("%s: %d ranges and %v, want %d and %v", name, len(got.ranges), got.marks, len(want.ranges), want.marks)
		}
		for i := range want.ranges {
			if got.symbol(i) != want.symbol(i) {
				t.Fatalf("%s: %+v, want %+v", name, got.symbol(i), want.symbol(i))
			}
		}
		for _, damaged := range [][]byte{nil, data[:len(data)-1], data[:kallsymsHeader], append([]byte("x"), data[1:]...)} {
			if parseKallsyms(damaged) != nil {
				t.Errorf("%s: a damaged index of %d bytes was used", name, len(damaged))
			}
		}
	}
}

// keptLists keep indexes in memory.
type keptLists map[string][]byte

func (k keptLists) Read(name string) []byte        { return k[name] }
func (k keptLists) Write(name string, data []byte) { k[name] = data }

// TestKeptKallsyms: the running kernel's list is kept, and is read from there the next time.
func TestKeptKallsyms(t *testing.T) {
	k := keptLists{}
	c := Config{Indexes: k}
	first, err := c.readList(ownKallsyms)
	if err != nil || runningName() == "" || first.passing {
		t.Skipf("the kernel does not show its symbols, or they change: %v", err)
	}
	if len(k) != 1 {
		t.Fatalf("%d indexes", len(k))
	}
	marked := &nameTable{marks: map[string]uint64{}}
	marked.add(16, 0, []byte("marked"))
	marked.settle()
	k[runningName()] = marked.packed()
	again, err := c.readList(ownKallsyms)
	if err != nil || len(again.ranges) != 1 || again.symbol(0).Name != "marked" {
		t.Errorf("%d ranges, %v: the index was not used", len(again.ranges), err)
	}
}

// FuzzKallsymsIndex has kept lists of any contents, with a right checksum or not.
func FuzzKallsymsIndex(f *testing.F) {
	t, err := readKallsyms(strings.NewReader(kallsymsText))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(t.packed(), uint64(0xffffffff91000010))
	f.Add([]byte(kallsymsMark), uint64(0))
	f.Fuzz(func(t *testing.T, data []byte, addr uint64) {
		for _, data := range [][]byte{data, object.Seal(slices.Clone(data), len(kallsymsMark))} {
			if kept := parseKallsyms(data); kept != nil {
				kept.find(addr)
				for i := range kept.ranges {
					kept.symbol(i)
				}
			}
		}
	})
}
