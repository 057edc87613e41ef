//go:build !unix

package child

import (
	"os"
	"os/exec"
	"time"
)

// contain does nothing: the simulators exist on Unix only.
func contain(*exec.Cmd) {}

// EndRest does nothing.
func EndRest(int, string) {}

// Spent is not known here.
func Spent([]int) time.Duration { return 0 }

// Moved is not known here.
func Moved([]int) int64 { return 0 }

// Resident is not known here.
func Resident(*os.ProcessState) int64 { return 0 }
