package output

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestWriteDir: a directory is replaced as one, with its mode, through links. An error leaves
// all as it was.
func TestWriteDir(t *testing.T) {
	top := t.TempDir()
	dir, files := filepath.Join(top, "tables"), []string{"a", "b"}
	write := func(name, text string, end error, inputs ...string) error {
		return WriteDir(name, files, func(to map[string]io.Writer) error {
			for _, file := range files {
				if _, err := io.WriteString(to[file], file+text); err != nil {
					return err
				}
			}
			return end
		}, inputs...)
	}
	holds := func(text string) {
		t.Helper()
		for _, file := range files {
			if got, err := os.ReadFile(filepath.Join(dir, file)); err != nil || string(got) != file+text {
				t.Errorf("%s has %q, %v, want %q", file, got, err, file+text)
			}
		}
		if list, err := os.ReadDir(top); err != nil || len(list) > 2 {
			t.Errorf("left are %v, %v", list, err)
		}
	}
	if err := write(dir, "1", errors.New("x")); err == nil {
		t.Error("no error")
	}
	if list, _ := os.ReadDir(top); len(list) != 0 {
		t.Errorf("after an error there is %v", list)
	}
	if err := write(dir, "1", nil); err != nil {
		t.Fatal(err)
	}
	holds("1")
	if err := errors.Join(os.Chmod(dir, 0o750), os.Symlink("tables", filepath.Join(top, "link"))); err != nil {
		t.Fatal(err)
	}
	before, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer before.Close()
	if err := write(filepath.Join(top, "link"), "2", nil); err != nil {
		t.Fatal(err)
	}
	holds("2")
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if list, _ := before.Readdirnames(-1); runtime.GOOS == "linux" && len(list) > 0 {
		t.Errorf("the files were replaced one after the other: the old directory has %v", list)
	}
	if err := write(dir, "3", errors.New("x")); err == nil {
		t.Error("no error")
	}
	holds("2")

	// What else is in it stays.
	mine := filepath.Join(dir, "mine")
	if err := os.WriteFile(mine, []byte("m"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := write(dir, "4", nil); err != nil {
		t.Fatal(err)
	}
	holds("4")
	if _, err := os.Stat(mine); err != nil {
		t.Error(err)
	}
	for _, tt := range []struct{ name, input, want string }{
		{mine, "", "no directory"}, {dir, filepath.Join(dir, "a"), "also the input"}, {filepath.Join(top, "no", "such"), "", "cannot write"},
	} {
		if err := write(tt.name, "5", nil, tt.input); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
	holds("4")
}
