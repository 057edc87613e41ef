package model

import (
	"archive/zip"
	"bytes"
	"embed"
	"io/fs"
	"strings"
	"sync"
)

// What is read from the catalogue by every run of the program, and in parts, is
// made ready: the processors, the heads of the models, what is said and judged of
// nodes, and the model that is part of every stat, are tables of the program
// (prepared.go), which cost nothing to open. Event
// tables and relations are most of the catalogue's bytes and are read when they are
// needed, so the program carries them compressed.

//go:generate go run ../internal/gen/pack -o data/packed.zip data/events data/relations
//go:generate go test -run TestPrepared -update

//go:embed data/models data/packed.zip
var embedded embed.FS

// osTimeFile is the model that is part of every stat.
const osTimeFile = modelsDir + "/os-time.toml"

// tablesDir is the folder of the event tables in a library.
const tablesDir = "events"

// embeddedLibrary is the library that is part of the program.
var embeddedLibrary = sync.OnceValues(openEmbedded)

func openEmbedded() (*library, error) {
	data, err := fs.Sub(embedded, "data")
	if err != nil {
		return nil, err
	}
	lib := newLibrary(&withPacked{data, sync.OnceValues(openPacked)})
	lib.cpus, lib.sources = preparedCPUs, preparedSources
	lib.texts = func() (texts, error) { return preparedTexts, nil }
	lib.judgement = func() (*judgement, error) { return &preparedJudgement, nil }
	lib.prepared = &preparedOSTime
	return lib, nil
}

func openPacked() (*zip.Reader, error) {
	archive, err := embedded.ReadFile("data/packed.zip")
	if err != nil {
		return nil, err
	}
	return zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
}

// withPacked is a library of which some folders are in an archive.
type withPacked struct {
	fs.FS
	packed func() (*zip.Reader, error)
}

// Open opens a file of the library.
func (w *withPacked) Open(name string) (fs.File, error) {
	switch folder, _, _ := strings.Cut(name, "/"); folder {
	case tablesDir, relationsDir:
		packed, err := w.packed()
		if err != nil {
			return nil, err
		}
		return packed.Open(name)
	}
	return w.FS.Open(name)
}
