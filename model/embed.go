package model

import (
	"bytes"
	"embed"
	"sync"

	"github.com/cyclestack/cyclestack/internal/packed"
)

// The files are compressed, which makes the program 1.8 MB smaller. Every start reads what
// models there are, which is in a file of its own.
//
//go:generate go run ../internal/gen/pack data packed
//go:embed packed
var compressed embed.FS

// headsFile says what models there are.
const headsFile = "heads.txt"

// embeddedLibrary is the library that is part of the program.
var embeddedLibrary = sync.OnceValues(func() (*library, error) { return openLibrary(embedded()) })

// embedded returns the files of data.
func embedded() packed.FS { return packed.New(compressed, "packed") }

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
