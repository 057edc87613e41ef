package perfwrite

import (
	"encoding/binary"

	"github.com/cyclestack/cyclestack/internal/perffile"
)

// A builder appends fields to a record or section, in either byte order.
type builder struct {
	b   []byte
	big bool
}

func (b builder) order() binary.AppendByteOrder {
	if b.big {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

func (b builder) u16(v uint16) builder { b.b = b.order().AppendUint16(b.b, v); return b }
func (b builder) u32(v uint32) builder { b.b = b.order().AppendUint32(b.b, v); return b }
func (b builder) u64(v uint64) builder { b.b = b.order().AppendUint64(b.b, v); return b }

func (b builder) bytes(p ...byte) builder { b.b = append(b.b, p...); return b }

// zeros appends n zero bytes.
func (b builder) zeros(n int) builder { b.b = append(b.b, make([]byte, n)...); return b }

// stringAlign is what perf pads the strings of the header to.
const stringAlign = 64

// str appends a string of a header section.
func (b builder) str(s string) builder {
	n := perffile.Align(len(s)+1, stringAlign)
	b = b.u32(uint32(n))
	b.b = append(b.b, s...)
	return b.zeros(n - len(s))
}

func (b builder) strs(list []string) builder {
	b = b.u32(uint32(len(list)))
	for _, s := range list {
		b = b.str(s)
	}
	return b
}
