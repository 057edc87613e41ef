// Package child keeps hold of the programs that simulators run.
package child

import (
	"bytes"
	"io"
	"os/exec"
	"time"
)

// outlived is how long is waited for processes that outlive the program and hold its
// standard error: they may never end.
const outlived = 10 * time.Millisecond

// maxSaid bounds the messages that are kept of a program.
const maxSaid = 1 << 12

// Hold makes a command ready to start: all that it starts ends with its context. What it
// says first on standard error is kept: a simulator's own messages, and the program's.
func Hold(cmd *exec.Cmd, stdin io.Reader) (said *bytes.Buffer) {
	if stdin != nil {
		cmd.Stdin = stdin
	}
	said = &bytes.Buffer{}
	cmd.Stderr = &head{said, maxSaid}
	cmd.WaitDelay = outlived
	contain(cmd)
	return said
}

// A head keeps the first bytes of what is written to it.
type head struct {
	to   *bytes.Buffer
	left int
}

func (h *head) Write(b []byte) (int, error) {
	n := min(len(b), h.left)
	h.left -= n
	h.to.Write(b[:n])
	return len(b), nil
}
