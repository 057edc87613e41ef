package profile

import (
	"encoding/binary"

	"github.com/cyclestack/cyclestack/internal/unwind"
)

// Unwind returns how the caller of the code at a place is found, and the place's address in
// its file. The row is nil if no file says it.
func (y *Symbolizer) Unwind(p Place) (row *unwind.Row, addr uint64) {
	y.mu.Lock()
	defer y.mu.Unlock()
	im := y.image(p.File)
	if im.object == nil {
		return nil, 0
	}
	addr = im.addr(p)
	return im.object.Unwind(addr), addr
}

// Word returns the 8 bytes at a place in a file that is loaded. It is not ok for a place that
// is in no file, or behind its end.
func (y *Symbolizer) Word(p Place) (v uint64, ok bool) {
	if p.File == nil || p.File.kind != kindBinary {
		return 0, false
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	im := y.image(p.File)
	if im.object == nil {
		return 0, false
	}
	b, err := im.object.Code(im.addr(p), 8)
	if err != nil || len(b) < 8 {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b), true
}
