// Package packed reads embedded files that were compressed one by one, by internal/gen/pack.
//
//	text, err := packed.FS{Packed: files}.ReadFile("cpus.toml")
package packed

import (
	"bytes"
	"io/fs"
	"path"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// suffix ends the names of compressed files.
const suffix = ".zst"

// textMost bounds the text of a file.
const textMost = 4 << 20

// unpacker decompresses files, one at a time.
var unpacker = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(textMost))
})

// An FS has the files of another, whose files are compressed.
type FS struct{ Packed fs.FS }

// ReadFile returns the text of a file.
func (p FS) ReadFile(name string) ([]byte, error) {
	data, err := fs.ReadFile(p.Packed, name+suffix)
	if err != nil {
		return nil, err
	}
	d, err := unpacker()
	if err != nil {
		return nil, err
	}
	if data, err = d.DecodeAll(data, nil); err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return data, nil
}

// Open opens a file.
func (p FS) Open(name string) (fs.File, error) {
	f, err := p.Packed.Open(name + suffix)
	if err != nil {
		return nil, err
	}
	text, err := p.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return file{f, bytes.NewReader(text)}, nil
}

// Stat describes a file or a folder. The size is that of the compressed file.
func (p FS) Stat(name string) (fs.FileInfo, error) {
	if path.Ext(name) == "" {
		return fs.Stat(p.Packed, name)
	}
	return fs.Stat(p.Packed, name+suffix)
}

// ReadDir lists a folder. Compressed files have their names without suffix.
func (p FS) ReadDir(name string) ([]fs.DirEntry, error) {
	list, err := fs.ReadDir(p.Packed, name)
	for i, e := range list {
		list[i] = entry{e}
	}
	return list, err
}

// A file reads the text of a compressed file.
type file struct {
	fs.File
	text *bytes.Reader
}

func (f file) Read(b []byte) (int, error) { return f.text.Read(b) }

// A entry is a compressed file in a list.
type entry struct{ fs.DirEntry }

func (e entry) Name() string { return strings.TrimSuffix(e.DirEntry.Name(), suffix) }
