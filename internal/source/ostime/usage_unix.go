//go:build unix

package ostime

import (
	"os"
	"runtime"
	"syscall"
)

// usage takes what getrusage(2) tells of a command and all that it waited for.
func (w *Watch) usage(state *os.ProcessState) {
	u, ok := state.SysUsage().(*syscall.Rusage)
	if !ok || runtime.GOOS != "linux" {
		return
	}
	w.resident = float64(u.Maxrss) * 1024
	w.switches = [2]float64{float64(u.Nvcsw), float64(u.Nivcsw)}
}
