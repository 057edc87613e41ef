package guest

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestImage(t *testing.T) {
	var buf bytes.Buffer
	m := NewImage(&buf)
	m.Add("/init", 0o755, []byte("#!"))
	m.Add("a/b/c", 0o600, []byte("12345"))
	m.Add("a/b/d", 0o644, nil)
	m.AddDevice("dev/console", 5, 1)
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	want := []string{"init 100755 #!", "a 40755 ", "a/b 40755 ", "a/b/c 100600 12345", "a/b/d 100644 ", "dev 40755 ", "dev/console 20600 ", "TRAILER!!! 0 "}
	if diff := cmp.Diff(want, list(t, buf.Bytes())); diff != "" {
		t.Error(diff)
	}

	m = NewImage(&buf)
	m.AddFile("x", filepath.Join(t.TempDir(), "nothing"))
	if err := m.Close(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Close = %v, want that a file does not exist", err)
	}
}

// list reads an image: name, mode and data of each entry.
func list(t *testing.T, b []byte) []string {
	t.Helper()
	var entries []string
	for at := 0; at < len(b); {
		if string(b[at:at+6]) != "070701" {
			t.Fatalf("at %d: %q is no entry", at, b[at:])
		}
		field := func(i int) int {
			n, err := strconv.ParseUint(string(b[at+6+8*i:at+14+8*i]), 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			return int(n)
		}
		mode, size, name := field(1), field(6), field(11)
		start := (at + 110 + name + 3) &^ 3
		entries = append(entries, strings.Join([]string{
			strings.TrimSuffix(string(b[at+110:at+110+name]), "\x00"),
			strconv.FormatInt(int64(mode), 8),
			string(b[start : start+size]),
		}, " "))
		at = (start + size + 3) &^ 3
	}
	return entries
}
