package object

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
)

// inflateOld returns the contents of a section .zdebug_…: "ZLIB", the size in
// eight bytes, big endian, and a zlib stream. GNU's tools wrote these before
// SHF_COMPRESSED.
func (f *elfFile) inflateOld(s *elf.Section, limit uint64) ([]byte, error) {
	data, err := f.raw(s)
	if err != nil {
		return nil, err
	}
	const header = 12
	if len(data) < header || string(data[:4]) != "ZLIB" {
		return data, nil
	}
	if size := binary.BigEndian.Uint64(data[4:]); size > limit {
		return nil, fmt.Errorf("%s: section %s: %d bytes out of %d are not credible", f.path, s.Name, size, len(data))
	}
	r, err := zlib.NewReader(bytes.NewReader(data[header:]))
	if err == nil {
		data, err = io.ReadAll(io.LimitReader(r, int64(limit)))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: section %s: %w", f.path, s.Name, err)
	}
	return data, nil
}
