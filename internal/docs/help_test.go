package docs_test

import (
	"bytes"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/cyclestack/cyclestack/internal/cli"
	"github.com/cyclestack/cyclestack/internal/extra"
)

// TestHelpExamples runs the examples in the help of each command, except those
// with files that a user would have. What follows a command after two
// blanks or more is a remark.
func TestHelpExamples(t *testing.T) {
	t.Chdir(root)
	run := 0
	for _, command := range commands(t) {
		examples := section(help(t, command, "--help"), "Examples:")
		if examples == "" {
			t.Errorf("help of %s: no examples", command)
		}
		for line := range strings.Lines(strings.ReplaceAll(examples, " \\\n     ", "")) { // a command's lines are one
			example, _, _ := strings.Cut(strings.TrimSpace(line), "  ")
			args, err := words(example)
			if err != nil || args[0] != "cyclestack" || slices.ContainsFunc(args, absent) {
				continue
			}
			run++
			var out bytes.Buffer
			if status := cli.Main(t.Context(), args[1:], strings.NewReader(""), &out, &out); status > 1 {
				t.Errorf("help of %s: %s: status %d\n%s", command, example, status, out.String())
			}
		}
	}
	if run == 0 {
		t.Error("no examples were run")
	}
}

// TestExtraHelp: each command of the second executable is listed by the first, with the
// same words, and has examples.
func TestExtraHelp(t *testing.T) {
	t.Chdir(root)
	var out bytes.Buffer
	if status := extra.Main(t.Context(), []string{"--help"}, strings.NewReader(""), &out, io.Discard); status != 0 {
		t.Fatalf("status %d", status)
	}
	own, listed := section(out.String(), "In cyclestack-extra:"), section(help(t, "--help"), "In cyclestack-extra:")
	if own == "" || own != listed {
		t.Errorf("cyclestack-extra has\n%s\nand cyclestack lists\n%s", own, listed)
	}
	for line := range strings.Lines(own) {
		name := strings.Fields(line)[0]
		out.Reset()
		if status := extra.Main(t.Context(), []string{name, "--help"}, strings.NewReader(""), &out, io.Discard); status != 0 || section(out.String(), "Examples:") == "" {
			t.Errorf("help of %s: status %d, or no examples", name, status)
		}
		for line := range strings.Lines(out.String()) {
			if utf8.RuneCountInString(strings.TrimRight(line, "\n")) > 80 {
				t.Errorf("help of %s: wider than 80 columns: %s", name, line)
			}
		}
	}
}

// absent reports whether an argument is a file that is not in the repository.
func absent(arg string) bool {
	for _, ext := range []string{".csv", ".json", ".toml", ".txt"} {
		if strings.HasSuffix(arg, ext) {
			_, err := os.Stat(arg)
			return err != nil
		}
	}
	return false
}

// commands returns the names of the commands that the help lists.
func commands(t *testing.T) []string {
	t.Helper()
	var list []string
	text := help(t, "--help")
	for _, title := range []string{"Accounts:", "The catalogue:"} {
		for line := range strings.Lines(section(text, title)) {
			name := strings.Fields(line)[0]
			if name != "help" && name != "completion" {
				list = append(list, name)
			}
		}
	}
	return list
}

func help(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	if status := cli.Main(t.Context(), args, strings.NewReader(""), &out, io.Discard); status != 0 {
		t.Fatalf("%s: status %d", strings.Join(args, " "), status)
	}
	return out.String()
}

// section returns the lines of a help text under a heading, up to a blank one.
func section(text, heading string) string {
	_, text, _ = strings.Cut(text, heading+"\n")
	text, _, _ = strings.Cut(text, "\n\n")
	return text
}
