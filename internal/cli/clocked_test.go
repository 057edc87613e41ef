package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// spins is a program with one hot loop, in a function of its own.
const spins = `
#include <stdio.h>
#include <stdlib.h>
volatile double sink;
__attribute__((noinline)) double spin(long n) {
	double x = 1;
	for (long i = 0; i < n; i++)
		x = x * 0.999 + 0.5; // line 8
	return x;
}
int main(int argc, char **argv) {
	FILE *f = fopen(argv[1], "a");
	fputs("x", f);
	fclose(f);
	sink = spin(atol(argv[2]));
	return 7;
}
`

// withoutPMU is the program on this machine's kernel as if it had no PMU.
func withoutPMU() (*app, *bytes.Buffer) {
	k := measure.ThisKernel()
	k.Cache = nil
	var out, err bytes.Buffer
	return &app{in: strings.NewReader(""), out: &out, err: &err, kernel: k}, &err
}

// TestClocked checks that stat runs a program once where it cannot count cycles. It must name
// the function, line and loop of its time.
func TestClocked(t *testing.T) {
	t.Parallel()
	if ok, err := condition("counts"); err != nil || !ok {
		t.Skipf("no program may be counted here: %v", err)
	}
	sys, err := perfevent.ReadSystem(os.DirFS("/"))
	if err != nil || len(sys.Core()) > 0 {
		t.Skipf("needs a machine without a PMU: %v", err)
	}
	dir := t.TempDir()
	source, program, ran := filepath.Join(dir, "spin.c"), filepath.Join(dir, "spin"), filepath.Join(dir, "ran")
	if err := os.WriteFile(source, []byte(spins), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-O1", "-g", "-o", program, source).CombinedOutput(); err != nil {
		t.Skipf("gcc cannot compile here: %v: %s", err, out)
	}
	a, stderr := withoutPMU()
	kept := filepath.Join(dir, "stat.json")
	if status := a.main(t.Context(), []string{"stat", "--format", "json", "-o", kept, "--", program, ran, "200000000"}); status != 7 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	if text, err := os.ReadFile(ran); err != nil || string(text) != "x" {
		t.Errorf("the program ran %d times: %v", len(text), err)
	}
	text, err := os.ReadFile(kept)
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Accounts []struct {
			Hotspots struct {
				States []struct {
					State string
					Share float64
				}
				Places []struct {
					Function, File string
					Line           int
					Share          float64
					Loop           *struct{ First, Last int }
				}
			}
		}
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	h := d.Accounts[0].Hotspots
	sum := 0.0
	for _, s := range h.States {
		sum += s.Share
	}
	if sum < 0.95 || sum > 1.02 {
		t.Errorf("the states are %v of the time: %+v", sum, h.States)
	}
	if len(h.Places) == 0 {
		t.Fatalf("no places: %s", text)
	}
	if p := h.Places[0]; p.Function != "spin" || filepath.Base(p.File) != "spin.c" || p.Line < 7 || p.Line > 8 || p.Loop == nil {
		t.Errorf("the first place is %+v", p)
	}
	stderr.Reset()
	if status := a.main(t.Context(), []string{"stat", "--width", "80", "--", program, ran, "100000000"}); status != 7 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	screen := stderr.String()
	for _, want := range []string{`sampled by the clock, as`, `(?m)^ +\d+\.\d %  spin +spin\.c:[78]  loop`, `next    cyclestack simulate -- .*spin`, `runs it again, about`} {
		if !regexp.MustCompile(want).MatchString(screen) {
			t.Errorf("no %q:\n%s", want, screen)
		}
	}
	if n := strings.Count(screen, "\n"); n > 24 {
		t.Errorf("%d lines:\n%s", n, screen)
	}
}
