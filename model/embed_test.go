package model

import (
	"io/fs"
	"os"
	"reflect"
	"testing"
)

// TestSize checks that the catalogue adds less than 1.5 MB to the program.
func TestSize(t *testing.T) {
	const most = 1_500_000
	size := int64(0)
	err := fs.WalkDir(compressed, ".", func(_ string, d fs.DirEntry, err error) error {
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

// TestHeads: the index of the models says what the files say.
func TestHeads(t *testing.T) {
	packed, err := openLibrary(embedded())
	if err != nil {
		t.Fatal(err)
	}
	text, err := openLibrary(os.DirFS("data"))
	if err != nil {
		t.Fatal(err)
	}
	if len(packed.sources) < 100 || len(packed.sources) != len(text.sources) {
		t.Fatalf("%d models, %d files", len(packed.sources), len(text.sources))
	}
	for i := range text.sources {
		if got, want := packed.sources[i].ModelInfo, text.sources[i].ModelInfo; !reflect.DeepEqual(got, want) {
			t.Errorf("index %+v, file %+v: go generate ./model", got, want)
		}
	}
}
