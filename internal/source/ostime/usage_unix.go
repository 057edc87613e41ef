//go:build unix

package ostime

import (
	"os"
	"runtime"
	"syscall"
)

// take takes what getrusage(2) says of a command and all that it waited for.
func (x *usage) take(state *os.ProcessState) {
	u, ok := state.SysUsage().(*syscall.Rusage)
	if !ok || runtime.GOOS != "linux" {
		return
	}
	x.resident = float64(u.Maxrss) * 1024
	x.switches = [2]float64{float64(u.Nvcsw), float64(u.Nivcsw)}
}
