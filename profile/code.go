package profile

import (
	"fmt"

	"github.com/cyclestack/cyclestack/internal/object"
)

// Code returns up to a number of bytes of a function's machine code, and Go's name for its
// instruction set. It is an error if the code is in no file.
func (y *Symbolizer) Code(f *Function, most int) (code []byte, arch string, err error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if f.Symbol == "" {
		return nil, "", fmt.Errorf("no function is known in %s", orUnmapped(f.File))
	}
	im := y.image(f.File)
	size := int(min(f.Size, uint64(most)))
	switch {
	case im.object != nil:
		code, err = im.object.Code(f.Addr, size)
		arch = im.object.Arch
	case im.dump != nil:
		code, err = object.ReadAt(im.path, f.Offset, size)
		arch = im.dump.Arch
	default:
		return nil, "", fmt.Errorf("%s: the code of %s is in no file: only its name is known", f.File.Name, f.Symbol)
	}
	if err == nil && len(code) == 0 {
		err = fmt.Errorf("%s has no code for %s: it is a debug file, or truncated", im.status.Path, f.Symbol)
	}
	return code, arch, err
}

func orUnmapped(f *File) string {
	if f == nil {
		return "memory without a mapping"
	}
	return f.Name
}

// Symbol returns the demangled name of the function or variable at an object file's address,
// and the offset in it; "" if there is none.
func (y *Symbolizer) Symbol(f *File, addr uint64) (name string, offset uint64) {
	y.mu.Lock()
	defer y.mu.Unlock()
	s, ok := y.image(f).symbolOf(addr)
	if !ok {
		return "", 0
	}
	return y.demangle(s.Name), addr - s.Addr
}

// symbolOf returns the symbol at an address of the object.
func (im *image) symbolOf(addr uint64) (object.Symbol, bool) {
	switch {
	case im.object != nil:
		if s, ok := im.object.Symbol(addr); ok {
			return s, true
		}
		return im.object.Data(addr)
	case im.table != nil:
		return im.table.find(addr)
	}
	return object.Symbol{}, false
}
