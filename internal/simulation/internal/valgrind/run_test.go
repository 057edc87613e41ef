package valgrind

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/counts"
)

// fake puts a program in the place of valgrind.
func fake(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "valgrind"), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("TMPDIR", t.TempDir())
}

// writes is a valgrind that writes an output file, and says what it was called with.
const writes = `for a; do case $a in --*-out-file=*) out=${a#*=};; --log-file=*) log=${a#*=};; esac; done
echo "$*" >$(dirname "$out")/arguments
printf 'version: 1\ncreator: callgrind-3.19.0\ncmd: x\nevents: Ir\nfn=f\n1 5\ntotals: 5\n' >${out%\%p}$$
`

func TestFallsBack(t *testing.T) {
	fake(t, `case $* in *--tool=callgrind*) echo "valgrind: the 'impossible' happened" >&2; exit 1;; esac
`+writes+`exit 3`)
	s, err := Run(t.Context(), Command{Args: []string{"sh"}, Geometry: small})
	if err != nil {
		t.Fatal(err)
	}
	if s.Tool != Cachegrind || s.Why != "callgrind could not follow the program" || s.State.ExitCode() != 3 {
		t.Errorf("by %s (%s), %v", s.Tool, s.Why, s.State)
	}
	if v := value(t, table(t, Open(s.Files, Options{})), "", "Ir"); v != 5 {
		t.Errorf("%v instructions", v)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "*")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

func TestToolError(t *testing.T) {
	fake(t, `echo "valgrind: cannot do it" >&2; exit 1`)
	_, err := Run(t.Context(), Command{Args: []string{"sh"}, Geometry: small})
	var failed *ToolError
	if !errors.As(err, &failed) || err.Error() != "cachegrind failed: valgrind: cannot do it" {
		t.Errorf("%v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "*")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	if _, err := Run(t.Context(), Command{Args: []string{"no-such-program-at-all"}}); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("no such program: %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := Run(t.Context(), Command{Args: []string{"sh"}}); !errors.Is(err, ErrNotInstalled) || !strings.Contains(err.Error(), "apt-get install valgrind") {
		t.Errorf("without valgrind: %v", err)
	}
}

// TestUnsupported checks that a process that ends at an instruction that valgrind does not know is
// found.
func TestUnsupported(t *testing.T) {
	const log = `==17== valgrind: Unrecognised instruction at address 0x109090.
==17==    at 0x109090: solve (solve.c:12)
`
	const ends = "==17== Process terminating with default action of signal 4 (SIGILL)\n"
	const unhandled = "vex amd64->IR: unhandled instruction bytes: 0x62 0xF1 0x7C 0x48 0x58 0x0 0x48 0x83 0xC0 0x40\n"
	for _, test := range []struct{ log, want string }{
		{unhandled + log + ends, "callgrind does not know vaddps (%rax),%zmm0,%zmm0 (solve, solve.c:12): compile without it (-mno-avx512f), or cyclestack record"},
		{unhandled + ends, "callgrind does not know vaddps (%rax),%zmm0,%zmm0 (it is not known where): compile without it (-mno-avx512f), or cyclestack record"},
		{unhandled + log, ""}, // it has a handler for that
		{ends, ""},            // by itself as well
	} {
		fake(t, writes+"cat >${log%\\%p}$$ <<'E'\n"+test.log+"E\n")
		s, err := Run(t.Context(), Command{Args: []string{"sh"}, Geometry: small})
		if got := fmt.Sprint(err); err == nil && test.want != "" || err != nil && got != test.want {
			t.Errorf("%q: %v", test.log, err)
		}
		if s != nil {
			_ = s.Close()
		}
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	c := Command{Args: []string{"./app", "--tool=x"}, Geometry: small, Instructions: true}
	cmd, _ := c.under(t.Context(), c.options(Callgrind, "/dir"))
	got := cmd.Args
	for _, want := range []string{"--tool=callgrind", "--trace-children=yes", "--cache-sim=yes", "--branch-sim=yes", "--dump-instr=yes", "--dump-before=fork",
		"--callgrind-out-file=/dir/out.%p", "--log-file=/dir/log.%p", "--I1=32768,8,64", "--D1=32768,8,64", "--LL=262144,8,64"} {
		if !slices.Contains(got, want) {
			t.Errorf("%q lacks %s", got, want)
		}
	}
	if n := len(got); !slices.Equal(got[n-3:], []string{"--", "./app", "--tool=x"}) {
		t.Errorf("%q", got[n-3:])
	}
	if got := c.options(Cachegrind, "/dir"); slices.ContainsFunc(got, func(o string) bool { return strings.Contains(o, "dump") || strings.Contains(o, "hwpref") }) {
		t.Errorf("of cachegrind: %q", got)
	}
}

// TestScratch checks what is said where there is no place for temporary files.
func TestScratch(t *testing.T) {
	fake(t, writes)
	if err := Scratch(); err != nil {
		t.Error(err)
	}
	t.Setenv("TMPDIR", "/no/such/directory")
	c := Command{Args: []string{"sh"}, Geometry: small}
	_, run := Run(t.Context(), c)
	for name, err := range map[string]error{"scratch": Scratch(), "run": run} {
		if want := "no temporary files can be written in /no/such/directory: no such file or directory: TMPDIR names another directory"; err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

// TestKeep checks that what is kept can be read again, with what was added to it.
func TestKeep(t *testing.T) {
	t.Parallel()
	for _, files := range [][]string{{"calls.callgrind", "instructions.callgrind"}, {"cache.cachegrind"}} {
		s := &Simulation{}
		for _, f := range files {
			s.Files = append(s.Files, filepath.Join("testdata", f))
		}
		var kept bytes.Buffer
		if err := s.Keep(&kept, 1); err != nil {
			t.Fatal(err)
		}
		if !Detect(kept.Bytes()) {
			t.Errorf("%q: not recognised", files)
		}
		got := table(t, NewReader(&kept, "kept", Options{By: counts.Function}))
		want := table(t, Open(s.Files, Options{By: counts.Function, Beyond: 1}))
		if !slices.Equal(labels(got), labels(want)) {
			t.Fatalf("%q: %q, want %q", files, labels(got), labels(want))
		}
		for i := range want.Scopes {
			if !slices.Equal(got.Row(i), want.Row(i)) {
				t.Errorf("%s: %v, want %v", want.Scopes[i].Label, got.Row(i), want.Row(i))
			}
		}
		if v := value(t, got, "", memory); v != 0 {
			t.Errorf("%q: %v misses go to memory", files, v)
		}
	}
}
