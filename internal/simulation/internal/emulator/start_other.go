//go:build !linux

package emulator

import "os/exec"

// start starts the emulator.
func start(cmd *exec.Cmd) error { return cmd.Start() }
