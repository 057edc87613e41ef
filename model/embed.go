package model

import (
	"bytes"
	"embed"
	"io/fs"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// The large files are read seldom and in part: they are compressed, which makes the
// program 0.8 MB smaller. What every start reads is not.
//
//go:generate go run ../internal/gen/pack data packed
var (
	//go:embed data/*.toml data/models
	plain embed.FS
	//go:embed packed
	compressed embed.FS
)

// packedSuffix ends the names of compressed files.
const packedSuffix = ".zst"

// embeddedLibrary is the library that is part of the program.
var embeddedLibrary = sync.OnceValues(func() (*library, error) { return openLibrary(embedded()) })

// embedded returns the files of data, compressed or not.
func embedded() fs.FS { return packedFS{sub(plain, "data"), sub(compressed, "packed")} }

// sub returns a folder of embedded files, which exists.
func sub(files embed.FS, dir string) fs.FS {
	f, err := fs.Sub(files, dir)
	if err != nil {
		panic(err)
	}
	return f
}

// unpacker decompresses files, one at a time.
var unpacker = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxFileSize))
})

// A packedFS has the files of plain, and those of packed, which are compressed one by one.
// A folder is in one of them.
type packedFS struct{ plain, packed fs.FS }

// isStored reports whether a file or folder is in plain.
func isStored(name string) bool {
	folder, _, _ := strings.Cut(name, "/")
	return folder == modelsDir || folder == "." || strings.HasSuffix(folder, ".toml")
}

// ReadFile returns the text of a file.
func (p packedFS) ReadFile(name string) ([]byte, error) {
	if isStored(name) {
		return fs.ReadFile(p.plain, name)
	}
	data, err := fs.ReadFile(p.packed, name+packedSuffix)
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

// Open opens a file or a folder of plain, or a file of packed.
func (p packedFS) Open(name string) (fs.File, error) {
	if isStored(name) {
		return p.plain.Open(name)
	}
	f, err := p.packed.Open(name + packedSuffix)
	if err != nil {
		return nil, err
	}
	text, err := p.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return packedFile{f, bytes.NewReader(text)}, nil
}

// ReadDir lists a folder. Compressed files have their names without suffix.
func (p packedFS) ReadDir(name string) ([]fs.DirEntry, error) {
	if isStored(name) {
		return fs.ReadDir(p.plain, name)
	}
	list, err := fs.ReadDir(p.packed, name)
	for i, e := range list {
		list[i] = packedEntry{e}
	}
	return list, err
}

// A packedFile reads the text of a compressed file.
type packedFile struct {
	fs.File
	text *bytes.Reader
}

func (f packedFile) Read(b []byte) (int, error) { return f.text.Read(b) }

// A packedEntry is a compressed file in a list.
type packedEntry struct{ fs.DirEntry }

func (e packedEntry) Name() string { return strings.TrimSuffix(e.DirEntry.Name(), packedSuffix) }
