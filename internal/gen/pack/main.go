// Command pack compresses the files of the catalogue, for go generate:
//
//	go run ./internal/gen/pack model/data model/packed
//
// The simulated cores are compressed as well.
//
// People edit the text; the program has the compressed files. Each text has a file of its
// own, so that two changes meet only in the same text. One file more, heads.txt, says
// what models there are: every start reads that.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"regexp"

	"github.com/klauspost/compress/zstd"
)

// folders has the folders whose files are compressed, besides those in no folder.
var folders = []string{"events", "models", "relations", "texts"}

// headsFile says what models there are.
const headsFile = "heads.txt"

const suffix = ".zst"

func main() {
	log.SetFlags(0)
	log.SetPrefix("pack: ")
	flag.Parse()
	if flag.NArg() != 2 {
		log.Fatal("usage: pack SOURCE OUTPUT")
	}
	if err := pack(flag.Arg(0), flag.Arg(1)); err != nil {
		log.Fatal(err)
	}
}

// pack compresses the files of the folders below a directory into another, and removes
// what has no text there.
func pack(from, to string) error {
	known := map[string]bool{}
	var heads bytes.Buffer
	for _, folder := range folders {
		if _, err := os.Stat(filepath.Join(from, folder)); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		err := fs.WalkDir(os.DirFS(from), folder, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(filepath.Join(from, name))
			if err != nil {
				return err
			}
			if folder == "models" {
				fmt.Fprintf(&heads, "-- %s --\n%s", name, head(text))
			}
			known[name+suffix] = true
			return update(filepath.Join(to, name+suffix), text)
		})
		if err != nil {
			return err
		}
	}
	if heads.Len() > 0 {
		known[headsFile+suffix] = true
		if err := update(filepath.Join(to, headsFile+suffix), heads.Bytes()); err != nil {
			return err
		}
	}
	files, err := filepath.Glob(filepath.Join(from, "*.toml"))
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if heads.Len() == 0 { // cores: the program needs no comments
			text = comments.ReplaceAll(text, nil)
		}
		name := filepath.Base(file) + suffix
		known[name] = true
		if err := update(filepath.Join(to, name), text); err != nil {
			return err
		}
	}
	return fs.WalkDir(os.DirFS(to), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || known[name] {
			return err
		}
		return os.Remove(filepath.Join(to, name))
	})
}

// comments matches lines that are comments, but for their ends: what follows keeps its line's number.
var comments = regexp.MustCompile(`(?m)^[ \t]*#.*$`)

// key matches the first line of a key that the catalogue's index is made of.
var key = regexp.MustCompile(`^(name|version|title|cpus|extends) = `)

// head returns these keys of a model: they are before its first table.
func head(text []byte) []byte {
	var kept []byte
	keeps := false
	for line := range bytes.Lines(text) {
		switch {
		case line[0] == '[':
			return kept
		case line[0] != ' ' && line[0] != ']': // no more of the last key
			keeps = key.Match(line)
		}
		if keeps {
			kept = append(kept, line...)
		}
	}
	return kept
}

// update writes a compressed file. If it has the text already, it stays as it is.
func update(name string, text []byte) error {
	if old, err := unpack(name); err == nil && bytes.Equal(old, text) {
		return nil
	}
	packed, err := compress(text)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return err
	}
	return os.WriteFile(name, packed, 0o666)
}

func compress(text []byte) ([]byte, error) {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer e.Close()
	return e.EncodeAll(text, nil), nil
}

// unpack returns the text of a compressed file.
func unpack(name string) ([]byte, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.DecodeAll(data, nil)
}
