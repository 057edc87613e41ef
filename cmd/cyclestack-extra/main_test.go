package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
)

// build builds both programs into a directory each.
func build(t *testing.T) (cyclestack, extra string) {
	t.Helper()
	dir := t.TempDir()
	cyclestack, extra = filepath.Join(dir, "one", "cyclestack"), filepath.Join(dir, "two", "cyclestack-extra")
	for to, pkg := range map[string]string{cyclestack: "../cyclestack", extra: "."} {
		if runtime.GOOS == "windows" {
			to += ".exe"
		}
		cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", to, pkg)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
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
