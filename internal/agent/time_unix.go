//go:build unix

package agent

import (
	"time"

	"golang.org/x/sys/unix"
)

// processTime returns the processor time of this process.
func processTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(unix.TimevalToNsec(u.Utime) + unix.TimevalToNsec(u.Stime))
}
