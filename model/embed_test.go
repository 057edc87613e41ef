package model

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPacked checks that the archive that the program carries holds the event
// tables and relations as they are.
func TestPacked(t *testing.T) {
	packed, err := os.ReadFile("data/packed.zip")
	if err != nil {
		t.Fatal(err)
	}
	archive, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, folder := range []string{tablesDir, relationsDir} {
		list, err := filepath.Glob("data/" + folder + "/*")
		if err != nil || len(list) == 0 {
			t.Fatalf("no %s (%v)", folder, err)
		}
		files = append(files, list...)
	}
	if len(archive.File) != len(files) {
		t.Errorf("%d files in the archive, %d in the folders: go generate ./model", len(archive.File), len(files))
	}
	for _, name := range files {
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := archive.Open(strings.TrimPrefix(name, "data/"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(f)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s was changed after it was packed: go generate ./model", name)
		}
	}
}

// TestSize checks that the catalogue adds less than 1.5 MB to the program.
func TestSize(t *testing.T) {
	const most = 1_500_000
	size := int64(0)
	for _, root := range []string{"data/models", "data/cpus.toml", "data/texts.toml", "data/judgement.toml", "data/packed.zip"} {
		err := filepath.Walk(root, func(_ string, info os.FileInfo, err error) error {
			if err == nil && !info.IsDir() {
				size += info.Size()
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if size > most {
		t.Errorf("the embedded catalogue is %d bytes, at most %d", size, most)
	}
	t.Logf("%d bytes", size)
}
