package perfdata

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"runtime"

	"github.com/klauspost/compress/zstd"
)

// An input is a file's bytes: at random where it can be sought in, else from
// the beginning on.
type input struct {
	at   io.ReaderAt
	size int64 // of the file; -1 for a stream

	stream io.Reader
	read   []byte // the beginning of the stream, as far as it was asked for
	tail   []byte // what followed the data of a stream
	tailAt int64
	close  func()
}

// Limits of what memory holds of a stream before and behind its data, and of a section of a
// file.
const (
	maxPrefix  = 64 << 20
	maxTail    = 64 << 20
	maxSection = 16 << 20
)

var errTooLarge = errors.New("is too large")

// openInput tells whether r can be sought in, and unpacks it if it is
// compressed as a whole.
func openInput(r io.Reader) (*input, error) {
	in := &input{size: -1, stream: r}
	if f, ok := r.(interface {
		io.ReaderAt
		io.Seeker
	}); ok {
		if size, err := f.Seek(0, io.SeekEnd); err == nil {
			in.at, in.size, in.stream = f, size, nil
			if _, err := f.Seek(0, io.SeekStart); err != nil {
				return nil, err
			}
		}
	}
	head, err := in.head(4)
	if err != nil {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(head, gzipMagic):
		z, err := gzip.NewReader(in.from(0, -1))
		if err != nil {
			return nil, err
		}
		return &input{size: -1, stream: z}, nil
	case bytes.HasPrefix(head, zstdMagic):
		z, err := zstd.NewReader(in.from(0, -1), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, err
		}
		return &input{size: -1, stream: z, close: z.Close}, nil
	}
	return in, nil
}

var (
	gzipMagic = []byte{0x1f, 0x8b, 8}
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
)

// head returns the first n bytes, or fewer if there are fewer.
func (in *input) head(n int64) ([]byte, error) {
	if in.at != nil {
		b := make([]byte, min(n, in.size))
		m, err := in.at.ReadAt(b, 0)
		if err == io.EOF {
			err = nil
		}
		return b[:m], err
	}
	if n > maxPrefix {
		return nil, errTooLarge
	}
	if missing := n - int64(len(in.read)); missing > 0 {
		b := bytes.NewBuffer(in.read)
		_, err := io.CopyN(b, in.stream, missing)
		in.read = b.Bytes()
		if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return nil, err
		}
	}
	return in.read[:min(n, int64(len(in.read)))], nil
}

// hold takes a stream of at most limit bytes into memory, where it can be sought
// in.
func (in *input) hold(limit int64) error {
	b, err := in.head(limit + 1)
	if err != nil || int64(len(b)) > limit {
		return err
	}
	in.at, in.size, in.stream, in.read = bytes.NewReader(b), int64(len(b)), nil, nil
	return nil
}

// errSeek says that a stream would have to be sought in.
var errSeek = errors.New("lies where a stream cannot be read: save the stream to a file first")

// section returns n bytes at an offset, or fewer if the file ends.
func (in *input) section(off, n uint64) ([]byte, error) {
	if n > maxSection {
		return nil, errTooLarge
	}
	if in.at == nil {
		for _, part := range []struct {
			at int64
			b  []byte
		}{{0, in.read}, {in.tailAt, in.tail}} {
			if from := off - uint64(part.at); off >= uint64(part.at) && from+n <= uint64(len(part.b)) {
				return part.b[from : from+n], nil
			}
		}
		return nil, errSeek
	}
	if off > uint64(in.size) {
		return nil, nil
	}
	b := make([]byte, min(n, uint64(in.size)-off))
	m, err := in.at.ReadAt(b, int64(off))
	if err == io.EOF {
		err = nil
	}
	return b[:m], err
}

// from returns what begins at an offset that of a stream has not been passed
// yet. It ends after n bytes unless n is negative.
func (in *input) from(off, n int64) io.Reader {
	if in.at != nil {
		if n < 0 || n > in.size-off {
			n = in.size - off
		}
		return io.NewSectionReader(in.at, off, n)
	}
	r := io.MultiReader(bytes.NewReader(in.read[min(off, int64(len(in.read))):]), in.stream)
	if n >= 0 {
		return io.LimitReader(r, n)
	}
	return r
}

// readTail reads what follows the data of a stream, which ends at off.
func (in *input) readTail(off int64) error {
	b, err := io.ReadAll(io.LimitReader(in.stream, maxTail))
	if known := int64(len(in.read)); off < known {
		b = append(in.read[off:known:known], b...)
	}
	in.tail, in.tailAt = b, off
	return err
}

// A window is the part of the data that is in memory.
type window struct {
	r      io.Reader
	ahead  *ahead // that reads instead of r, or nil
	buf    []byte
	lo, hi int   // what was not taken yet
	base   int64 // offset in the file of buf[0]
	err    error // that r ended with, io.EOF at its end
}

// offset returns where in the file the window begins.
func (w *window) offset() int64 { return w.base + int64(w.lo) }

// need returns at least n bytes, or what there is if there are fewer. They stay
// valid until more is needed than is there.
func (w *window) need(n int) []byte {
	if w.hi-w.lo < n {
		w.fill(n)
	}
	return w.buf[w.lo:w.hi]
}

func (w *window) fill(n int) {
	if w.ahead != nil && w.fillAhead(n) {
		return
	}
	copy(w.buf, w.buf[w.lo:w.hi])
	w.base += int64(w.lo)
	w.lo, w.hi = 0, w.hi-w.lo
	if n > len(w.buf) {
		w.buf = append(w.buf, make([]byte, n-len(w.buf))...)
	}
	empty := 0
	for w.hi < n && w.err == nil {
		m, err := w.r.Read(w.buf[w.hi:])
		// With GOMAXPROCS=1, a goroutine that runs for 10 ms loses its processor in a call of the kernel. Go's
		// monitor then wakes every 70 us for a while: 15,000 times in 842 MB, and 4,000 with this.
		runtime.Gosched()
		w.hi += m
		w.err = err
		if m > 0 {
			empty = 0
		} else if empty++; empty == 100 && err == nil {
			w.err = io.ErrNoProgress
		}
	}
}

// fillAhead is fill with pieces that were read ahead. It returns false if that is not
// possible.
func (w *window) fillAhead(n int) bool {
	if n > pieceRoom {
		w.stopAhead()
		return false
	}
	for w.hi-w.lo < n && w.err == nil {
		from := w.offset()
		w.buf, w.lo, w.hi, w.err = w.ahead.next(w.buf[w.lo:w.hi])
		w.base = from - int64(w.lo)
	}
	return true
}

// stopAhead goes on without reading ahead.
func (w *window) stopAhead() {
	w.r = w.ahead.stop()
	w.ahead = nil
	if w.buf == nil {
		w.buf = make([]byte, pieceSize)
	}
}

// skip passes over n bytes, and returns how many there were.
func (w *window) skip(n uint64) uint64 {
	if have := uint64(w.hi - w.lo); n <= have {
		w.lo += int(n)
		return n
	}
	if w.ahead != nil {
		w.stopAhead()
	}
	done := uint64(w.hi - w.lo)
	w.base += int64(w.hi)
	w.lo, w.hi = 0, 0
	n -= done
	if n > 1<<62 {
		n = 1 << 62
	}
	skipped := w.discard(int64(n))
	w.base += skipped
	return done + uint64(skipped)
}

func (w *window) discard(n int64) int64 {
	if s, ok := w.r.(*io.SectionReader); ok {
		at, _ := s.Seek(0, io.SeekCurrent)
		n = min(n, s.Size()-at)
		s.Seek(n, io.SeekCurrent)
		return n
	}
	m, err := io.CopyN(io.Discard, w.r, n)
	if err != nil {
		w.err = err
	}
	return m
}

// An ahead reads a file ahead of what is taken from it, by other goroutines: reading
// takes as much time as most of what is done with samples.
type ahead struct {
	section *io.SectionReader
	asked   int64    // how far pieces were asked for
	taken   int64    // how far they were taken
	coming  []*piece // in the order of the file
	given   *piece   // the one that was taken last
}

// A piece is a part of a file.
type piece struct {
	buf  []byte // pieceRoom bytes of room, and what was read
	n    int
	err  error
	done chan struct{}
}

const (
	pieceRoom = minBuffer // for what is left of the piece before: less than a record
	pieceSize = 256 << 10 // bytes that are read at a time
	pieces    = 3         // two are being read while one is in use
)

// ask has a piece read.
func (a *ahead) ask(p *piece) {
	at := a.asked
	a.asked += pieceSize
	a.coming = append(a.coming, p)
	go func() {
		p.n, p.err = a.section.ReadAt(p.buf[pieceRoom:], at)
		p.done <- struct{}{}
	}()
}

// next returns the next piece of the file as the bytes of buf from lo to hi. The rest of
// the piece before precedes it. It is valid until the next call. After an error there is
// none.
func (a *ahead) next(rest []byte) (buf []byte, lo, hi int, err error) {
	for a.asked < pieces*pieceSize { // the first
		a.ask(&piece{buf: make([]byte, pieceRoom+pieceSize), done: make(chan struct{}, 1)})
	}
	p := a.coming[0]
	a.coming = append(a.coming[:0], a.coming[1:]...)
	<-p.done
	lo = pieceRoom - len(rest)
	copy(p.buf[lo:], rest)
	if a.given != nil {
		a.ask(a.given)
	}
	a.given = p
	a.taken += int64(p.n)
	return p.buf, lo, pieceRoom + p.n, p.err
}

// stop waits until nothing is being read, and returns what was not taken.
func (a *ahead) stop() io.Reader {
	for _, p := range a.coming {
		<-p.done
	}
	a.coming = nil
	a.section.Seek(a.taken, io.SeekStart)
	return a.section
}
