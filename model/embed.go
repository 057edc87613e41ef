package model

import (
	"archive/zip"
	"bytes"
	"embed"
	"io/fs"
	"strings"
	"sync"
)

//go:generate go run ../internal/gen/pack -o data/packed.zip data/events data/relations

// Event tables and relations are most of the catalogue's bytes and are read when
// they are needed, so the program carries them compressed.

//go:embed data/cpus.toml data/texts.toml data/judgement.toml data/models data/packed.zip
var embedded embed.FS

// tablesDir is the folder of the event tables in a library.
const tablesDir = "events"

// embeddedLibrary is the library that is part of the program.
var embeddedLibrary = sync.OnceValues(openEmbedded)

func openEmbedded() (*library, error) {
	data, err := fs.Sub(embedded, "data")
	if err != nil {
		return nil, err
	}
	archive, err := fs.ReadFile(data, "packed.zip")
	if err != nil {
		return nil, err
	}
	packed, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return nil, err
	}
	return openLibrary(&withPacked{data, packed})
}

// withPacked is a library of which some folders are in an archive.
type withPacked struct {
	fs.FS
	packed *zip.Reader
}

// Open opens a file of the library.
func (w *withPacked) Open(name string) (fs.File, error) {
	switch folder, _, _ := strings.Cut(name, "/"); folder {
	case tablesDir, relationsDir:
		return w.packed.Open(name)
	}
	return w.FS.Open(name)
}
