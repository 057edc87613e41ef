package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/cli"
	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
)

// TestMain is either program, if the test has copied this executable under its name.
func TestMain(m *testing.M) {
	switch strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe") {
	case "cyclestack":
		os.Exit(cli.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	case "cyclestack-extra":
		main()
	}
	os.Exit(m.Run())
}

// build makes both programs, in a directory each.
func build(t *testing.T) (cyclestack, extra string) {
	t.Helper()
	dir := t.TempDir()
	cyclestack, extra = filepath.Join(dir, "one", "cyclestack"), filepath.Join(dir, "two", "cyclestack-extra")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	for _, to := range []string{cyclestack, extra} {
		if runtime.GOOS == "windows" {
			to += ".exe"
		}
		if err := errors.Join(err, os.Mkdir(filepath.Dir(to), 0o700), os.WriteFile(to, program, 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	return cyclestack, extra
}

// TestSecond: cyclestack runs the second executable if it is on the PATH or next to it, with
// arguments and status. Otherwise it says how to get it.
func TestSecond(t *testing.T) {
	cyclestack, extra := build(t)
	run := func(path string, args ...string) (status int, out, err string) {
		cmd := exec.Command(cyclestack, args...)
		var stdout, stderr bytes.Buffer
		cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), "PATH="+path), &stdout, &stderr
		if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
			t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
	}
	status, out, msg := run("/nonexistent", "serve", "x")
	if status != 4 || out != "" || strings.Count(msg, "\n") != 1 || !strings.Contains(msg, "go install github.com/cyclestack/cyclestack/cmd/cyclestack-extra@latest") {
		t.Errorf("without it: status %d, %q, %q", status, out, msg)
	}
	check := func(where, path string) {
		status, out, msg := run(path, "serve", "--help")
		if status != 0 || !strings.Contains(out, "--listen") || msg != "" {
			t.Errorf("%s: status %d, %q, %q", where, status, out, msg)
		}
		status, _, msg = run(path, "serve", "--no-such-flag")
		if status != 2 || !strings.HasPrefix(msg, "cyclestack serve: ") || strings.Count(msg, "\n") != 1 {
			t.Errorf("%s: status %d, %q", where, status, msg)
		}
	}
	check("on the PATH", filepath.Dir(extra))
	if err := os.Rename(extra, filepath.Join(filepath.Dir(cyclestack), filepath.Base(extra))); err != nil {
		t.Fatal(err)
	}
	check("next to it", "/nonexistent")
}
