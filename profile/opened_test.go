package profile_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/cyclestack/cyclestack/internal/object"
	"github.com/cyclestack/cyclestack/profile"
)

// TestOpened: a further Symbolizer takes the file that is open, and another file of that path
// when it was replaced.
func TestOpened(t *testing.T) {
	name := filepath.Join(t.TempDir(), "program")
	put := func(from string) {
		t.Helper()
		data, err := os.ReadFile(from)
		if err != nil {
			t.Skip(err)
		}
		if err := os.WriteFile(name+".new", data, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(name+".new", name); err != nil {
			t.Fatal(err)
		}
	}
	opened := &object.Opened{}
	defer opened.Close()
	function := func() string {
		t.Helper()
		spaces := profile.NewSpaces()
		spaces.Map(1, profile.Mapping{PID: 7, Start: 0x400000, Len: 1 << 30, File: name})
		spaces.Settle()
		y := profile.NewSymbolizer(profile.Config{Opened: opened})
		defer y.Close()
		place := spaces.Find(1, 7, 0x400000, profile.User)
		list, err := y.Lookup(place.File, object.Named("main.main"))
		if err != nil {
			return err.Error()
		}
		if len(list) == 0 {
			return ""
		}
		return list[0].Symbol
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	put(self)
	for range 3 {
		if got := function(); got != "main.main" {
			t.Errorf("of a program of Go: %q", got)
		}
	}
	put("/bin/sh")
	for range 40 { // the file before is closed meanwhile
		if got := function(); got == "main.main" {
			t.Fatal("the file that was replaced is still used")
		}
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if got := function(); got == "" || got == "main.main" {
		t.Errorf("of a file that is gone: %q", got)
	}
	put(self)
	if err := os.Chtimes(name, time.Time{}, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	if got := function(); got != "main.main" {
		t.Errorf("of a program that is back: %q", got)
	}
}

// TestPatience: symbols of what came after the first round are read once enough rounds have
// asked for it.
func TestPatience(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	opened := &object.Opened{Patience: 2}
	defer opened.Close()
	round := func(names ...string) (list []bool) {
		y := profile.NewSymbolizer(profile.Config{Opened: opened})
		defer y.Close()
		for i, name := range names {
			spaces := profile.NewSpaces()
			spaces.Map(1, profile.Mapping{PID: 7 + i, Start: 0x400000, Len: 1 << 30, File: name})
			spaces.Settle()
			found, err := y.Lookup(spaces.Find(1, 7+i, 0x400000, profile.User).File, object.Named("main.main"))
			if err != nil && !errors.Is(err, object.ErrLater) {
				t.Fatal(err)
			}
			list = append(list, len(found) > 0)
		}
		return list
	}
	late := filepath.Join(t.TempDir(), "late")
	if err := os.Link(self, late); err != nil {
		t.Skip(err)
	}
	for i, want := range [][]bool{{true}, {true, false}, {true, false}, {true, true}, {true, true}} {
		names := []string{self, late}[:len(want)]
		if got := round(names...); !slices.Equal(got, want) {
			t.Errorf("round %d: %v have names, want %v", i, got, want)
		}
	}
}
