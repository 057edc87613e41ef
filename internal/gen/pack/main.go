// Command pack compresses the large files of the catalogue, for go generate:
//
//	go run ./internal/gen/pack model/data model/packed
//
// People edit the text; the program has the compressed files. Each text has a file of its
// own, so that two changes meet only in the same text.
package main

import (
	"bytes"
	"flag"
	"log"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
)

// folders has the folders whose files are compressed.
var folders = []string{"events", "relations", "texts"}

func main() {
	log.SetFlags(0)
	log.SetPrefix("pack: ")
	flag.Parse()
	if flag.NArg() != 2 {
		log.Fatal("usage: pack SOURCE OUTPUT")
	}
	for _, folder := range folders {
		if err := pack(filepath.Join(flag.Arg(0), folder), filepath.Join(flag.Arg(1), folder)); err != nil {
			log.Fatal(err)
		}
	}
}

// pack compresses the files of a folder into another, and removes what has no text there.
// A file whose text has not changed stays as it is.
func pack(from, to string) error {
	texts, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o777); err != nil {
		return err
	}
	known := map[string]bool{}
	for _, f := range texts {
		name := f.Name() + ".zst"
		known[name] = true
		text, err := os.ReadFile(filepath.Join(from, f.Name()))
		if err != nil {
			return err
		}
		if old, err := unpack(filepath.Join(to, name)); err == nil && bytes.Equal(old, text) {
			continue
		}
		packed, err := compress(text)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, name), packed, 0o666); err != nil {
			return err
		}
	}
	packed, err := os.ReadDir(to)
	if err != nil {
		return err
	}
	for _, f := range packed {
		if !known[f.Name()] {
			if err := os.Remove(filepath.Join(to, f.Name())); err != nil {
				return err
			}
		}
	}
	return nil
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
