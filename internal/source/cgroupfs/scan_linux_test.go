package cgroupfs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestScan: parents come first, at their depth, and only directories are cgroups.
func TestScan(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a/b/c", "a/d", "e"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"cgroup.controllers", "a/cpu.stat", "a/b/cpu.stat"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("usage_usec 5\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("..", filepath.Join(dir, "a", "loop")); err != nil {
		t.Fatal(err)
	}
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		seen := map[string]int{}
		err := r.Scan(func(g *Group) {
			path := g.Path()
			if at := strings.LastIndexByte(path, '/'); at > 0 {
				if _, ok := seen[path[:at]]; !ok {
					t.Errorf("%s comes before its parent", path)
				}
			}
			if !g.Is(path) || g.Is(path+"x") {
				t.Errorf("%s is not itself", path)
			}
			seen[path] = g.Depth
			if c, ok := g.CPU(); ok != (path == "/a" || path == "/a/b") || ok && c.Usage != 5000 {
				t.Errorf("%s: %+v, %v", path, c, ok)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]int{"": 0, "/a": 1, "/a/b": 2, "/a/b/c": 3, "/a/d": 2, "/e": 1}
		for path, depth := range want {
			if got, ok := seen[path]; !ok || got != depth {
				t.Errorf("%q at depth %d, want %d", path, got, depth)
			}
		}
		if len(seen) != len(want) {
			t.Errorf("%v", seen)
		}
	}
	if _, err := Open(t.TempDir()); err == nil {
		t.Error("an empty directory has cgroups")
	}
}
