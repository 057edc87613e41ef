package perfdata

import (
	"errors"
	"iter"

	"github.com/klauspost/compress/zstd"
)

// Limits of the memory that decompression takes: the largest window that zstd's
// levels use, and what is decompressed ahead of being read.
const (
	maxWindow = 128 << 20
	maxAhead  = 256 << 10
)

// An unpacker decompresses the payloads of COMPRESSED records. All of them are one zstd stream.
// It is flushed at the end of each record and never ended. So the decoder gets a payload, is
// drained, and stops in the middle of a read until the next. It runs as a coroutine for that.
type unpacker struct {
	resume func() (struct{}, bool)
	stop   func()
	yield  func(struct{}) bool

	in     []byte // not yet given to the decoder
	out    []byte // decompressed
	lo     int    // of out, not yet taken
	hungry bool   // the decoder waits for more of in
	err    error

	given, taken int64 // bytes in all, for Stats
}

var errStopped = errors.New("stopped")

func newUnpacker() *unpacker {
	u := &unpacker{hungry: true}
	u.resume, u.stop = iter.Pull(func(yield func(struct{}) bool) {
		u.yield = yield
		// One block at a time, by this goroutine: the decoder must not read
		// ahead of what it has written.
		d, err := zstd.NewReader(u, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			u.err = err
			return
		}
		defer d.Close()
		_, u.err = d.WriteTo(u)
	})
	return u
}

// feed gives the decoder another payload, after next has returned nil.
func (u *unpacker) feed(b []byte) {
	u.in = b
	u.given += int64(len(b))
	u.hungry = false
}

// Read is what the decoder reads from.
func (u *unpacker) Read(p []byte) (int, error) {
	for len(u.in) == 0 {
		u.hungry = true
		if !u.yield(struct{}{}) {
			return 0, errStopped
		}
	}
	n := copy(p, u.in)
	u.in = u.in[n:]
	return n, nil
}

// Write is what the decoder writes to.
func (u *unpacker) Write(p []byte) (int, error) {
	u.out = append(u.out, p...)
	if len(u.out) > maxAhead && !u.yield(struct{}{}) {
		return 0, errStopped
	}
	return len(p), nil
}

// peek returns at least n decompressed bytes, or what there is if more has to be
// fed first. They are valid until the next call.
func (u *unpacker) peek(n int) []byte {
	for len(u.out)-u.lo < n && !u.hungry && u.err == nil {
		u.out = u.out[:copy(u.out, u.out[u.lo:])]
		u.lo = 0
		if _, ok := u.resume(); !ok {
			break
		}
	}
	return u.out[u.lo:]
}

// endUnpack ends the stream of what was compressed.
func (r *Reader) endUnpack() {
	u := r.packed.unpack
	if u == nil {
		return
	}
	if r.err == nil && len(u.peek(1)) > 0 {
		r.stats.Truncated = r.packed.at // it ends inside a record
	}
	u.stop()
	r.packed.unpack = nil
	r.stats.Compressed += u.given
	r.stats.Decompressed += u.taken
}

// take passes over n bytes that were peeked at.
func (u *unpacker) take(n int) {
	u.lo += n
	u.taken += int64(n)
}
