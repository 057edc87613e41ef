package model

import (
	"archive/zip"
	"bytes"
	"embed"
	"io/fs"
	"path"
	"strings"
	"sync"
)

//go:generate go run ../internal/gen/pack -o data/events.zip data/events/amd.csv data/events/arm.csv data/events/core2.csv data/events/intel.csv data/events/power.csv data/events/power7.csv data/events/riscv.csv data/events/unlisted.csv

// The event tables are two thirds of the catalogue's bytes and are read one at
// a time, so the program carries them compressed.

//go:embed data/cpus.toml data/texts.toml data/judgement.toml data/models data/relations data/events.zip
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
	packed, err := fs.ReadFile(data, tablesDir+".zip")
	if err != nil {
		return nil, err
	}
	tables, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	if err != nil {
		return nil, err
	}
	return openLibrary(&withTables{data, tables})
}

// withTables is a library whose event tables are in an archive.
type withTables struct {
	fs.FS
	tables *zip.Reader
}

// Open opens a file of the library.
func (w *withTables) Open(name string) (fs.File, error) {
	switch {
	case name == tablesDir:
		return w.tables.Open(".")
	case strings.HasPrefix(name, tablesDir+"/"):
		return w.tables.Open(path.Base(name))
	}
	return w.FS.Open(name)
}
