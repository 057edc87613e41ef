package shell

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
	"unicode"

	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
)

// TestLine: a shell takes the words apart again, and a terminal prints them.
func TestLine(t *testing.T) {
	words := []string{"./app", "a b", "it's", "", "é", `\x`, "\x1b]0;x\a\r", "\xff\n'\\", "\u200e"}
	line := Line(words)
	if strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
		t.Errorf("%q is not to be printed", line)
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	out, err := exec.Command(bash, "-c", `printf '%s\0' `+line).Output()
	if got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"); err != nil || !slices.Equal(got, words) {
		t.Errorf("%s is %q (%v), want %q", line, got, err, words)
	}
}
