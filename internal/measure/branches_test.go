package measure_test

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/internal/testlong"
)

// Filters of branches are the bits that perf itself gives the kernel.
func TestBranches(t *testing.T) {
	var b measure.Branches
	for _, text := range []string{"", "u", "any,x", "u,k"} {
		if err := b.Set(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
		b = 0
	}
	perf, err := exec.LookPath("perf")
	if err != nil {
		t.Skip("needs perf")
	}
	names := []string{"USER", "KERNEL", "HV", "ANY", "ANY_CALL", "ANY_RETURN", "IND_CALL", "ABORT_TX", "IN_TX", "NO_TX", "COND",
		"CALL_STACK", "IND_JUMP", "CALL", "NO_FLAGS", "NO_CYCLES", "TYPE_SAVE", "HW_INDEX", "PRIV_SAVE"} // as perf prints the bits
	field := regexp.MustCompile(`branch_sample_type +(\S+)`)
	for _, text := range []string{"any,u", "any_call,k,save_type", "any_ret,hv", "ind_call,u,k", "cond,abort_tx", "in_tx,any", "no_tx,any",
		"stack,u", "ind_jmp,u", "call,u", "priv,any,u"}[:testlong.Size(4, 11)] { // perf takes 0.2 s for each
		out, _ := exec.Command(perf, "record", "-vv", "-j", text, "-e", "cpu-clock", "-o", "/dev/null", "true").CombinedOutput()
		m := field.FindSubmatch(out)
		if m == nil {
			t.Skipf("perf does not print its filter: %.300s", out)
		}
		var b measure.Branches
		if err := b.Set(text); err != nil {
			t.Error(err)
		}
		var list []string
		for i, n := range names {
			if b>>i&1 != 0 {
				list = append(list, n)
			}
		}
		if got := strings.Join(list, "|"); got != string(m[1]) {
			t.Errorf("%s: %s, and perf has %s", text, got, m[1])
		}
	}
}
