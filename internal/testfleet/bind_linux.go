package testfleet

import (
	"os/exec"
	"syscall"
)

// bind makes a program end when this one does.
func bind(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
