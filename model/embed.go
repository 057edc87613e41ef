package model

import (
	"bytes"
	"embed"
	"io/fs"
	"path"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// The files are compressed, which makes the program 1.8 MB smaller. Every start reads what
// models there are, which is in a file of its own.
//
//go:generate go run ../internal/gen/pack data packed
//go:embed packed
var compressed embed.FS

// headsFile says what models there are.
const headsFile = "heads.txt"

// packedSuffix ends the names of compressed files.
const packedSuffix = ".zst"

// embeddedLibrary is the library that is part of the program.
var embeddedLibrary = sync.OnceValues(func() (*library, error) { return openLibrary(embedded()) })

// embedded returns the files of data.
func embedded() packedFS {
	f, err := fs.Sub(compressed, "packed")
	if err != nil {
		panic(err) // the folder exists
	}
	return packedFS{f}
}

// unpacker decompresses files, one at a time.
var unpacker = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxFileSize))
})

// headsOf has the heads of the models by file. In the file of heads, a line with the name of
// its file between dashes is before each.
var headsOf = sync.OnceValue(func() map[string][]byte {
	all := map[string][]byte{}
	heads, err := embedded().ReadFile(headsFile)
	if err != nil {
		panic(err) // a test reads it
	}
	for _, head := range bytes.Split(heads, []byte("-- "))[1:] {
		name, text, _ := bytes.Cut(head, []byte(" --\n"))
		all[string(name)] = text
	}
	return all
})

// A packedFS has files that are compressed one by one.
type packedFS struct{ packed fs.FS }

// ReadFile returns the text of a file.
func (p packedFS) ReadFile(name string) ([]byte, error) {
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

// Open opens a file.
func (p packedFS) Open(name string) (fs.File, error) {
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

// Stat describes a file or a folder. The size is that of the compressed file.
func (p packedFS) Stat(name string) (fs.FileInfo, error) {
	if path.Ext(name) == "" {
		return fs.Stat(p.packed, name)
	}
	return fs.Stat(p.packed, name+packedSuffix)
}

// ReadDir lists a folder. Compressed files have their names without suffix.
func (p packedFS) ReadDir(name string) ([]fs.DirEntry, error) {
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
