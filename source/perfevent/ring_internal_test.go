//go:build linux

package perfevent

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"testing"
)

// fakeRing returns a ring in memory of its own, with so many bytes of data.
func fakeRing(size int) *ring {
	return &ring{fd: -1, data: make([]byte, size), head: new(uint64), tail: new(uint64)}
}

// put writes to the ring as the kernel does.
func (r *ring) put(b []byte) {
	for i := range b {
		r.data[(*r.head+uint64(i))%uint64(len(r.data))] = b[i]
	}
	*r.head += uint64(len(b))
}

// What is written comes out once and in order, also over the end of the memory.
func TestRing(t *testing.T) {
	r := fakeRing(64)
	s := Sampling{rings: []*ring{r, fakeRing(64)}}
	var want, got bytes.Buffer
	for i, size := range []int{8, 40, 24, 64, 0, 56, 16} {
		b := bytes.Repeat([]byte{byte(i + 1)}, size)
		want.Write(b)
		r.put(b)
		n, err := s.WriteTo(&got)
		if err != nil || n != int64(size) {
			t.Errorf("piece %d: %d bytes, %v, want %d", i, n, err, size)
		}
	}
	if !bytes.Equal(got.Bytes(), want.Bytes()) {
		t.Errorf("got %v, want %v", got.Bytes(), want.Bytes())
	}
	if *r.tail != *r.head {
		t.Errorf("%d bytes are not consumed", *r.head-*r.tail)
	}
}

// What cannot be written stays in the ring.
func TestRingFails(t *testing.T) {
	r := fakeRing(64)
	r.put(make([]byte, 16))
	s := Sampling{rings: []*ring{r}}
	if n, err := s.WriteTo(failing{}); err != io.ErrShortWrite || n != 0 || *r.tail != 0 {
		t.Errorf("%d, %v, tail %d", n, err, *r.tail)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestPagesFor(t *testing.T) {
	page := os.Getpagesize()
	for size, want := range map[int]int{0: defaultRing / page, 1: 1, page: 1, page + 1: 2, 3 * page: 4, 8 * page: 8} {
		if got := pagesFor(size); got != want {
			t.Errorf("%d bytes: %d pages, want %d", size, got, want)
		}
	}
}

// BenchmarkRing empties a ring of samples into a buffer, as a file's is. A sample
// has 56 bytes.
func BenchmarkRing(b *testing.B) {
	r := fakeRing(defaultRing)
	s := Sampling{rings: []*ring{r}}
	record := make([]byte, 56)
	binary.NativeEndian.PutUint16(record[6:], uint16(len(record)))
	for *r.head+uint64(len(record)) < defaultRing {
		r.put(record)
	}
	written := *r.head
	out := buffer{make([]byte, defaultRing)}
	b.SetBytes(int64(written))
	b.ReportAllocs()
	for b.Loop() {
		*r.head = *r.tail + written
		if _, err := s.WriteTo(&out); err != nil {
			b.Fatal(err)
		}
	}
}

// A buffer takes what is written, over what it had.
type buffer struct{ b []byte }

func (f *buffer) Write(p []byte) (int, error) { return copy(f.b, p), nil }
