// Package collector says when garbage is collected.
package collector

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"sync/atomic"
)

// room is the memory that a command may use before garbage is collected; 0 for no such rule.
var room atomic.Int64

// Allow lets a command use so many bytes of memory before garbage is collected. If it needs nearly as
// much, the heap grows by an eighth between two collections. With math.MaxInt64 the heap just doubles.
func Allow(bytes int64) {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		room.Store(bytes)
		debug.SetMemoryLimit(bytes)
	}
}

// Late lets the heap grow to 32 MB before garbage is collected, unless the user has
// set that. Most commands end before, and then no collector runs next to a program that is
// counted. From then on the heap grows by half between two collections. With more than 64 MB
// in use it grows by a fifth. By Go's own rule it doubles, and large inputs take more memory.
// The new growth may come late on one processor: until then memory has a limit of 96 MB.
// A command that has set another rule keeps it.
func Late() {
	const late, double, then, large, tight, limit = 800, 100, 50, 64 << 20, 20, 96 << 20
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(late)
	limited := os.Getenv("GOMEMLIMIT") == ""
	if limited {
		debug.SetMemoryLimit(limit)
	}
	afterCollection(late, func() int {
		var m runtime.MemStats
		if room := room.Load(); room > 0 {
			// The next collection is then at twice of what was in use at this one, which may be long ago.
			debug.SetMemoryLimit(math.MaxInt64)
			percent := debug.SetGCPercent(double)
			runtime.ReadMemStats(&m)
			debug.SetGCPercent(percent)
			used := int64(m.NextGC / 2)
			debug.SetMemoryLimit(max(room, used+used/8))
			return double
		}
		if limited {
			if set := debug.SetMemoryLimit(math.MaxInt64); set != limit {
				debug.SetMemoryLimit(set)
			}
		}
		runtime.ReadMemStats(&m)
		if m.HeapAlloc > large {
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
