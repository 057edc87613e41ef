// Package packed reads files that are part of the program, and compressed there. People edit the
// text, and go generate compresses it: see internal/gen/pack.
package packed

import (
	"bytes"
	"embed"
	"io/fs"
	"path"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// suffix ends the names of compressed files.
const suffix = ".zst"

// maxSize bounds the text of a file.
const maxSize = 4 << 20

// unpacker decompresses files, one at a time.
var unpacker = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxSize))
})

// An FS has files that are compressed one by one. They have their names without ".zst".
type FS struct{ packed fs.FS }

// New returns the files of a folder of what go:embed has.
func New(files embed.FS, folder string) FS {
	f, err := fs.Sub(files, folder)
	if err != nil {
		panic(err) // the folder exists
	}
	return FS{f}
}

// ReadFile returns the text of a file.
func (p FS) ReadFile(name string) ([]byte, error) {
	data, err := fs.ReadFile(p.packed, name+suffix)
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
	f, err := p.packed.Open(name + suffix)
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
		return fs.Stat(p.packed, name)
	}
	return fs.Stat(p.packed, name+suffix)
}

// ReadDir lists a folder. Compressed files have their names without suffix.
func (p FS) ReadDir(name string) ([]fs.DirEntry, error) {
	list, err := fs.ReadDir(p.packed, name)
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
