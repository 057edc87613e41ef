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
// counted. From then on the heap grows by half between two collections. By Go's own rule it
// doubles, and large inputs take more memory. A command that has set another rule keeps it.
func collectLate() {
	const late, then = 800, 50
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(late)
	object := new(*int) // a pointer, as small objects without one may stay
	runtime.AddCleanup(object, func(percent int) {
		if set := debug.SetGCPercent(percent); set != late {
			debug.SetGCPercent(set)
		}
	}, then)
}
