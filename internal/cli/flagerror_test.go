package cli

import (
	"github.com/cyclestack/cyclestack/internal/testkernel"
	"os"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/model"
)

// TestFlagErrors gives flags values that are none of theirs.
func TestFlagErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ args, want string }{
		{"report --level abc x", "cyclestack report: --level: \"abc\" is not an integer (see"},
		{"stat -r 99999999999999999999 true", "cyclestack stat: --repeat: \"99999999999999999999\" is out of range (see"},
		{"record -c -1 true", "cyclestack record: --count: \"-1\" is not an integer from 0 up (see"},
		{"stat -a=maybe", "cyclestack stat: --all-cpus: \"maybe\" is neither true nor false (see"},
		{"report --kallsyms /nonexistent x", `cyclestack report: invalid argument "/nonexistent" for "--kallsyms" flag: no such file or directory (see`},
		{"stat --nonsense", "cyclestack stat: unknown flag: --nonsense (see"},
		{"stat --levle 3 true", "cyclestack stat: unknown flag: --levle: did you mean --level? (see"},
		{"stat -I x true", `it is a number of milliseconds, or a time such as 1.5s (see`},
	} {
		_, stderr, status := call(testkernel.Skylake(1), strings.Fields(tt.args)...)
		if status != exitUsage || !strings.Contains(stderr, tt.want) || strings.Contains(stderr, "strconv") {
			t.Errorf("%s: status %d, %q; want %q", tt.args, status, stderr, tt.want)
		}
	}
}

// TestNative: the processor of this machine has a short name on the command line.
func TestNative(t *testing.T) {
	t.Parallel()
	id, err := model.HostID(os.DirFS("/"))
	if err != nil {
		t.Skip(err)
	}
	var p processor
	if err := p.Set("native"); err != nil || string(p) != id {
		t.Errorf("--cpu native is %q, %v; want %q", p, err, id)
	}
	if err := p.Set("skylake"); err != nil || p != "skylake" {
		t.Errorf("--cpu skylake is %q, %v", p, err)
	}
}
