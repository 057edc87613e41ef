package object

import (
	"debug/elf"
	"strconv"
)

// The encodings of .eh_frame_hdr that linkers write (Linux Standard Base, "The .eh_frame_hdr
// section"): 4 bytes, signed relative to the section, or unsigned.
const (
	ehDataRelative4 = 0x3b
	ehUnsigned4     = 0x03
	ehVersion       = 1
	ehHeader        = 12 // bytes before the table, with such encodings
)

// unwoundMost bounds how many functions the table may have.
const unwoundMost = 1 << 22

// unwound adds the functions that the unwind table knows, by their addresses: a stripped
// program still has that table. Symbols with a size win where both begin at one address. It
// reports whether there were any.
func (o *Object) unwound(t *symbolTable) bool {
	s := o.main.Section(".eh_frame_hdr")
	if s == nil || s.Type == elf.SHT_NOBITS || o.Arch == "ppc64" {
		return false
	}
	data, err := o.main.raw(s)
	if err != nil || len(data) < ehHeader || data[0] != ehVersion || data[2] != ehUnsigned4 || data[3] != ehDataRelative4 {
		return false
	}
	u := o.main.ByteOrder
	n := min(int(u.Uint32(data[8:])), unwoundMost, (len(data)-ehHeader)/8)
	found := false
	for i := range n {
		at := s.Addr + uint64(int64(int32(u.Uint32(data[ehHeader+8*i:]))))
		if !o.isCode(at) {
			continue
		}
		t.addNamed(at, 0, "0x"+strconv.FormatUint(at, 16))
		found = true
	}
	return found
}
