package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestSwitchOutput records into one file after the other. Each is complete. All samples are
// in one of them, in the order of time and with the names of their code.
func TestSwitchOutput(t *testing.T) {
	t.Parallel()
	needSampling(t, false)
	perf := needPerf(t)
	for _, more := range [][]string{nil, {"-z", "--switch-output=2K"}, {"--switch-max-files", "2"}} {
		dir := t.TempDir()
		args := append([]string{"--switch-output=30K", "-e", "page-faults", "-c", "1", "-g", "-m", "64K", "-o", filepath.Join(dir, "perf.data")}, more...)
		said := recordHere(t, append(append(args, "--"), programs...)...)
		names, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil || len(names) < 2 {
			t.Fatalf("%v: %d files, %v: %s", more, len(names), err, said)
		}
		samples, last := 0, 0.0
		for _, name := range names {
			if !regexp.MustCompile(`/perf\.data\.\d{16}$`).MatchString(name) {
				t.Errorf("%v: a file is called %s", more, name)
			}
			var first, end float64
			for line := range strings.Lines(perf.output(t, "script", "-i", name, "-F", "time,ip,sym,dso")) {
				now, _, ok := strings.Cut(line, ":")
				at, err := strconv.ParseFloat(strings.TrimSpace(now), 64)
				if !ok || err != nil {
					continue
				}
				if samples++; first == 0 || at < first {
					first = at
				}
				end = max(end, at)
				if strings.Contains(line, "([unknown])") {
					t.Errorf("%v: %s: code of no file: %s", more, name, line)
				}
			}
			if first == 0 {
				continue // it begins at the end
			}
			if first < last {
				t.Errorf("%v: %s begins before the end of the one before it", more, name)
			}
			last = end
			if d := ours(t, name, "function"); len(d.Accounts) < 2 {
				t.Errorf("%v: %s: %d places", more, name, len(d.Accounts)-1)
			}
		}
		if len(names) != 2 && strings.HasSuffix(fmt.Sprint(more), " 2]") {
			t.Errorf("%v: %d files", more, len(names))
		} else if !strings.HasSuffix(fmt.Sprint(more), " 2]") && !strings.Contains(said, fmt.Sprintf(" %d samples, ", samples)) {
			t.Errorf("%v: %d samples in the files: %s", more, samples, said)
		}
	}
}

// TestControl enables and disables the sampling by commands, which are acknowledged.
func TestControl(t *testing.T) {
	needSampling(t, false)
	dir := t.TempDir()
	commands, acks := filepath.Join(dir, "commands"), filepath.Join(dir, "acks")
	for _, name := range []string{commands, acks} {
		if err := unix.Mkfifo(name, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "perf.data")
	done := make(chan string)
	go func() {
		var out, msg bytes.Buffer
		null, _ := os.Open(os.DevNull)
		defer null.Close()
		status := Main(context.Background(), []string{"record", "--control", "fifo:" + commands + "," + acks, "-D", "-1", "-e", "cpu-clock", "-o", file,
			"--", "sh", "-c", "while :; do :; done"}, null, &out, &msg)
		done <- fmt.Sprintf("%d: %s", status, &msg)
	}()
	in, err := os.OpenFile(commands, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	ack, err := os.OpenFile(acks, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer ack.Close()
	for _, command := range []string{"nonsense\nping", "enable", "disable", "ping", "enable", "ping", "stop"} {
		fmt.Fprintln(in, command)
		buf := make([]byte, 16)
		if n, err := ack.Read(buf); string(buf[:n]) != "ack\n" {
			t.Errorf("%q: %q, %v", command, buf[:n], err)
		}
	}
	if said := <-done; !strings.HasPrefix(said, "143: ") || !strings.Contains(said, "none lost") && !strings.Contains(said, "no samples") {
		t.Errorf("the recording says %q", said)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}

// TestControlRefused: what is no place of commands is an error before the program runs.
func TestControlRefused(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ control, want string }{
		{"fifo:" + plain, "is no FIFO"}, {"fifo:" + plain + "x", "no such file"}, {"fd:4000", "is not open"},
		{"fd:1", "above 2"}, {"fd:x", "above 2"}, {"pipe:3", "fd:IN"}, {"fd:", "fd:IN"},
	} {
		var out, msg bytes.Buffer
		args := []string{"record", "--control", tt.control, "-e", "cpu-clock", "-o", plain + ".data", "--", "touch", plain + ".ran"}
		if status := Main(context.Background(), args, nil, &out, &msg); status != 2 || !strings.Contains(msg.String(), tt.want) || strings.Count(msg.String(), "\n") > 2 {
			t.Errorf("%s: status %d: %s", tt.control, status, &msg)
		}
		if _, err := os.Stat(plain + ".ran"); err == nil {
			t.Errorf("%s: the program ran", tt.control)
		}
	}
}

// TestSwitchSignal sends SIGUSR2 to a recording: the file ends, and the recording goes on.
func TestSwitchSignal(t *testing.T) {
	needSampling(t, false)
	perf := needPerf(t)
	dir := t.TempDir()
	// The program waits for a line, and then ends.
	cmd, _ := process(t, dir, "record", "--switch-output", "-e", "cpu-clock", "-o", filepath.Join(dir, "perf.data"), "--", "sh", "-c", "echo ready; read line; i=0; while [ $i -lt 1000 ]; do i=$((i+1)); done")
	cmd.Stdout = nil // its pipe is read
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if n, err := out.Read(make([]byte, 16)); n == 0 {
		t.Fatal(err)
	}
	files := func() []string {
		names, _ := filepath.Glob(filepath.Join(dir, "perf.data.*"))
		return names
	}
	for want := 1; want <= 2; want++ {
		if err := cmd.Process.Signal(syscall.SIGUSR2); err != nil {
			t.Fatal(err)
		}
		waitFor(t, func() bool { return len(files()) == want })
	}
	fmt.Fprintln(in)
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if names := files(); len(names) != 3 {
		t.Errorf("files %q", names)
	}
	for _, name := range files() { // also one without samples
		perf.output(t, "script", "-i", name)
	}
}

// waitFor waits until something holds.
func waitFor(t *testing.T, holds func() bool) {
	t.Helper()
	for range 3000 {
		if holds() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("it does not happen")
}
