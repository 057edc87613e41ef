//go:build linux

package extra_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A terminal is a pseudo-terminal with a program.
type terminal struct {
	t     testing.TB
	own   *os.File // our side
	other *os.File // the program's
	cmd   *exec.Cmd
	mu    sync.Mutex
	shown bytes.Buffer
	done  chan error
}

// extraProgram returns a link to this program, which is cyclestack-extra by that name.
func extraProgram(t testing.TB) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "cyclestack-extra")
	if err := os.Symlink(self, name); err != nil {
		t.Fatal(err)
	}
	return name
}

// inTerminal starts the program in a terminal of a size.
func inTerminal(t testing.TB, rows, columns uint16, env []string, args ...string) *terminal {
	t.Helper()
	program := extraProgram(t)
	own, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { own.Close() })
	if err := unix.IoctlSetPointerInt(int(own.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(own.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { other.Close() })
	p := &terminal{t: t, own: own, other: other, done: make(chan error, 1)}
	p.resize(rows, columns)
	p.cmd = exec.Command(program, args...)
	p.cmd.Dir = t.TempDir()
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = other, other, other
	p.cmd.Env = append(append(os.Environ(), "TERM=xterm-256color", "LANG=C.UTF-8"), env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	go func() {
		buf := make([]byte, 1<<16)
		for {
			n, err := own.Read(buf)
			p.mu.Lock()
			p.shown.Write(buf[:n])
			p.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	go func() { p.done <- p.cmd.Wait() }()
	return p
}

func (p *terminal) resize(rows, columns uint16) {
	if err := unix.IoctlSetWinsize(int(p.own.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns}); err != nil {
		p.t.Fatal(err)
	}
}

func (p *terminal) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shown.String()
}

var (
	moves  = regexp.MustCompile(`\x1b\[[0-9;]*H`)
	styles = regexp.MustCompile(`\x1b(\[[0-9;?]*[a-zA-Z]|\(B)`)
)

// plain is what was shown, without the codes. Only what changes is drawn, word by word.
func plain(out string) string {
	return styles.ReplaceAllString(moves.ReplaceAllString(out, " "), "")
}

// wait waits for text behind what was shown before.
func (p *terminal) wait(from int, text string) {
	p.t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if out := p.output(); len(out) >= from && (strings.Contains(out[from:], text) || strings.Contains(plain(out[from:]), text)) {
			return
		}
	}
	out := p.output()[from:]
	p.t.Fatalf("%q does not appear in %q", text, out[max(0, len(out)-1500):])
}

func (p *terminal) press(keys string) {
	if _, err := p.own.WriteString(keys); err != nil {
		p.t.Fatal(err)
	}
}

// ended waits for the end, and returns the exit status; the terminal must be as it was.
func (p *terminal) ended(before *unix.Termios) int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(20 * time.Second):
		p.t.Fatalf("it does not end: %q", p.output())
	}
	after, err := unix.IoctlGetTermios(int(p.other.Fd()), unix.TCGETS)
	if err != nil {
		p.t.Fatal(err)
	}
	if *after != *before {
		p.t.Errorf("the terminal is left in another mode: %+v, was %+v", after, before)
	}
	time.Sleep(50 * time.Millisecond)
	out := p.output()
	if begin, end := strings.LastIndex(out, "\x1b[?1049h"), strings.LastIndex(out, "\x1b[?1049l"); begin < 0 || end < begin {
		p.t.Errorf("the screen is not given back: %d, %d", begin, end)
	}
	if hide, show := strings.LastIndex(out, "\x1b[?25l"), max(strings.LastIndex(out, "\x1b[?25h"), strings.LastIndex(out, "\x1b[?12l\x1b[?25h")); hide > show {
		p.t.Errorf("the cursor is left hidden")
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *terminal) mode() *unix.Termios {
	m, err := unix.IoctlGetTermios(int(p.other.Fd()), unix.TCGETS)
	if err != nil {
		p.t.Fatal(err)
	}
	return m
}

// TestTop: the view shows nodes, follows changes of the window, pauses and keeps what is
// seen. It leaves the terminal as it was.
func TestTop(t *testing.T) {
	t.Parallel()
	probe := inTerminal(t, 24, 80, nil, "top", "--help")
	usual := *probe.mode()
	<-probe.done
	p := inTerminal(t, 24, 80, nil, "top", "--source", "os", "-I", "200")
	p.wait(0, "depth 3")
	p.wait(0, "Busy_User")
	at := len(p.output())
	p.resize(40, 120)
	p.wait(at, "depth 3")
	at = len(p.output())
	p.press("p")
	p.wait(at, "PAUSED")
	p.press("-w")
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if kept, _ := filepath.Glob(filepath.Join(p.cmd.Dir, "cyclestack-top-*.json")); len(kept) > 0 {
			break
		}
	}
	at = len(p.output())
	p.resize(30, 100) // everything is drawn anew, not only what has changed
	p.wait(at, "depth 2")
	p.press("p\t\r\x1b[A\x1b[B")
	p.press("q")
	if status := p.ended(&usual); status != 0 {
		t.Errorf("status %d: %q", status, p.output())
	}
	kept, err := filepath.Glob(filepath.Join(p.cmd.Dir, "cyclestack-top-*.json"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept: %v, %v", kept, err)
	}
	text, err := os.ReadFile(kept[0])
	var d struct {
		Schema   string
		Accounts []any
	}
	if err := errors.Join(err, json.Unmarshal(text, &d)); err != nil || d.Schema != "cyclestack.account/v1" || len(d.Accounts) == 0 {
		t.Errorf("what was kept: %v: %s", err, text[:min(len(text), 200)])
	}
}

// spin is a loop for sh that leaves the processor to other tests.
const spin = "while renice -n 10 $$ > /dev/null 2>&1 || :; do while :; do :; done; done"

// TestTopViews: the parts of what is watched are shown by the counters and by samples; one of
// them is opened, down to the lines of a function, and left again. What is seen is kept. The
// program runs on meanwhile.
func TestTopViews(t *testing.T) {
	t.Parallel()
	probe := inTerminal(t, 24, 80, nil, "top", "--help")
	usual := *probe.mode()
	<-probe.done
	p := inTerminal(t, 24, 80, []string{"NO_COLOR=1"}, "top", "--source", "os", "-I", "300", "--", "sh", "-c", spin)
	p.wait(0, "nodes, depth 3")
	at := len(p.output())
	step := func(keys, text string) {
		t.Helper()
		at = len(p.output())
		p.press(keys)
		p.resize(24, 81) // everything is drawn anew
		p.wait(at, text)
		p.resize(24, 80)
	}
	step("3", "processes; time profile only")
	p.wait(at, "sh-")
	step("\x1b[B\r", "› process sh-")
	p.wait(at, "nodes, depth 3")
	step("7", "functions; time profile only")
	step("\x1b[B\r", "› by line")
	p.wait(at, "lines; time profile only")
	step("w", "kept as ")
	step("\x1b[D", "functions; time profile only")
	step("\x1b[D", "processes; time profile only")
	step("6", "modules; time profile only")
	step("1", "nodes, depth 3")
	step("\t", "sh -c while") // the program has not been started again
	p.press("q")
	if status := p.ended(&usual); status != 0 {
		t.Errorf("status %d: %q", status, p.output())
	}
	for _, bad := range []string{"panic", "internal error"} {
		if strings.Contains(p.output(), bad) {
			t.Errorf("%s: %q", bad, p.output())
		}
	}
	kept, _ := filepath.Glob(filepath.Join(p.cmd.Dir, "cyclestack-top-*.json"))
	if len(kept) != 1 {
		t.Fatalf("kept: %v", kept)
	}
	text, err := os.ReadFile(kept[0])
	var d struct {
		Accounts []struct {
			Scope struct {
				Kind    string
				Samples int64    `json:"share_samples"`
				Share   *float64 `json:"share"`
			}
		}
	}
	if err := errors.Join(err, json.Unmarshal(text, &d)); err != nil || len(d.Accounts) < 2 {
		t.Fatalf("what was kept: %v: %s", err, text)
	}
	sum := int64(0)
	for _, a := range d.Accounts[1:] {
		if sum += a.Scope.Samples; a.Scope.Kind != "line" && a.Scope.Kind != "function" {
			t.Errorf("kept is %+v", a.Scope)
		}
	}
	if all := d.Accounts[0].Scope; all.Kind != "run" || sum == 0 || sum > all.Samples {
		t.Errorf("%d samples of lines, %d of all", sum, all.Samples)
	}
}

// TestTopMachine: a process that computes is found among those of the machine. A process that
// has ended is said to have.
func TestTopMachine(t *testing.T) {
	t.Parallel()
	busy := exec.Command("nice", "sh", "-c", "while :; do :; done")
	if err := busy.Start(); err != nil {
		t.Fatal(err)
	}
	end := func() {
		_ = busy.Process.Kill()
		_ = busy.Wait()
	}
	t.Cleanup(end)
	p := inTerminal(t, 40, 120, nil, "top", "--source", "os", "-I", "300", "--by", "process")
	p.wait(0, fmt.Sprintf("sh-%d", busy.Process.Pid))
	at := len(p.output())
	p.press("2")
	p.resize(40, 121)
	p.wait(at, "CPU0")
	p.press("q")
	<-p.done
	q := inTerminal(t, 40, 120, nil, "top", "--source", "os", "-I", "300", "-p", fmt.Sprint(busy.Process.Pid))
	q.wait(0, "CPUs_Utilised")
	end()
	at = len(q.output())
	q.resize(40, 121)
	q.wait(at, "ENDED")
	q.press("q")
	<-q.done
}

// TestTopKilled: signals and a terminal that goes away end it cleanly.
func TestTopKilled(t *testing.T) {
	t.Parallel()
	probe := inTerminal(t, 24, 80, nil, "top", "--help")
	usual := *probe.mode()
	<-probe.done
	for _, s := range []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		p := inTerminal(t, 24, 80, []string{"NO_COLOR=1"}, "top", "--source", "os", "-I", "200")
		p.wait(0, "depth 3")
		if err := p.cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		if status := p.ended(&usual); status != 0 {
			t.Errorf("%v: status %d", s, status)
		}
		if out := p.output(); strings.Contains(out, "\x1b[31m") || strings.Contains(out, "\x1b[38;5;") || strings.Contains(out, "panic") {
			t.Errorf("%v: colours without colour, or worse: %q", s, out)
		}
	}
	p := inTerminal(t, 24, 80, nil, "top", "--source", "os", "-I", "200")
	p.wait(0, "depth 3")
	p.other.Close()
	p.own.Close() // the terminal hangs up
	select {
	case <-p.done:
	case <-time.After(20 * time.Second):
		t.Error("it goes on without a terminal")
	}
}

// TestTopOnce: one account as text; without a terminal the view says what to do instead.
func TestTopOnce(t *testing.T) {
	t.Parallel()
	program := extraProgram(t)
	out, err := exec.Command(program, "top", "--once", "--source", "os", "-I", "100").Output()
	if err != nil || !strings.Contains(string(out), "the whole machine") || strings.Contains(string(out), "\x1b") {
		t.Errorf("%v: %q", err, out)
	}
	var msg bytes.Buffer
	cmd := exec.Command(program, "top")
	cmd.Stderr = &msg
	// A busy machine may keep a program waiting for some hundred milliseconds.
	for _, by := range []string{"function", "process", "cpu"} {
		out, err := exec.Command(program, "top", "--once", "--source", "os", "-I", "1000", "--by", by, "--", "sh", "-c", spin).CombinedOutput()
		if by == "cpu" && strings.Contains(string(out), "samples of cpu-clock") {
			continue // of a program, samples tell it
		}
		if err != nil || !strings.Contains(string(out), "samples of cpu-clock") || !strings.Contains(string(out), "100.0 %") {
			t.Errorf("--by %s: %v: %q", by, err, out)
		}
	}
	// What the notes advise is there. Something runs meanwhile.
	busy := exec.Command("nice", "sh", "-c", "while :; do :; done")
	if err := busy.Start(); err != nil {
		t.Fatal(err)
	}
	defer busy.Wait()
	defer busy.Process.Kill()
	out, err = exec.Command(program, "top", "--once", "-a", "--source", "os", "-I", "200", "--by", "function", "--top", "3", "--format", "json").Output()
	var d struct {
		Schema   string
		Accounts []any
	}
	if err := errors.Join(err, json.Unmarshal(out, &d)); err != nil || d.Schema != "cyclestack.account/v1" || len(d.Accounts) < 1 || len(d.Accounts) > 4 {
		t.Errorf("--top 3 in JSON: %v, %d accounts: %.300s", err, len(d.Accounts), out)
	}
	if out, err := exec.Command(program, "top", "--once", "--top", "-3").CombinedOutput(); err == nil || !strings.Contains(string(out), "--top -3: at least one line") {
		t.Errorf("--top -3: %v: %s", err, out)
	}
	if _ = cmd.Run(); cmd.ProcessState.ExitCode() != 2 || !strings.Contains(msg.String(), "--once") {
		t.Errorf("status %d: %s", cmd.ProcessState.ExitCode(), msg.String())
	}
}
