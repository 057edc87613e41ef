package model

import (
	"embed"
	"io/fs"
	"sync"
)

//go:embed data
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
