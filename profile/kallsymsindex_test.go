package profile

import (
	"encoding/binary"
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
		whole := func() (*nameTable, error) { return want, nil }
		got := parseKallsyms(partOf(data), nil)
		if got == nil {
			t.Fatalf("%s: what was kept cannot be read", name)
		}
		for i := range want.ranges { // before all are asked for
			start, size, _ := want.entry(i)
			for _, addr := range []uint64{start - 1, start, start + size - 1, start + size} {
				same(t, name, addr, got, want)
			}
		}
		if got.len() != len(want.ranges) || !reflect.DeepEqual(got.marks, want.marks) {
			t.Errorf("%s: %d ranges and %v, want %d and %v", name, got.len(), got.marks, len(want.ranges), want.marks)
		}
		for _, damaged := range [][]byte{nil, data[:kallsymsHeader], append([]byte("x"), data[1:]...)} {
			if parseKallsyms(partOf(damaged), whole) != nil {
				t.Errorf("%s: a damaged index of %d bytes was used", name, len(damaged))
			}
		}
		for _, damaged := range [][]byte{data[:len(data)-1], append(slices.Clone(data[:len(data)-1]), '?')} {
			got := parseKallsyms(partOf(damaged), whole)
			for i := len(want.ranges) - 1; i >= 0; i -= 100 {
				same(t, name+", whose last block is damaged", want.ranges[i].start, got, want)
			}
			got = parseKallsyms(partOf(damaged), func() (*nameTable, error) { return nil, errHidden })
			first, _ := got.find(want.ranges[0].start)
			if _, ok := got.find(want.ranges[len(want.ranges)-1].start); ok || got.len() != 0 || first.Name == "" && len(want.ranges) > kallsymsBlock {
				t.Errorf("%s: a damaged block was used", name)
			}
		}
	}
}

// partOf returns what reads parts of data.
func partOf(data []byte) func(at int64, n int) []byte {
	return func(at int64, n int) []byte {
		if at > int64(len(data)) {
			return nil
		}
		return data[at:min(int(at)+n, len(data))]
	}
}

// same asks two tables about an address.
func same(t *testing.T, name string, addr uint64, got, want *nameTable) {
	t.Helper()
	g, gotOK := got.find(addr)
	w, wantOK := want.find(addr)
	if g != w || gotOK != wantOK {
		t.Fatalf("%s: %+v at %#x, want %+v", name, g, addr, w)
	}
}

// keptLists keep indexes in memory.
type keptLists map[string][]byte

func (k keptLists) Read(name string, at int64, n int) []byte { return partOf(k[name])(at, n) }
func (k keptLists) Write(name string, data []byte)           { k[name] = data }

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
	if err != nil || again.len() != 1 || again.symbol(0).Name != "marked" {
		t.Errorf("%d ranges, %v: the index was not used", again.len(), err)
	}
}

// FuzzKallsymsIndex has kept lists of any contents, with right checksums or not.
func FuzzKallsymsIndex(f *testing.F) {
	list, err := readKallsyms(strings.NewReader(kallsymsText))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(list.packed(), uint64(0xffffffff91000010))
	f.Add([]byte(kallsymsMark), uint64(0))
	whole := func() (*nameTable, error) { return list, nil }
	f.Fuzz(func(t *testing.T, data []byte, addr uint64) {
		for _, data := range [][]byte{data, sealed(data)} {
			if kept := parseKallsyms(partOf(data), whole); kept != nil {
				kept.find(addr)
				for i := range kept.len() {
					kept.symbol(i)
				}
			}
		}
	})
}

// sealed puts right checksums into a kept list, as far as its parts can be told.
func sealed(data []byte) []byte {
	data = slices.Clone(data)
	if len(data) < kallsymsHeader {
		return data
	}
	size := kallsymsHeader + blocksOf(int(binary.LittleEndian.Uint32(data[kallsymsHeader-4:])))*kallsymsEntry
	if size > len(data) {
		return data
	}
	object.Seal(data[:size], len(kallsymsMark))
	for at, begin := kallsymsHeader+8, size; at < size; at += kallsymsEntry {
		end := int(binary.LittleEndian.Uint32(data[at:]))
		if end < begin || end > len(data) {
			break
		}
		object.Seal(data[begin:end], 0)
		begin = end
	}
	return data
}
