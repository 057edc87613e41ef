// Package spe decodes what Arm's Statistical Profiling Extension writes into the AUX area:
// a record for each operation that was sampled, of packets with its address, latencies,
// events and data source.
//
// The format is that of the Arm Architecture Reference Manual (DDI 0487), chapter
// "Statistical Profiling Extension sample record specification".
package spe

import (
	"bufio"
	"encoding/binary"
	"io"
)

// Events are what happened to an operation.
type Events uint64

// The bits of Events.
const (
	Exception Events = 1 << iota
	Retired
	L1Access
	L1Refill
	TLBAccess
	TLBWalk
	NotTaken
	Mispredicted
	LastAccess
	LastMiss
	RemoteAccess
	Misaligned

	L2Access Events = 1 << 19
	L2Miss   Events = 1 << 20
	Modified Events = 1 << 21 // another cache had it, modified
)

// A Class is what sort of operation was sampled.
type Class uint8

// The classes of operations.
const (
	Unknown Class = iota
	Other
	LoadStore
	Branch
)

// A Record is one operation.
type Record struct {
	PC     uint64
	EL     int    // exception level of PC: 0 is user mode
	Target uint64 // of a branch
	Addr   uint64 // of the data, virtual
	Phys   uint64
	Time   uint64 // of the generic timer, in ticks; 0 if it was not recorded

	Total, Issue, Translation uint16 // cycles; see Has
	Has                       Parts

	Events  Events
	Class   Class
	Op      uint8 // the operation's subclass, as in the packet
	Source  uint16
	Context uint32 // thread, as Linux has it in CONTEXTIDR
}

// Parts are those of a record that were there.
type Parts uint8

// The bits of Parts.
const (
	HasPC Parts = 1 << iota
	HasTotal
	HasIssue
	HasTranslation
	HasSource
	HasContext
	HasAddr
	HasPhys
)

// Store reports whether the operation is a store, and not a load.
func (r *Record) Store() bool { return r.Class == LoadStore && r.Op&1 != 0 }

// Load reports whether the operation is a load.
func (r *Record) Load() bool { return r.Class == LoadStore && r.Op&1 == 0 }

// A Decoder reads records.
//
//	d := spe.NewDecoder(aux)
//	for d.Next() {
//		use(d.Record())
//	}
type Decoder struct {
	in  *bufio.Reader
	at  int64
	rec Record

	// Damage: bytes that are no packets, and records that they or the end of the data cut.
	Bad, Cut int64
}

// NewDecoder returns a decoder of a piece of the AUX area from its beginning.
func NewDecoder(in io.Reader) *Decoder {
	return &Decoder{in: bufio.NewReaderSize(in, 64<<10)}
}

// Record returns the current record, which is valid until the next call of Next.
func (d *Decoder) Record() *Record { return &d.rec }

// Next advances to the next record. Bytes that are no packets are passed over, with the
// record that they are in.
func (d *Decoder) Next() bool {
	d.rec = Record{}
	begun := false
	for {
		b, _ := d.in.Peek(longest)
		if len(b) == 0 {
			if begun {
				d.Cut++
			}
			return false
		}
		p := packetOf(b, d.at)
		if p.size == 0 || p.size > len(b) && p.kind != pad {
			d.skip(1)
			d.Bad++
			if begun {
				d.Cut++
			}
			d.rec, begun = Record{}, false
			continue
		}
		d.skip(p.size)
		switch p.kind {
		case pad:
			continue
		case end:
			return true
		case timestamp:
			d.rec.Time = p.value
			return true
		}
		begun = true
		d.rec.take(p)
	}
}

// skip passes over bytes. Alignment can reach behind the end of the data.
func (d *Decoder) skip(n int) {
	k, _ := d.in.Discard(n)
	d.at += int64(k)
}

// A kind is that of a packet.
type kind uint8

const (
	pad kind = iota
	end
	timestamp
	events
	source
	context
	operation
	address
	counter
)

// A packet is a piece of a record.
type packet struct {
	kind  kind
	index uint8
	size  int // bytes, with the header; 0 for what is no packet
	value uint64
}

// longest is the size of the longest packet: two bytes of header and eight of payload.
const longest = 10

// packetOf decodes the packet that b begins with, at an offset from the beginning of the
// data.
func packetOf(b []byte, at int64) packet {
	h := b[0]
	switch {
	case h == 0x00:
		return packet{kind: pad, size: 1}
	case h == 0x01:
		return packet{kind: end, size: 1}
	case h == 0x71:
		return payload(packet{kind: timestamp}, b, 1)
	case h&0xcf == 0x42:
		return payload(packet{kind: events}, b, 1)
	case h&0xcf == 0x43:
		return payload(packet{kind: source}, b, 1)
	case h&0xfc == 0x64:
		return payload(packet{kind: context, index: h & 3}, b, 1)
	case h&0xfc == 0x48:
		return payload(packet{kind: operation, index: h & 3}, b, 1)
	case h&0xfc == 0x20 && len(b) > 1: // a header of two bytes
		high := h & 3 << 3
		switch h = b[1]; {
		case h == 0x00:
			to := int64(1) << (b[0]&0xf + 1)
			return packet{kind: pad, size: int(to - at&(to-1))}
		case h&0xf8 == 0xb0:
			return payload(packet{kind: address, index: high | h&7}, b, 2)
		case h&0xf8 == 0x98:
			return payload(packet{kind: counter, index: high | h&7}, b, 2)
		}
	case h&0xf8 == 0xb0:
		return payload(packet{kind: address, index: h & 7}, b, 1)
	case h&0xf8 == 0x98:
		return payload(packet{kind: counter, index: h & 7}, b, 1)
	}
	return packet{}
}

// payload adds the payload behind a header: 1, 2, 4 or 8 bytes, as the header's bits 4 and 5
// say.
func payload(p packet, b []byte, header int) packet {
	n := 1 << (b[header-1] >> 4 & 3)
	if p.size = header + n; len(b) < p.size {
		p.size = 0
		return p
	}
	var word [8]byte
	copy(word[:], b[header:p.size])
	p.value = binary.LittleEndian.Uint64(word[:])
	return p
}

// take takes a packet into a record.
func (r *Record) take(p packet) {
	switch p.kind {
	case events:
		r.Events |= Events(p.value)
	case source:
		r.Source, r.Has = uint16(p.value), r.Has|HasSource
	case context:
		r.Context, r.Has = uint32(p.value), r.Has|HasContext
	case operation:
		r.Class, r.Op = Unknown, uint8(p.value)
		if p.index < 3 {
			r.Class = Class(p.index + 1)
		}
	case address:
		r.address(p)
	case counter:
		v := uint16(p.value)
		switch p.index {
		case 0:
			r.Total, r.Has = v, r.Has|HasTotal
		case 1:
			r.Issue, r.Has = v, r.Has|HasIssue
		case 2:
			r.Translation, r.Has = v, r.Has|HasTranslation
		}
	}
}

// address takes an address. The upper byte has the security state and the exception level
// of code, and a tag of data.
func (r *Record) address(p packet) {
	const low = 1<<56 - 1
	const high = uint64(0xff) << 56
	v, level := p.value&low, int(p.value>>61&3)
	code := v
	if p.value>>63 != 0 && (level == 1 || level == 2) {
		code |= high // of the kernel
	}
	switch p.index {
	case 0:
		r.PC, r.EL, r.Has = code, level, r.Has|HasPC
	case 1:
		r.Target = code
	case 2:
		if v>>52 == 0xf {
			v |= high
		}
		r.Addr, r.Has = v, r.Has|HasAddr
	case 3:
		r.Phys, r.Has = v, r.Has|HasPhys
	}
}
