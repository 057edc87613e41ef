// Command cyclestack says where a program's CPU cycles went.
package main

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/cyclestack/cyclestack/internal/cli"
)

func main() {
	collectLate()
	os.Exit(cli.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// collectLate lets the heap grow to 32 MB before garbage is collected, unless the user has
// set that. Most commands end before, and then no collector runs next to a program that is
// counted. From then on the heap grows by half between two collections. With more than 64 MB
// in use it grows by a fifth. By Go's own rule it doubles, and large inputs take more memory.
// A command that has set another rule keeps it.
func collectLate() {
	const late, then, large, tight = 800, 50, 64 << 20, 20
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(late)
	afterCollection(late, func() int {
		var m runtime.MemStats
		if runtime.ReadMemStats(&m); m.HeapAlloc > large {
			return tight
		}
		return then
	})
}

// afterCollection chooses the heap's growth, a percentage, after each collection. It stops when
// another one was set meanwhile.
func afterCollection(chosen int, choose func() int) {
	object := new(*int) // a pointer, as small objects without one may stay
	runtime.AddCleanup(object, func(chosen int) {
		now := choose()
		if set := debug.SetGCPercent(now); set != chosen {
			debug.SetGCPercent(set)
			return
		}
		afterCollection(now, choose)
	}, chosen)
}
