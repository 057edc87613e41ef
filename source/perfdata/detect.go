package perfdata

import (
	"bytes"
	"compress/gzip"
	"io"

	"github.com/klauspost/compress/zstd"
)

// Detect reports whether content looks like a perf.data file, or like one that
// was compressed as a whole by gzip or zstd. The head is the beginning of a
// file.
func Detect(head []byte) bool {
	var r io.Reader
	switch {
	case bytes.HasPrefix(head, gzipMagic):
		z, err := gzip.NewReader(bytes.NewReader(head))
		if err != nil {
			return false
		}
		r = z
	case bytes.HasPrefix(head, zstdMagic):
		z, err := zstd.NewReader(bytes.NewReader(head), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return false
		}
		defer z.Close()
		r = z
	default:
		return isMagic(head)
	}
	var magic [8]byte
	_, err := io.ReadFull(r, magic[:])
	return err == nil && isMagic(magic[:])
}
