package perfevent

import (
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A ring is memory that the kernel writes the records of one processor into, as long as
// there is room: see struct perf_event_mmap_page. Its bytes are counted from its
// beginning without end; head and tail are the ends of what was written and of what was
// read.
type ring struct {
	fd         int
	page       []byte // a page of control, and then the data
	data       []byte
	head, tail *uint64
}

// Where the control page has the ends.
const (
	dataHead = 1024
	dataTail = 1032
)

// mapRing gives an event a ring with so many pages of data, a power of two. The
// ring owns the file from then on.
func mapRing(fd, pages int) (*ring, error) {
	size := os.Getpagesize()
	page, err := unix.Mmap(fd, 0, (1+pages)*size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return &ring{fd: fd, page: page, data: page[size:],
		head: (*uint64)(unsafe.Pointer(&page[dataHead])), tail: (*uint64)(unsafe.Pointer(&page[dataTail]))}, nil
}

// take has another event of the same processor write into the ring.
func (r *ring) take(fd int) error {
	return os.NewSyscallError("ioctl", unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_OUTPUT, r.fd))
}

// bounds returns where what was written and not consumed begins and ends. What
// the kernel wrote before it moved the head is seen by who has read the head.
func (r *ring) bounds() (from, to uint64) { return *r.tail, atomic.LoadUint64(r.head) }

// at returns the data from a place to the end of the memory.
func (r *ring) at(place uint64) []byte { return r.data[place%uint64(len(r.data)):] }

// pending returns what lies between two places, in two pieces if it goes over
// the end of the memory.
func (r *ring) pending(from, to uint64) (first, second []byte) {
	first = r.at(from)
	n := to - from
	if n <= uint64(len(first)) {
		return first[:n], nil
	}
	return first, r.data[:n-uint64(len(first))]
}

// consume frees the room of what precedes a place.
func (r *ring) consume(to uint64) { atomic.StoreUint64(r.tail, to) }

func (r *ring) close() {
	_ = unix.Munmap(r.page)
	unix.Close(r.fd)
}
