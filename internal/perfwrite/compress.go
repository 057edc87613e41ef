package perfwrite

import (
	"bytes"

	"github.com/klauspost/compress/zstd"

	"github.com/cyclestack/cyclestack/internal/perffile"
)

// A compressor packs the kernel's records into COMPRESSED records. Their contents are one
// stream of zstd, as perf record -z writes it. Each record ends with whole blocks, so that a
// reader has what it holds.
type compressor struct {
	level   int
	enc     *zstd.Encoder
	packed  bytes.Buffer
	plain   []byte
	in, out int64 // bytes so far
}

const (
	// plainMost is how much a record holds. Data that cannot be compressed grows by some
	// bytes, and a record has less than 64 KiB.
	plainMost = 60 << 10
	// compressedLen is the room that perf takes to unpack a record.
	compressedLen = 128 << 10
	maxLevel      = 22
	zstdType      = 1
)

// newCompressor returns a compressor; nil for level 0.
func newCompressor(level int) (*compressor, error) {
	if level == 0 {
		return nil, nil
	}
	c := &compressor{level: min(level, maxLevel), plain: make([]byte, 0, plainMost)}
	var err error
	c.enc, err = zstd.NewWriter(&c.packed, zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(c.level)), zstd.WithEncoderConcurrency(1),
		zstd.WithEncoderCRC(false), zstd.WithWindowSize(1<<20), zstd.WithLowerEncoderMem(true))
	return c, err
}

// pack adds records to the file, in compressed form.
func (w *Writer) pack(p []byte) error {
	for c := w.compressor; len(p) > 0; {
		n := min(len(p), plainMost-len(c.plain))
		c.plain = append(c.plain, p[:n]...)
		p = p[n:]
		if len(c.plain) == plainMost {
			if err := w.flushPacked(); err != nil {
				return err
			}
		}
	}
	return nil
}

// flushPacked writes a record with what waits to be compressed.
func (w *Writer) flushPacked() error {
	c := w.compressor
	if c == nil || len(c.plain) == 0 {
		return nil
	}
	if _, err := c.enc.Write(c.plain); err != nil {
		return err
	}
	if err := c.enc.Flush(); err != nil {
		return err
	}
	size := 8 + c.packed.Len()
	head := builder{big: w.opts.BigEndian}.u32(uint32(perffile.RecordCompressed)).u16(0).u16(uint16(size))
	c.in, c.out = c.in+int64(len(c.plain)), c.out+int64(size)
	c.plain = c.plain[:0]
	if err := w.write(head.b); err != nil {
		return err
	}
	err := w.write(c.packed.Bytes())
	c.packed.Reset()
	return err
}

// feature is what the header says of the compression: version, type, level, ratio, and the
// room for a record.
func (c *compressor) feature(b builder) builder {
	ratio := int64(1)
	if c.out > 0 {
		ratio = max(1, (c.in+c.out/2)/c.out)
	}
	return b.u32(1).u32(zstdType).u32(uint32(c.level)).u32(uint32(ratio)).u32(compressedLen)
}
