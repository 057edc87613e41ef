package model

import (
	"embed"
	"io/fs"
	"sync"
)

// Event tables and relations are most of the catalogue's bytes: the program carries
// them compressed, to a tenth. The files themselves stay in the repository to be read.

//go:generate sh -c "gzip --best --no-name --keep --force data/events/*.csv data/relations/*.toml data/relations/*.csv"

//go:embed data/*.toml data/texts data/models data/events/*.gz data/relations/*.gz
var embedded embed.FS

// embeddedLibrary is the library that is part of the program.
var embeddedLibrary = sync.OnceValues(openEmbedded)

func openEmbedded() (*library, error) {
	data, err := fs.Sub(embedded, "data")
	if err != nil {
		return nil, err
	}
	return openLibrary(data)
}
