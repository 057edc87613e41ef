package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/cyclestack/cyclestack/internal/testlong"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

var update = flag.Bool("update", false, "rewrite the golden output in the scripts")

func TestMain(m *testing.M) {
	// What calibrate has stored on the machine must be in no output, unless programs are
	// compared with the machine. Scripts have an environment of their own.
	if filepath.Base(os.Args[0]) != "cyclestack" && os.Getenv("CYCLESTACK_PROGRAMS")+os.Getenv("CYCLESTACK_PERF_NINJA") == "" {
		os.Setenv("XDG_CONFIG_HOME", "/dev/null/none") // where nobody can store any
		if cache, err := os.UserCacheDir(); err == nil && os.Getenv("GOCACHE") == "" {
			os.Setenv("GOCACHE", filepath.Join(cache, "go-build"))
		}
		os.Setenv("XDG_CACHE_HOME", "/dev/null/none") // nor keep runs
	}
	testscript.Main(tidied{m}, map[string]func(){
		"cyclestack": func() {
			os.Exit(Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
		},
	})
}

// tidied are tests that remove at their end what they share.
type tidied struct{ *testing.M }

// Run runs the tests.
func (m tidied) Run() int {
	defer func() { os.RemoveAll(walkDir) }()
	return m.M.Run()
}

// TestScripts runs the scripts in testdata: every command, its output and its
// exit status, for good input and bad. They run the program itself, which begins
// in a third of the time that these tests need.
func TestScripts(t *testing.T) {
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", bin, "../../cmd/cyclestack").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	recordings, err := filepath.Abs("../../source/perfdata/testdata")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", bin+string(os.PathListSeparator)+env.Getenv("PATH"))
			env.Setenv("XDG_CACHE_HOME", filepath.Join(env.WorkDir, "cache"))
			return errors.Join(os.Symlink(examples, filepath.Join(env.WorkDir, "examples")),
				os.Symlink(recordings, filepath.Join(env.WorkDir, "recordings")))
		},
		Condition: condition,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits": exits,
		},
	})
}

// condition says what the machine allows that the tests run on: "counts" that a
// program's software events are counted, "counts-all" those of the machine.
func condition(name string) (bool, error) {
	sys, err := perfevent.ReadSystem(os.DirFS("/"))
	if err != nil {
		return false, err
	}
	refused := len(sys.Probe(os.DirFS("/")).Errors)
	switch name {
	case "counts":
		return refused < 2, nil // the machine may be refused
	case "counts-all":
		return refused == 0, nil
	case "long":
		return testlong.Enabled(), nil
	}
	return false, fmt.Errorf("unknown condition %q", name)
}

// exits runs a command and checks its exit status: exits 3 cyclestack …
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS COMMAND…")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := "0"
	if err != nil {
		got = "?"
		if e, ok := err.(interface{ ExitCode() int }); ok {
			got = strconv.Itoa(e.ExitCode())
		}
	}
	if got != args[0] {
		ts.Fatalf("exit status %s, want %s (%v)", got, args[0], err)
	}
}
