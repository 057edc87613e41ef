package ostime

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// The kernel sends a record of each thread that ends to listeners with CAP_NET_ADMIN
// (kernel documentation, accounting/taskstats). It has all that the kernel knew.

// An exitSource reports threads that end. It is the kernel, or a test.
type exitSource interface {
	// drain returns the threads that ended since the last call, in their order. lost is
	// whether records were lost. The list is valid until the next call.
	drain() (list []ending, lost bool, err error)
	close()
}

// An ending is the kernel's record of a thread that has ended.
type ending struct {
	tid, pid int // pid is 0 if the record has no process (before Linux 5.19)
	parent   int // of the process, when the thread ended
	name     string
	lived    time.Duration // from its beginning, to the microsecond
	reading  reading
}

// Where struct taskstats has what is read, see include/uapi/linux/taskstats.h: later
// versions have further fields behind those of earlier ones.
const (
	statsVersion   = 0
	statsQueued    = 24 // cpu_delay_total, ns
	statsDisks     = 40 // blkio_delay_total, ns
	statsRun       = 72 // cpu_run_virtual_total, ns
	statsName      = 80
	statsNameEnd   = 112
	statsTID       = 128
	statsParent    = 132
	statsLived     = 144 // ac_etime, µs
	statsUser      = 152 // µs
	statsSystem    = 160 // µs
	statsVoluntary = 272
	statsGaveWay   = 280
	statsLeast     = 288 // bytes that all versions since 2008 have
	statsProcess   = 368 // ac_tgid, since version 12

	statsOldest      = 6
	statsMoved       = 15 // the one version whose fields are elsewhere
	statsWithProcess = 12
)

// errMoved says that the fields of a record are not where they are known to be.
var errMoved = errors.New("the kernel's records of threads that end are of a form that is not known here")

// parseStats reads a struct taskstats in this machine's byte order.
func parseStats(b []byte) (e ending, err error) {
	if len(b) < statsLeast {
		return e, fmt.Errorf("a record of a thread that ended has %d bytes, and should have %d", len(b), statsLeast)
	}
	order := binary.NativeEndian
	version := order.Uint16(b[statsVersion:])
	if version < statsOldest || version == statsMoved {
		return e, errMoved
	}
	word := func(at int) int { return int(int32(order.Uint32(b[at:]))) }
	span := func(at int, unit time.Duration) time.Duration {
		n := order.Uint64(b[at:])
		if most := uint64(1<<63-1) / uint64(unit); n > most {
			err = errMoved
			return 0
		}
		return time.Duration(n) * unit
	}
	name, _, _ := bytes.Cut(b[statsName:statsNameEnd], []byte{0})
	e = ending{tid: word(statsTID), parent: word(statsParent), name: string(name), lived: span(statsLived, time.Microsecond),
		reading: reading{run: span(statsRun, 1), wait: span(statsQueued, 1), io: span(statsDisks, 1),
			user: span(statsUser, time.Microsecond), system: span(statsSystem, time.Microsecond),
			voluntary: order.Uint64(b[statsVoluntary:]), involuntary: order.Uint64(b[statsGaveWay:]), switches: true}}
	if version >= statsWithProcess && len(b) >= statsProcess+4 {
		e.pid = word(statsProcess)
	}
	if e.tid <= 0 || e.parent < 0 || e.pid < 0 {
		err = errMoved
	}
	return e, err
}

// Netlink's framing, see netlink(7) and include/uapi/linux/genetlink.h.
const (
	messageHead   = 16
	genericHead   = 4
	attributeHead = 4
	attributeType = 0x3fff // without the flags

	messageError = 2 // NLMSG_ERROR, also of an acknowledgement

	aggregatePID = 4 // TASKSTATS_TYPE_AGGR_PID
	typeStats    = 3 // TASKSTATS_TYPE_STATS
)

// errFraming says that a message is not what netlink(7) describes.
var errFraming = errors.New("a message of the kernel's is not what netlink(7) describes")

// messages calls do with the type and the content of each message in a datagram.
func messages(b []byte, do func(kind uint16, content []byte) error) error {
	for len(b) > 0 {
		if len(b) < messageHead {
			return errFraming
		}
		n := int64(binary.NativeEndian.Uint32(b))
		if n < messageHead || n > int64(len(b)) {
			return errFraming
		}
		if err := do(binary.NativeEndian.Uint16(b[4:]), b[messageHead:n]); err != nil {
			return err
		}
		b = b[min(int64(len(b)), aligned(n)):]
	}
	return nil
}

// attributes calls do with the type and the content of each attribute.
func attributes(b []byte, do func(kind uint16, content []byte) error) error {
	for len(b) > 0 {
		if len(b) < attributeHead {
			return errFraming
		}
		n := int64(binary.NativeEndian.Uint16(b))
		if n < attributeHead || n > int64(len(b)) {
			return errFraming
		}
		if err := do(binary.NativeEndian.Uint16(b[2:])&attributeType, b[attributeHead:n]); err != nil {
			return err
		}
		b = b[min(int64(len(b)), aligned(n)):]
	}
	return nil
}

// aligned is a length up to the next part.
func aligned(n int64) int64 { return (n + 3) &^ 3 }

// parseEndings appends the threads that ended according to a datagram. It skips the
// records of processes: they are the sums of those of threads.
func parseEndings(list []ending, b []byte) ([]ending, error) {
	err := messages(b, func(kind uint16, content []byte) error {
		if kind == messageError || len(content) < genericHead {
			return nil
		}
		return attributes(content[genericHead:], func(kind uint16, content []byte) error {
			if kind != aggregatePID {
				return nil
			}
			return attributes(content, func(kind uint16, content []byte) error {
				if kind != typeStats {
					return nil
				}
				e, err := parseStats(content)
				if err == nil {
					list = append(list, e)
				}
				return err
			})
		})
	})
	return list, err
}
