package emulator

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/simulation/internal/valgrind"
)

const unknown = `
#include <signal.h>
#include <unistd.h>
#include <sys/wait.h>

__attribute__((noinline)) void wide(void) { __asm__ volatile(".byte 0x62, 0xf1, 0x7c, 0x48, 0x58, 0xc0"); }

int main(int argc, char **argv) {
	if (argc == 1 || !fork()) wide();
	else wait(0);
	return 0;
}
`

// TestUnsupported checks that processes are found that end at an instruction that QEMU does not
// know.
func TestUnsupported(t *testing.T) {
	t.Parallel()
	if HostTarget() != "x86_64" {
		t.Skip("the program is of amd64")
	}
	if err := Available("x86_64"); err != nil {
		t.Skip(err)
	}
	program := compiled(t, "gcc", unknown)
	for _, args := range [][]string{{program}, {program, "child"}} {
		s, err := Run(t.Context(), Command{Args: args}, usual())
		var bad *valgrind.UnsupportedError
		if !errors.As(err, &bad) || bad.Instruction != "vaddps %zmm0,%zmm0,%zmm0" || bad.Place != "wide, program.c:6" {
			t.Errorf("%q: %v", args[1:], err)
		}
		if s != nil {
			_ = s.Close()
		}
	}
}

// TestInterrupted checks that the file of a simulation that was interrupted says so.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	if err := Available(HostTarget()); err != nil {
		t.Skip(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o := usual()
	o.Progress = func(Progress) { cancel() }
	s, err := Run(ctx, Command{Args: []string{compiled(t, "gcc", "int main(void) { volatile long i = 0; for (;;) i++; }")}}, o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var out bytes.Buffer
	if err := s.Write(&out); err != nil {
		t.Fatal(err)
	}
	if !s.Partial || !strings.Contains(out.String(), "windows over the run until it was interrupted; ") {
		t.Errorf("%v: %.600s", s.Partial, out.String())
	}
}

// TestUncalled checks the callers of a library's function whose call no sample saw.
func TestUncalled(t *testing.T) {
	t.Parallel()
	s := emulated(t, compiled(t, "gcc", `
#include <string.h>
static char far[16 << 20];
int main(void) { for (int i = 0; i < 4; i++) memset(far, i, sizeof far); return far[5] - 3; }`))
	var out bytes.Buffer
	if err := s.Write(&out); err != nil || s.State.ExitCode() != 0 {
		t.Errorf("%v, %v", err, s.State)
	}
}
