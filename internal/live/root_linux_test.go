package live

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestRoot reads files of the kernel's, also again and again, as package os does.
func TestRoot(t *testing.T) {
	root := Root()
	for range 3 {
		for _, name := range []string{"proc/version", "proc/sys/kernel/ostype", "proc/self/comm", "sys/devices/system/cpu/online"} {
			want, err := os.ReadFile("/" + name)
			if err != nil {
				t.Skip(err)
			}
			got, err := fs.ReadFile(root, name)
			if err != nil || string(got) != string(want) {
				t.Errorf("%s: %q, %v; want %q", name, got, err, want)
			}
		}
		if _, err := root.Open("proc/no-such-file"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a file that is not there: %v", err)
		}
		if _, err := root.Open("../etc"); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("a path that is none: %v", err)
		}
		f, err := root.Open("proc/sys/kernel")
		if err != nil {
			t.Fatal(err)
		}
		entries, err := f.(fs.ReadDirFile).ReadDir(-1)
		if err != nil || len(entries) == 0 {
			t.Errorf("a directory has %d entries, %v", len(entries), err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestRootChanges: a file that is kept open says what is in it now, and by small
// pieces too.
func TestRootChanges(t *testing.T) {
	dir := t.TempDir()
	name := strings.TrimPrefix(dir, "/") + "/x"
	machine := Root()
	for _, want := range []string{"one", "second", "", "4"} {
		if err := os.WriteFile("/"+name, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := machine.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(io.MultiReader(io.LimitReader(f, 2), f))
		if err != nil || string(got) != want {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
		f.Close()
	}
	if fd := machine.(*root).files[name]; fd == notKept {
		t.Error("a file that is read again and again is not kept open")
	}
}

// TestReread reads a file that is kept open and changes, and lists a directory by names.
func TestReread(t *testing.T) {
	root := Root()
	f, err := root.Open("proc/self/stat")
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	r := f.(interface{ Reread([]byte) (int, error) })
	b := make([]byte, 1<<12)
	for range 2 {
		if n, err := r.Reread(b); err != nil || !strings.HasPrefix(string(b[:n]), strconv.Itoa(os.Getpid())+" (") {
			t.Errorf("%q, %v", b[:n], err)
		}
	}
	d, err := root.Open("proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	names, err := d.(interface{ Readdirnames(int) ([]string, error) }).Readdirnames(-1)
	if err != nil || !slices.Contains(names, strconv.Itoa(os.Getpid())) {
		t.Errorf("%q, %v", names, err)
	}
	if _, err := f.(interface{ Readdirnames(int) ([]string, error) }).Readdirnames(-1); err == nil {
		t.Error("a file has entries")
	}
}
