package model

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestCompressed checks that each compressed file of the program holds the file next
// to it, and that none is missing.
func TestCompressed(t *testing.T) {
	data, err := fs.Sub(embedded, "data")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"events", "relations"} {
		files, err := filepath.Glob("data/" + folder + "/*")
		if err != nil || len(files) == 0 {
			t.Fatalf("no %s (%v)", folder, err)
		}
		for _, file := range files {
			if filepath.Ext(file) == gzipped {
				continue
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got, err := readFile(data, folder+"/"+filepath.Base(file))
			if err != nil {
				t.Errorf("%v: go generate ./model", err)
			} else if !bytes.Equal(got, want) {
				t.Errorf("%s differs from its compressed copy: go generate ./model", file)
			}
		}
	}
}

// TestSize checks that the catalogue adds less than 1.6 MB to the program.
func TestSize(t *testing.T) {
	const most = 1_600_000
	size := int64(0)
	err := fs.WalkDir(embedded, ".", func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if size > most {
		t.Errorf("the embedded catalogue is %d bytes, at most %d", size, most)
	}
	t.Logf("%d bytes", size)
}
