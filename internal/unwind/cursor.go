package unwind

import "encoding/binary"

// A cursor reads values from a section. Beyond its end, values are 0 and bad is set.
type cursor struct {
	data  []byte
	at    int
	order binary.ByteOrder
	bad   bool
}

// take returns the next n bytes.
func (c *cursor) take(n int) []byte {
	if n < 0 || n > len(c.data)-c.at {
		c.bad, c.at = true, len(c.data)
		return nil
	}
	b := c.data[c.at : c.at+n]
	c.at += n
	return b
}

// number returns an unsigned value of n bytes.
func (c *cursor) number(n int) uint64 {
	b := c.take(n)
	switch len(b) {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(c.order.Uint16(b))
	case 4:
		return uint64(c.order.Uint32(b))
	case 8:
		return c.order.Uint64(b)
	}
	return 0
}

// signed returns a signed value of n bytes.
func (c *cursor) signed(n int) int64 {
	shift := 64 - 8*uint(n)
	return int64(c.number(n)<<shift) >> shift
}

func (c *cursor) u8() byte { return byte(c.number(1)) }

// uleb returns an unsigned LEB128 value. Bits beyond the 64th are dropped.
func (c *cursor) uleb() (v uint64) {
	for shift := uint(0); !c.bad; shift += 7 {
		b := c.u8()
		if shift < 64 {
			v |= uint64(b&0x7f) << shift
		}
		if b&0x80 == 0 {
			break
		}
	}
	return v
}

// sleb returns a signed LEB128 value.
func (c *cursor) sleb() (v int64) {
	for shift := uint(0); !c.bad; {
		b := c.u8()
		if shift < 64 {
			v |= int64(b&0x7f) << shift
		}
		shift += 7
		if b&0x80 == 0 {
			if shift < 64 && b&0x40 != 0 {
				v |= -1 << shift
			}
			break
		}
	}
	return v
}

// text returns the bytes up to the next zero.
func (c *cursor) text() string {
	start := c.at
	for !c.bad && c.u8() != 0 {
	}
	return string(c.data[start:max(start, c.at-1)])
}

// Encodings of pointers in .eh_frame: the low half says how large they are, the high half
// what they are relative to.
const (
	pointerOmitted  = 0xff
	pointerRelative = 0x10 // to the pointer itself
	pointerData     = 0x30 // to the start of .eh_frame_hdr
	pointerIndirect = 0x80
)

// pointer returns an encoded pointer. The section begins at an address; base is what data
// relative pointers are relative to.
func (c *cursor) pointer(encoding byte, address, base uint64, size int) uint64 {
	own := address + uint64(c.at)
	v := uint64(0)
	switch encoding & 0x0f {
	case 0x00:
		v = c.number(size)
	case 0x01:
		v = c.uleb()
	case 0x02:
		v = c.number(2)
	case 0x03:
		v = c.number(4)
	case 0x04:
		v = c.number(8)
	case 0x09:
		v = uint64(c.sleb())
	case 0x0a:
		v = uint64(c.signed(2))
	case 0x0b:
		v = uint64(c.signed(4))
	case 0x0c:
		v = c.number(8)
	default:
		c.bad = true
	}
	switch encoding & 0x70 {
	case 0:
	case pointerRelative:
		v += own
	case pointerData:
		v += base
	default:
		c.bad = true
	}
	if encoding&pointerIndirect != 0 { // the address is elsewhere in memory
		c.bad = true
	}
	return v
}
