// Command pack puts the event tables into one compressed archive, which is what
// the program carries: the tables are two thirds of the catalogue and shrink to
// a tenth. The tables themselves stay in the repository to be read.
//
// It is run by go generate in the package model. The archive depends on nothing
// but the tables: names in order, no times.
package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

func main() {
	out := flag.String("o", "", "the archive to write")
	flag.Parse()
	if *out == "" || flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: pack -o ARCHIVE FILE…")
		os.Exit(2)
	}
	if err := run(*out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func run(out string, files []string) error {
	data, err := pack(files)
	if err != nil {
		return err
	}
	return os.WriteFile(out, data, 0o666)
}

// pack returns an archive of files under their base names.
func pack(files []string) ([]byte, error) {
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b string) int { return bytes.Compare([]byte(filepath.Base(a)), []byte(filepath.Base(b))) })
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	w.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.BestCompression)
	})
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		f, err := w.CreateHeader(&zip.FileHeader{Name: filepath.Base(name), Method: zip.Deflate})
		if err != nil {
			return nil, err
		}
		if _, err := f.Write(data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}
