// Command pack puts folders of the catalogue into one compressed archive, which
// is what the program carries: event tables and relations are most of its bytes
// and shrink to a tenth. The files themselves stay in the repository to be read.
//
// It is run by go generate in the package model. The archive depends on nothing
// but the files: names in order, no times.
package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
)

func main() {
	out := flag.String("o", "", "the archive to write")
	flag.Parse()
	if *out == "" || flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: pack -o ARCHIVE FOLDER…")
		os.Exit(2)
	}
	if err := run(*out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func run(out string, folders []string) error {
	data, err := pack(folders)
	if err != nil {
		return err
	}
	return os.WriteFile(out, data, 0o666)
}

// pack returns an archive of the files in folders, under the folder's name and
// theirs.
func pack(folders []string) ([]byte, error) {
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	w.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.BestCompression)
	})
	for _, folder := range folders {
		files, err := os.ReadDir(folder) // by name
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			if err := add(w, folder, file.Name()); err != nil {
				return nil, err
			}
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

func add(w *zip.Writer, folder, name string) error {
	data, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		return err
	}
	f, err := w.CreateHeader(&zip.FileHeader{Name: path.Join(filepath.Base(folder), name), Method: zip.Deflate})
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return err
}
