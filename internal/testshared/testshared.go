// Package testshared finds the project's shared reference material: recordings
// with known truth, vendor data, independent expected values. It is next to the
// repository and not in it. Only tests need it, and they are skipped without it.
package testshared

import (
	"os"
	"path/filepath"
	"testing"
)

// Repository is the root of the repository: the directory of go.mod above that of the
// package whose tests run. Where sources are compiled with -trimpath, runtime.Caller has
// no directories.
var Repository = func() string {
	dir, err := os.Getwd()
	for err == nil && dir != filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		dir = filepath.Dir(dir)
	}
	return "."
}()

// Dir returns the path of elem under the shared folder. Where there is none it
// skips the test, or fails it if CYCLESTACK_REQUIRE_SHARED is 1 (as in CI).
func Dir(t testing.TB, elem ...string) string {
	t.Helper()
	path := filepath.Join(append([]string{Repository, "..", "shared"}, elem...)...)
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("CYCLESTACK_REQUIRE_SHARED") == "1" {
			t.Fatalf("the shared reference material is required: %s", filepath.Join(elem...))
		}
		t.Skipf("needs the shared reference material (%s) next to the repository", filepath.Join(elem...))
	}
	return path
}
