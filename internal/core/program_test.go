package core_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cyclestack/cyclestack/internal/core"
)

// A program that is found by PATH, or is a link, is the file that is executed.
func TestProgramOf(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file, link := filepath.Join(dir, "real"), filepath.Join(dir, "link-to-it")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", link); err != nil {
		t.Skip(err)
	}
	t.Setenv("PATH", dir)
	for command, want := range map[string]string{
		"":                   "",
		"link-to-it -c 1":    file,
		link + " -c 1":       file,
		file:                 file,
		"/no/such/program x": "/no/such/program",
	} {
		if got := core.ProgramOf(command, ""); got != want {
			t.Errorf("%q: %s, want %s", command, got, want)
		}
	}
	if got := core.ProgramOf("/link-to-it", dir); got != file {
		t.Errorf("below a root: %s, want %s", got, file)
	}
}
