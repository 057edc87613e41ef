package perfdata

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
)

// A cursor takes fields off a record or section, in either byte order. What is
// asked for and is not there is zero, and sets short.
type cursor struct {
	b     []byte
	big   bool
	short bool
}

func (c *cursor) bytes(n uint64) []byte {
	if n > uint64(len(c.b)) {
		c.short = true
		c.b = nil
		return nil
	}
	b := c.b[:n:n]
	c.b = c.b[n:]
	return b
}

func (c *cursor) skip(n uint64) { c.bytes(n) }

func (c *cursor) u8() uint8 {
	if b := c.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (c *cursor) u16() uint16 {
	if b := c.bytes(2); b != nil {
		return get16(b, c.big)
	}
	return 0
}

func (c *cursor) u32() uint32 {
	if b := c.bytes(4); b != nil {
		return get32(b, c.big)
	}
	return 0
}

func (c *cursor) u64() uint64 {
	if b := c.bytes(8); b != nil {
		return get64(b, c.big)
	}
	return 0
}

// text takes the rest as a string that a zero byte ends.
func (c *cursor) text() []byte {
	b := untilZero(c.b)
	c.b = nil
	return b
}

// str takes a string of a header section: its padded length, then the bytes.
func (c *cursor) str() string { return string(untilZero(c.bytes(uint64(c.u32())))) }

// count takes the number of elements that follow, each of at least size bytes.
// It is 0, and the cursor short, if there cannot be as many.
func (c *cursor) count(n uint64, size int) int {
	if n > uint64(len(c.b)/size) {
		c.short = true
		c.b = nil
		return 0
	}
	return int(n)
}

func untilZero(b []byte) []byte {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		return b[:i]
	}
	return b
}

func get16(b []byte, big bool) uint16 {
	v := binary.LittleEndian.Uint16(b)
	if big {
		v = bits.ReverseBytes16(v)
	}
	return v
}

func get32(b []byte, big bool) uint32 {
	v := binary.LittleEndian.Uint32(b)
	if big {
		v = bits.ReverseBytes32(v)
	}
	return v
}

func get64(b []byte, big bool) uint64 {
	v := binary.LittleEndian.Uint64(b)
	if big {
		v = bits.ReverseBytes64(v)
	}
	return v
}

// bitfield takes width bits out of a C bit-field of 64 bits; pos is the sum of the widths
// before. Compilers for big-endian machines allot them from the top.
func bitfield(v uint64, pos, width int, big bool) uint64 {
	if big {
		pos = 64 - pos - width
	}
	return v >> pos & (1<<width - 1)
}

// Words are 64-bit values of a record: a callchain, registers.
type Words struct {
	b   []byte
	big bool
}

// Len returns how many there are.
func (w Words) Len() int { return len(w.b) / 8 }

// At returns one of them. It panics if i is out of range.
func (w Words) At(i int) uint64 { return get64(w.b[8*i:], w.big) }

// AppendTo appends them to dst.
func (w Words) AppendTo(dst []uint64) []uint64 {
	b := w.b
	if w.big {
		for ; len(b) >= 8; b = b[8:] {
			dst = append(dst, binary.BigEndian.Uint64(b))
		}
		return dst
	}
	for ; len(b) >= 8; b = b[8:] {
		dst = append(dst, binary.LittleEndian.Uint64(b))
	}
	return dst
}

func (c *cursor) float() float64 { return math.Float64frombits(c.u64()) }
