package cli

import (
	"strings"

	"github.com/cyclestack/cyclestack/account"
)

// provenance says what the end of a command line counts: nothing, a program from its
// start to its end, or something else.
func provenance(again []string) account.Provenance {
	return account.Provenance{Live: len(again) > 0, Started: len(again) > 0 && again[0] == "--"}
}

// sameAgain returns the end of a command line that counts the same target once
// more: its flags, and the program behind "--".
func (f *targetFlags) sameAgain(program []string) []string {
	var words []string
	if f.all {
		words = append(words, "-a")
	}
	for _, of := range []struct{ flag, value string }{
		{"-C", f.cpus}, {"-p", f.pids}, {"-t", f.tids}, {"-G", strings.Join(f.cgroups, ",")}, {"--timeout", f.timeout.String()},
	} {
		if of.value != "" {
			words = append(words, of.flag, of.value)
		}
	}
	if len(program) > 0 {
		words = append(append(words, "--"), program...)
	}
	return words
}
