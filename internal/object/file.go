package object

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"fmt"
	"io"
	"os"
	"runtime/debug"
)

// An elfFile is a mapped ELF file.
type elfFile struct {
	*elf.File
	path string
	data []byte // the whole file, mapped
	free func() error

	mapped bool   // and not in memory that is the caller's
	state  string // of the file when it was mapped; "" if that is not known
}

// maxFile is the largest file that is opened. No address space has more.
const maxFile = 1 << 40

// openELF maps and opens a file.
func openELF(path string) (*elfFile, error) {
	f, info, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size := info.Size()
	if size > maxFile {
		return nil, fmt.Errorf("%s: %d bytes are too many", path, size)
	}
	data, free, err := mapFile(f, size)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot be mapped: %w", path, err)
	}
	e, err := newELF(path, data)
	if err != nil {
		free()
		return nil, err
	}
	e.free, e.mapped, e.state = free, true, stateOf(info)
	return e, nil
}

// newELF opens a file that is in memory.
func newELF(path string, data []byte) (*elfFile, error) {
	e := &elfFile{path: path, data: data, free: func() error { return nil }}
	err := distrust("the ELF headers", func() (err error) {
		e.File, err = elf.NewFile(bytes.NewReader(data))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return e, nil
}

// Close unmaps the file.
func (f *elfFile) Close() error { return f.free() }

// unload gives up the file's memory until it is looked at again.
func (f *elfFile) unload() {
	if f != nil && f.mapped {
		unload(f.data)
	}
}

// has says whether the file has the contents of a section.
func (f *elfFile) has(name string) bool {
	s := f.Section(name)
	return s != nil && s.Type != elf.SHT_NOBITS && s.Size > 0
}

// bytes returns a part of the file, which must not be changed.
func (f *elfFile) bytes(offset, size uint64) ([]byte, error) {
	if offset > uint64(len(f.data)) || size > uint64(len(f.data))-offset {
		return nil, fmt.Errorf("%s: %d bytes at %#x are beyond the end of the file", f.path, size, offset)
	}
	return f.data[offset : offset+size : offset+size], nil
}

// raw returns the contents of a section as they are in the file.
func (f *elfFile) raw(s *elf.Section) ([]byte, error) {
	if s.Type == elf.SHT_NOBITS {
		return nil, nil
	}
	return f.bytes(s.Offset, s.FileSize)
}

// Compressed sections may become this many times as large, and at least
// smallSection. What compilers write becomes some 3 to 20 times as large.
const (
	maxInflation = 64
	smallSection = 16 << 20
)

// contents returns the contents of a section, decompressed, or nil if the file
// has no such section.
func (f *elfFile) contents(name string) ([]byte, error) {
	s := f.Section(name)
	old := false
	if s == nil && len(name) > 1 { // before SHF_COMPRESSED, .zdebug_info
		s = f.Section(".z" + name[1:])
		old = s != nil
	}
	if s == nil || s.Type == elf.SHT_NOBITS {
		return nil, nil
	}
	if s.Flags&elf.SHF_COMPRESSED == 0 && !old {
		return f.raw(s)
	}
	limit := max(s.FileSize*maxInflation, smallSection)
	if old {
		return f.inflateOld(s, limit)
	}
	if s.Size > limit {
		return nil, fmt.Errorf("%s: section %s: %d bytes out of %d are not credible", f.path, name, s.Size, s.FileSize)
	}
	packed, err := f.packed(s)
	data := make([]byte, s.Size)
	if err == nil {
		_, err = io.ReadFull(packed, data)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: section %s: %w", f.path, name, err)
	}
	f.unloadSection(s)
	return data, nil
}

// packed returns a reader of a section's contents. zlib's takes its bytes from memory, without a
// buffer between.
func (f *elfFile) packed(s *elf.Section) (io.Reader, error) {
	head := 24
	if f.Class == elf.ELFCLASS32 {
		head = 12
	}
	data, err := f.raw(s)
	if err != nil || len(data) < head || elf.CompressionType(f.ByteOrder.Uint32(data)) != elf.COMPRESS_ZLIB {
		return s.Open(), err
	}
	return zlib.NewReader(bytes.NewReader(data[head:]))
}

// unloadSection gives up the memory of a section that was decompressed.
func (f *elfFile) unloadSection(s *elf.Section) {
	page := uint64(os.Getpagesize())
	from, to := (s.Offset+page-1)&^(page-1), (s.Offset+s.FileSize)&^(page-1)
	if f.mapped && from < to {
		unload(f.data[from:to])
	}
}

// A faultError is the error of reading a mapped file after the file was truncated.
type faultError interface {
	error
	Addr() uintptr
}

// protect calls f, which reads a mapped file. If the file becomes shorter meanwhile, it
// returns an error; the program would end otherwise.
func protect(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch r := recover().(type) {
		case nil:
		case faultError:
			err = fmt.Errorf("the file has changed while it was read: %w", r)
		default:
			panic(r)
		}
	}()
	return f()
}

// distrust calls f, which gives contents of a file to packages that may panic on unforeseen
// contents.
func distrust(what string, f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s cannot be read: %v", what, r)
		}
	}()
	return f()
}
