//go:build !unix

package valgrind

import (
	"os"
	"os/exec"
)

// contain does nothing: valgrind exists on Unix only.
func contain(*exec.Cmd) {}

func endRest(int, string) {}

// Resident is not known here.
func Resident(*os.ProcessState) int64 { return 0 }
