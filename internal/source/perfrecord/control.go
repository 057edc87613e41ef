package perfrecord

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/internal/fault"
)

// A Control is where commands come from while a recording goes on, in perf's spelling:
// fd:IN, fifo:IN, and behind a comma where they are acknowledged.
type Control struct{ kind, in, ack string }

// Set reads a control.
func (c *Control) Set(text string) error {
	kind, files, _ := strings.Cut(text, ":")
	in, ack, _ := strings.Cut(files, ",")
	if kind != "fd" && kind != "fifo" || in == "" {
		return fmt.Errorf("it is fd:IN[,ACK] or fifo:IN[,ACK]")
	}
	for _, name := range []string{in, ack} {
		if n, err := strconv.ParseUint(name, 10, 31); kind == "fd" && name != "" && (err != nil || n < 3) {
			return fmt.Errorf("%s is no file descriptor above 2", name)
		}
	}
	*c = Control{kind, in, ack}
	return nil
}

// open opens both files; ack is nil for none.
func (c *Control) open() (in, ack *os.File, err error) {
	if in, err = c.file(c.in); err != nil || c.ack == "" {
		return in, nil, err
	}
	if ack, err = c.file(c.ack); err != nil {
		in.Close()
		return nil, nil, err
	}
	return in, ack, nil
}

// file opens one of the files. A FIFO is opened for both directions, so that nobody has to
// be at the other end.
func (c *Control) file(name string) (*os.File, error) {
	if c.kind == "fifo" {
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			return nil, fault.As(fault.Usage, fmt.Errorf("--control: %w", err))
		}
		if info, err := f.Stat(); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
			f.Close()
			return nil, fault.Usagef("--control: %s is no FIFO: mkfifo makes one", name)
		}
		return f, nil
	}
	n, err := strconv.ParseUint(name, 10, 31)
	if err != nil {
		return nil, fault.As(fault.Usage, err)
	}
	f := os.NewFile(uintptr(n), "fd:"+name)
	if _, err := f.Stat(); err != nil {
		return nil, fault.Usagef("--control: file descriptor %s is not open", name)
	}
	return f, nil
}

// A request is what Next is to do: enable lets samples be taken, or not.
type request = func(enable func(bool) error)

// maxCommand bounds the length of a command.
const maxCommand = 1 << 12

// obey takes commands until their end: a line each, as those of perf record.
func (r *Recording) obey(in io.Reader, ack io.Writer) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxCommand)
	for lines.Scan() {
		command := strings.Trim(lines.Text(), " \x00")
		if !r.ask(func(enable func(bool) error) {
			if r.command(command, enable) && ack != nil {
				_, _ = io.WriteString(ack, "ack\n")
			}
		}) {
			return
		}
	}
}

// command does what a command says. It is false for one that has no effect: perf does not
// acknowledge such either.
func (r *Recording) command(text string, enable func(bool) error) bool {
	switch text {
	case "enable":
		return enable(true) == nil
	case "disable":
		return enable(false) == nil
	case "snapshot":
		r.switching = r.opts.Next != nil
		return r.switching
	case "stop":
		r.sampling.Stop()
	case "ping":
	default:
		return false
	}
	return true
}

// ask has Next do something soon. It is false if the recording is over.
func (r *Recording) ask(f request) bool {
	select {
	case r.requests <- f:
		return true
	case <-r.over:
		return false
	}
}
