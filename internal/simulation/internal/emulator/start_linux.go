package emulator

import (
	"os/exec"
	"runtime"
	"syscall"
)

// start starts the emulator without random addresses, so that two runs have the same caches. QEMU 7.2
// chooses the addresses of a program's memory itself, and 10.2 takes the kernel's. A container may
// forbid it: then they are random.
func start(cmd *exec.Cmd) error {
	const (
		current = 0xffffffff
		fixed   = 0x0040000 // ADDR_NO_RANDOMIZE
	)
	runtime.LockOSThread() // the setting is a thread's, and its children's
	defer runtime.UnlockOSThread()
	before, _, err := syscall.RawSyscall(syscall.SYS_PERSONALITY, current, 0, 0)
	if err == 0 {
		_, _, _ = syscall.RawSyscall(syscall.SYS_PERSONALITY, before|fixed, 0, 0)
		defer func() { _, _, _ = syscall.RawSyscall(syscall.SYS_PERSONALITY, before, 0, 0) }()
	}
	return cmd.Start()
}
