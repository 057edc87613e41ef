package kept_test

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/cyclestack/cyclestack/internal/kept"
)

// TestIndexes: what is written is read again, by names that are build ids, and what was not
// used for longest goes.
func TestIndexes(t *testing.T) {
	top := t.TempDir()
	x := kept.NewIndexes(func() (string, error) { return top, nil })
	dir := filepath.Join(top, "cyclestack", "indexes")
	x.Write("abc1", []byte("one"))
	x.Write("abc1", []byte("two"))
	x.Write("../abc2", []byte("three"))
	if got := x.Read("abc1", 0, math.MaxInt); string(got) != "two" {
		t.Errorf("read %q", got)
	}
	for _, part := range []struct {
		at   int64
		most int
		want string
	}{{1, 1, "w"}, {1, 9, "wo"}, {0, 0, ""}, {3, 1, ""}, {-1, 1, ""}} {
		if got := x.Read("abc1", part.at, part.most); string(got) != part.want {
			t.Errorf("%d bytes from %d: read %q, want %q", part.most, part.at, got, part.want)
		}
	}
	if mkfifo, err := exec.LookPath("mkfifo"); err == nil && exec.Command(mkfifo, filepath.Join(dir, "abc2")).Run() == nil {
		defer time.AfterFunc(10*time.Second, func() { panic("a pipe is waited for") }).Stop()
	}
	for _, name := range []string{"abc2", "../abc2", "", "abc1/"} {
		if got := x.Read(name, 0, math.MaxInt); got != nil {
			t.Errorf("%q: read %q", name, got)
		}
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory: %v, %v", info, err)
	}
	large := bytes.Repeat([]byte{1}, 40<<20)
	for i := range 4 {
		name := fmt.Sprintf("f%d", i)
		x.Write(name, large)
		when := time.Now().Add(time.Duration(i-10) * time.Minute)
		if err := os.Chtimes(filepath.Join(dir, name), when, when); err != nil {
			t.Fatal(err)
		}
	}
	x.Write("abc3", []byte("four"))
	for name, want := range map[string]bool{"f0": false, "f1": true, "f2": true, "f3": true, "abc3": true} {
		if got := x.Read(name, 0, math.MaxInt) != nil; got != want {
			t.Errorf("%s is there: %v, want %v", name, got, want)
		}
	}
	x.Write("f4", bytes.Repeat([]byte{1}, 65<<20))
	if x.Read("f4", 0, math.MaxInt) != nil {
		t.Error("an index that is too large was kept")
	}
}

// TestNoIndexes: without a cache directory nothing is kept, and nothing fails.
func TestNoIndexes(t *testing.T) {
	for _, cache := range []func() (string, error){nil, func() (string, error) { return "", os.ErrNotExist }, func() (string, error) { return "/dev/null", nil }} {
		x := kept.NewIndexes(cache)
		x.Write("abc", []byte("one"))
		if got := x.Read("abc", 0, math.MaxInt); got != nil {
			t.Errorf("read %q", got)
		}
	}
}
