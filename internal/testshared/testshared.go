// Package testshared finds the project's shared reference material: recordings
// with known truth, vendor data, independent expected values. It is next to the
// repository and not in it. Only tests need it, and they are skipped without it.
package testshared

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// Dir returns the path of elem under the shared folder. Where there is none it
// skips the test, or fails it if CYCLESTACK_REQUIRE_SHARED is 1 (as in CI).
func Dir(t testing.TB, elem ...string) string {
	t.Helper()
	_, file, _, _ := runtime.Caller(0)
	root := filepath.Join(filepath.Dir(file), "..", "..", "..", "shared")
	path := filepath.Join(append([]string{root}, elem...)...)
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("CYCLESTACK_REQUIRE_SHARED") == "1" {
			t.Fatalf("the shared reference material is required: %s", filepath.Join(elem...))
		}
		t.Skipf("needs the shared reference material (%s) next to the repository", filepath.Join(elem...))
	}
	return path
}
