package perfdata

import (
	"bytes"
	"compress/gzip"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/cyclestack/cyclestack/internal/perffile"
)

// Detect reports whether content looks like a perf.data file, also if compressed as a whole by
// gzip or zstd. The head is the beginning of a file.
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

// HoldsSamples reports by the head of a perf.data file whether samples follow, and not
// the counts of perf stat record. It is not decided as long as neither was met.
func HoldsSamples(head []byte) (samples, decided bool) {
	r, err := NewReader(struct{ io.Reader }{bytes.NewReader(head)}, "", Options{})
	if err != nil {
		return true, false
	}
	defer r.Close()
	for r.Next() {
		switch r.Record().(type) {
		case *StatConfig, *Stat, *StatRound:
			return false, true
		case *Sample:
			return true, true
		}
	}
	return !r.Features().Has(perffile.FeatureStat), r.Features().Has(perffile.FeatureStat)
}
