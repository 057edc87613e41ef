package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/testlong"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// recordWalk writes what the command that is printed for the tutorial's program
// would record: loads that miss the last cache, precisely. All are of the one load
// in the inner loop over the columns.
func recordWalk(t testing.TB, file string) {
	t.Helper()
	const (
		event  = "cpu/event=0xd1,umask=0x20/pp" // MEM_LOAD_RETIRED.L3_MISS
		period = 100_003
		text   = 0x555555555000 // where the program's code was mapped
		load   = text + 0x14e
	)
	s := newSampler(t, file, sampledEvent{event, period, 2, 0})
	s.mmap(text, 0x1000, 0x1000, "/walk")
	s.happened(0, 400*period, load)
	if err := s.w.Close(&perfdata.Features{CPUID: "GenuineIntel,6,94,3", Cmdline: []string{"perf", "record", "-e", event, "--", "./walk", "columns"}}); err != nil {
		t.Fatal(err)
	}
	if err := s.f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestWalkExample has the recording of the tutorial, which is made here: -update
// makes it anew.
func TestWalkExample(t *testing.T) {
	const name = "../../examples/walk/columns.data"
	if *update {
		recordWalk(t, name)
	}
	file := filepath.Join(t.TempDir(), "perf.data")
	recordWalk(t, file)
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what is made here (%v)", name, err)
	}
}

// TestTutorial goes the way of the tutorial on this machine: from stat, which has
// to simulate, to the line.
func TestTutorial(t *testing.T) {
	for _, tool := range []string{"cc", "valgrind"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	testlong.Only(t)
	source, err := filepath.Abs("../../examples/walk/walk.c")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if out, err := exec.Command("cc", "-O1", "-g", "-o", "walk", source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	const caches = "32K,8,64/32K,8,64/8M,16,64/32M,16,64"
	for _, tt := range []struct{ way, want string }{
		// Some ten ticks leave the time in the kernel uncertain. Where page faults are slow
		// it may look as large as the cost of the caches, or larger. Then both are named.
		{"columns", `(?s)L2_Hit +[0-9.]+ %[^\n]*◄ (?:bottleneck|as likely as Kernel|over its threshold, smaller than Kernel).*` +
			`where\n[^\n]*down_columns +walk\.c:1[89] `},
		{"rows", `(?s)where\n[^\n]*along_rows +walk\.c:2[67]`},
	} {
		t.Run(tt.way, func(t *testing.T) {
			t.Parallel()
			var out, msg bytes.Buffer
			status := Main(t.Context(), []string{"stat", "--source", "simulated", "--simulator", "valgrind", "--caches", caches, "--", "./walk", tt.way}, strings.NewReader(""), &out, &msg)
			if status > 127 || !regexp.MustCompile(tt.want).MatchString(msg.String()) {
				t.Errorf("status %d, and no %s in\n%s", status, tt.want, msg.String())
			}
		})
	}
}
