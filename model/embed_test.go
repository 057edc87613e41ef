package model

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestPackedTables checks that the archive that the program carries holds the
// event tables as they are.
func TestPackedTables(t *testing.T) {
	packed, err := os.ReadFile("data/events.zip")
	if err != nil {
		t.Fatal(err)
	}
	archive, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("data/events/*.csv")
	if err != nil || len(files) == 0 {
		t.Fatalf("no event tables (%v)", err)
	}
	if len(archive.File) != len(files) {
		t.Errorf("%d tables in the archive, %d in the folder: go generate ./model, with all of them in its directive", len(archive.File), len(files))
	}
	for _, name := range files {
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := archive.Open(filepath.Base(name))
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
	for _, root := range []string{"data/models", "data/relations", "data/cpus.toml", "data/texts.toml", "data/events.zip"} {
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
