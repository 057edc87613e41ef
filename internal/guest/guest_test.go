package guest

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cyclestack/cyclestack/internal/guest/wire"
	"github.com/cyclestack/cyclestack/internal/testlong"
)

// boots are the guests that the tests in internal/guest/inside are run in: those
// of their tests whose names match.
var boots = []struct {
	arch string
	name string // what CYCLESTACK_GUEST is in the guest
	cpu  string
	cpus int
	run  string
}{
	{arch: "arm64", name: "arm64", run: "^TestPMU"},
	{arch: "arm64", name: "arm64-without-pmu", cpu: "neoverse-n1,pmu=off", run: "^TestNoPMU"},
	{arch: "ppc64le", name: "ppc64le", run: "^TestPMU"},
	{arch: "ppc64le", name: "ppc64le-2-cpus", cpus: 2, run: "^TestCPUs"},
	{arch: "riscv64", name: "riscv64", run: "^TestPMU"},
}

// required says whether CYCLESTACK_REQUIRE_GUESTS asks for an architecture: "1" for
// all of them, or their names.
func required(arch string) bool {
	v := os.Getenv("CYCLESTACK_REQUIRE_GUESTS")
	return v == "1" || slices.Contains(strings.Fields(v), arch)
}

// TestGuests runs the tests in internal/guest/inside in guests, and reports each of
// them as its own.
func TestGuests(t *testing.T) {
	if os.Getenv("CYCLESTACK_REQUIRE_GUESTS") == "" {
		testlong.Only(t) // to boot the smallest guest takes longer than all other tests of this package
	}
	dependOnSources(t)
	rig, err := FindRig()
	if err != nil {
		t.Fatal(err)
	}
	for _, arch := range Archs {
		t.Run(arch.GOARCH, func(t *testing.T) {
			if err := rig.Missing(arch); err != nil {
				if required(arch.GOARCH) {
					t.Fatal(err)
				}
				t.Skip(err)
			}
			t.Parallel()
			m := build(t, rig, arch)
			for _, b := range boots {
				if b.arch != arch.GOARCH {
					continue
				}
				m.CPU, m.CPUs = b.cpu, b.cpus
				m.Job = wire.Job{
					Argv: []string{"/bin/inside", "-test.v=test2json", "-test.run=" + b.run},
					Env:  []string{"CYCLESTACK_GUEST=" + b.name},
				}
				t.Run(b.name, func(t *testing.T) { boot(t, rig, m) })
			}
		})
	}
}

// dependOnSources has the go command know that what it caches of this test's results
// holds for these sources only: it remembers which files a test looked at.
func dependOnSources(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join("..", ".."), func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.Name() == ".git":
			return fs.SkipDir
		}
		_, err = os.Stat(name)
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// build builds what goes into a guest.
func build(t *testing.T, rig Rig, arch Arch) Machine {
	t.Helper()
	dir := t.TempDir()
	compile := func(name string, args ...string) string {
		t.Helper()
		out := filepath.Join(dir, name)
		cmd := exec.CommandContext(t.Context(), "go", slices.Concat(args[:len(args)-1],
			[]string{"-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", out}, args[len(args)-1:])...)
		cmd.Dir = filepath.Join("..", "..")
		cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+arch.GOARCH, "CGO_ENABLED=0", "GOFLAGS=")
		if msg, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", cmd.Args, err, msg)
		}
		return out
	}
	files := map[string]string{
		"/init":           compile("init", "build", "./internal/guest/init"),
		"/bin/cyclestack": compile("cyclestack", "build", "./cmd/cyclestack"),
		"/bin/inside":     compile("inside", "test", "-c", "-tags=guest", "./internal/guest/inside"),
	}
	perf, err := os.ReadDir(rig.Perf(arch))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range perf {
		files["/perf/"+f.Name()] = filepath.Join(rig.Perf(arch), f.Name())
	}
	return Machine{Arch: arch, Files: files}
}

// boot runs one guest and reports its tests.
func boot(t *testing.T, rig Rig, m Machine) {
	var output bytes.Buffer
	ctx := t.Context()
	if deadline, ok := t.Deadline(); ok {
		// A guest that hangs is to be reported, not to end this program.
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-30*time.Second))
		defer cancel()
	}
	start := time.Now()
	end, err := rig.Run(ctx, m, &output)
	t.Logf("the guest ran for %.0f s", time.Since(start).Seconds())
	if err != nil {
		t.Fatalf("%v\nThe tests had printed:\n%s", err, output.Bytes())
	}
	results := parseTests(output.String())
	if len(results) == 0 {
		t.Errorf("no test was run: %s", &output)
	}
	failed := false
	for _, r := range results {
		failed = failed || r.status == "FAIL"
		t.Run(r.name, func(t *testing.T) {
			switch t.Log(r.output); r.status {
			case "PASS":
			case "SKIP":
				t.Skip()
			default:
				t.Fail()
			}
		})
	}
	if end.Error != "" || end.Status != 0 && !failed {
		t.Errorf("the tests ended with status %d %s:\n%s", end.Status, end.Error, &output)
	}
}

// A result is that of one test in a guest, subtests included.
type result struct {
	name, status, output string
}

// marked are the lines of a test's output that the testing package itself printed:
// it marks them.
var marked = regexp.MustCompile(`^\x16(?:=== (RUN) +|--- (PASS|FAIL|SKIP): )([^ /\n]+)(?: \(|\n|$)`)

// parseTests reads what a test binary prints for -test.v=test2json, where no test runs in
// parallel with another.
func parseTests(output string) []result {
	var list []result
	var text strings.Builder
	for line := range strings.Lines(output) {
		m := marked.FindStringSubmatch(line)
		switch {
		case m != nil && m[1] == "RUN":
			list = append(list, result{name: m[3], status: "it did not end"})
			text.Reset()
		case m != nil && len(list) > 0 && list[len(list)-1].name == m[3]:
			list[len(list)-1].status = m[2]
		}
		text.WriteString(strings.TrimPrefix(line, "\x16"))
		if len(list) > 0 {
			list[len(list)-1].output = text.String()
		}
	}
	return list
}

func TestParseTests(t *testing.T) {
	results := parseTests("noise\n" +
		"\x16=== RUN   TestA\n    a_test.go:1: --- FAIL: TestA (0.00s)\n\x16=== RUN   TestA/sub\n\x16=== NAME  TestA\n" +
		"\x16--- PASS: TestA (0.01s)\n    \x16--- PASS: TestA/sub (0.00s)\n" +
		"\x16=== RUN   TestB\n    because\n\x16--- SKIP: TestB (0.00s)\n" +
		"\x16=== RUN   TestC\n\x16--- FAIL: TestC (0.00s)\n" +
		"\x16=== RUN   TestD\npanic: no\n")
	var got []string
	for _, r := range results {
		got = append(got, r.name+" "+r.status)
	}
	want := []string{"TestA PASS", "TestB SKIP", "TestC FAIL", "TestD it did not end"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := results[3].output; !strings.Contains(got, "panic: no") {
		t.Errorf("the output of a test that did not end is %q", got)
	}
}

func TestMissing(t *testing.T) {
	a, err := Lookup("arm64")
	if err != nil {
		t.Fatal(err)
	}
	err = Rig{Dir: t.TempDir()}.Missing(a)
	if err == nil || !strings.Contains(err.Error(), "go run ./internal/guest/rig arm64") {
		t.Errorf("Missing = %v, want the command to run", err)
	}
	if _, err := Lookup("mips"); fmt.Sprint(err) != `there are no guests of "mips", only of arm64, ppc64le, riscv64` {
		t.Errorf("Lookup = %v", err)
	}
}
