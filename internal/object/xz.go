package object

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"hash/crc64"
)

// errXZ is the error of data that is no .xz file, or of a kind that is not supported.
var errXZ = errors.New("is no xz data that can be read")

// Parts of the .xz format (its specification, version 1.2).
const (
	xzMagic      = "\xfd7zXZ\x00"
	xzHeader     = 12
	xzFilterLZMA = 0x21
	xzCheckCRC32 = 1
	xzCheckCRC64 = 4
	mostInflated = 256 << 20
)

// xzChecks are the sizes of checks by their kinds.
var xzChecks = [16]int{0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32, 64, 64, 64}

// inflateXZ decompresses an .xz stream of any number of blocks, whose only filter is LZMA2.
// What is decompressed is its own dictionary, so that memory is bounded by the limit.
func inflateXZ(data []byte, limit int) ([]byte, error) {
	if len(data) < xzHeader || string(data[:6]) != xzMagic {
		return nil, errXZ
	}
	kind := data[7] & 0xf
	check := xzChecks[kind]
	var out []byte
	for at := xzHeader; ; {
		if at >= len(data) {
			return nil, errXZ
		}
		if data[at] == 0 { // the index: the blocks have ended
			return out, nil
		}
		size := (int(data[at]) + 1) * 4
		if size > len(data)-at || !xzBlock(data[at:at+size]) {
			return nil, errXZ
		}
		at += size
		d := lzmaDecoder{in: data[at:], out: out, start: len(out), limit: limit}
		if !d.lzma2() {
			return nil, errXZ
		}
		block := d.out[len(out):]
		used := len(data) - at - len(d.in)
		at += (used + 3) &^ 3
		if at+check > len(data) {
			return nil, errXZ
		}
		switch sum := data[at:]; {
		case kind == xzCheckCRC32 && crc32.ChecksumIEEE(block) != binary.LittleEndian.Uint32(sum),
			kind == xzCheckCRC64 && crc64.Checksum(block, crc64.MakeTable(crc64.ECMA)) != binary.LittleEndian.Uint64(sum):
			return nil, errXZ
		}
		at += check
		out = d.out
	}
}

// xzBlock reports whether a block's header has LZMA2 as its only filter.
func xzBlock(h []byte) bool {
	flags, rest := h[1], h[2:len(h)-4]
	if flags&0x3f != 0 || crc32.ChecksumIEEE(h[:len(h)-4]) != binary.LittleEndian.Uint32(h[len(h)-4:]) {
		return false
	}
	for _, has := range []bool{flags&0x40 != 0, flags&0x80 != 0} { // sizes
		if !has {
			continue
		}
		_, n := binary.Uvarint(rest)
		if n <= 0 {
			return false
		}
		rest = rest[n:]
	}
	return len(rest) >= 3 && rest[0] == xzFilterLZMA && rest[1] == 1
}
