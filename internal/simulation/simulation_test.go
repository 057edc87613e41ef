package simulation_test

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/simulation"
)

// TestRun simulates a program with its timing, and reads again what is kept.
func TestRun(t *testing.T) {
	t.Parallel()
	for simulator, tool := range map[simulation.Simulator]string{simulation.QEMU: "qemu", simulation.Valgrind: "callgrind"} {
		t.Run(string(simulator), func(t *testing.T) { testRun(t, simulator, tool) })
	}
}

func testRun(t *testing.T, simulator simulation.Simulator, tool string) {
	if err := simulation.Missing(simulator); err != nil {
		t.Skip(err)
	}
	program, err := exec.LookPath("true")
	if err != nil {
		t.Skip(err)
	}
	o := simulation.Options{Simulator: simulator, Args: []string{program}, Caches: simulation.Typical(), Core: simulation.HostCoreOf("amdzen4", nil),
		Latencies: simulation.Latencies{L2: 10, L3: 40, Memory: 300, Least: 0.1}}
	r, err := simulation.Run(t.Context(), o)
	if err != nil {
		t.Skipf("valgrind does not work here: %v", err)
	}
	defer r.Close()
	_, table, err := r.Tables()
	if err != nil || !slices.ContainsFunc(table.Columns, func(c counts.Column) bool { return c.Event == "Ir" }) {
		t.Fatalf("columns %+v, %v", table.Columns, err)
	}
	if r.Tool != tool || r.State.ExitCode() != 0 || len(table.Scopes) < 10 {
		t.Errorf("by %s, %v, %d scopes", r.Tool, r.State, len(table.Scopes))
	}
	timed := slices.ContainsFunc(table.Columns, func(c counts.Column) bool { return c.Event == "Ct" })
	if timed != (o.Core != nil && len(r.Notes) == 0) {
		t.Errorf("timed %v with the core %v, notes %v", timed, o.Core != nil, r.Notes)
	}
	var file bytes.Buffer
	if err := r.Keep(&file, "AuthenticAMD-25-17", o.Core.Name); err != nil || !simulation.Detect(file.Bytes()) {
		t.Fatalf("what is kept is not recognised: %v", err)
	}
	again := simulation.NewReader(&file, "kept", simulation.ReaderOptions{By: counts.Line, Within: counts.By(0).With(counts.Function), Chains: simulator == simulation.Valgrind})
	defer again.Close()
	if !again.Next() || again.Kind() != "callgrind" {
		t.Fatalf("kind %q, %v", again.Kind(), again.Err())
	}
	if again.Core() != o.Core.Name || again.Table().CPU != "AuthenticAMD-25-17" {
		t.Errorf("kept core %q of %q", again.Core(), again.Table().CPU)
	}
	kept := map[counts.Code]int{} // the row
	for i, s := range again.Table().Scopes[1:] {
		kept[*s.Code] = i + 1
	}
	for i, s := range table.Scopes {
		row := 0
		if s.Code != nil {
			row = kept[*s.Code]
		}
		if !slices.Equal(table.Row(i), again.Table().Row(row)) {
			t.Fatalf("%s: %v, kept %v", s.Label, table.Row(i), again.Table().Row(row))
		}
	}
}

// TestRunErrors checks what is returned for programs that cannot be simulated.
func TestRunErrors(t *testing.T) {
	t.Parallel()
	if err := simulation.Installed(); err != nil {
		t.Skip(err)
	}
	o := simulation.Options{Args: []string{"no-such-program"}, Caches: simulation.Typical()}
	if _, err := simulation.Run(t.Context(), o); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("got %v, want that there is no such program", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o.Args = []string{"true"}
	if _, err := simulation.Run(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was cancelled", err)
	}
}

// TestOnly reads the costs of one function.
func TestOnly(t *testing.T) {
	t.Parallel()
	const file = "version: 1\nevents: Ir\nfn=f\n1 5\nfn=g\n2 7\n"
	only := func(c *counts.Code) bool { return c.Function == "g" }
	r := simulation.NewReader(strings.NewReader(file), "x", simulation.ReaderOptions{Only: only})
	defer r.Close()
	if !r.Next() || r.Table().Cell(0, 0).Value != 7 {
		t.Errorf("got %+v, %v", r.Table(), r.Err())
	}
}
