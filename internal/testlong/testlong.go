// Package testlong says whether tests run their long trials at full size. Every
// package with tests imports it, so that all take the flag -long:
//
//	go test ./... -long
//
// CYCLESTACK_LONG=1 does the same. The continuous integration sets it; a plain go
// test runs every trial at a smaller size.
package testlong

import (
	"flag"
	"os"
	"runtime/debug"
	"testing"
)

var long = flag.Bool("long", os.Getenv("CYCLESTACK_LONG") == "1", "run the long trials at full size")

// init has garbage collected less often, up to 1 GB: tests are short, and take 5 % less time.
func init() {
	if os.Getenv("CYCLESTACK_LONG") != "1" && os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
		debug.SetMemoryLimit(1 << 30)
	}
}

// Enabled reports whether long trials run at full size.
func Enabled() bool { return *long }

// Size returns the number of trials: full with -long, else short.
func Size(short, full int) int {
	if *long {
		return full
	}
	return short
}

// Only skips a test that has no smaller size unless -long is set.
func Only(t testing.TB) {
	t.Helper()
	if !*long {
		t.Skip("a long trial: it runs with -long")
	}
}

// Alone skips a test that starts no goroutines where the race detector watches: it has nothing
// to find there, and makes the test up to ten times slower.
func Alone(t testing.TB) {
	t.Helper()
	if raceDetector {
		t.Skip("one goroutine has no races")
	}
}
