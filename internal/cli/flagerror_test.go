package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/cyclestack/cyclestack/internal/testkernel"
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
		{"annotate -s main x", "cyclestack annotate: unknown shorthand flag: 's' in -s, as perf has it; here: the function is an argument (see"},
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

// TestFlagsOfPerf types each option of perf record and perf report that the documents list. It
// is a flag here, or is answered with the text of its row. -update writes the answers.
func TestFlagsOfPerf(t *testing.T) {
	var answers strings.Builder
	others, _, _ := strings.Cut(elsewhere, "record\n")
	answers.WriteString(others)
	row := regexp.MustCompile("(?m)^\\| (`-[^|]*`) \\| (.*) \\|$")
	option := regexp.MustCompile("`(-[^`]*)`")
	link := regexp.MustCompile("`|\\]\\([^)]*\\)|\\[")
	for _, doc := range []struct {
		command, file string
		make          func(*app) *cobra.Command
	}{{"record", "record.md", (*app).record}, {"report", "profile.md", (*app).report}} {
		text, err := os.ReadFile("../../docs/" + doc.file)
		if err != nil {
			t.Fatal(err)
		}
		_, table, _ := strings.Cut(string(text), "\n## perf "+doc.command+"'s options\n")
		table, _, _ = strings.Cut(table, "\n## ")
		rows := row.FindAllStringSubmatch(table, -1)
		if len(rows) < 50 {
			t.Fatalf("%s has %d rows", doc.file, len(rows))
		}
		answers.WriteString(doc.command + "\n")
		flags := doc.make(&app{}).Flags()
		var texts []string           // each once
		names := map[string]string{} // by text
		for _, r := range rows {
			here, unknown := link.ReplaceAllString(r[2], ""), ""
			for _, o := range option.FindAllStringSubmatch(r[1], -1) {
				name := strings.TrimLeft(o[1], "-")
				if len(o[1]) == 2 && flags.ShorthandLookup(name) != nil || flags.Lookup(name) != nil {
					continue
				}
				unknown += " " + name
				_, stderr, status := call(testkernel.Skylake(1), doc.command, o[1], "x")
				want := "as perf has it; here: " + here + " (see"
				if why, not := strings.CutPrefix(here, "no: "); not {
					want = "as perf has it; not here: " + why + " (see"
				}
				if status != exitUsage || !strings.Contains(stderr, want) {
					t.Errorf("%s %s: status %d, %q; want %q", doc.command, o[1], status, stderr, want)
				}
			}
			if unknown != "" {
				if names[here] == "" {
					texts = append(texts, here)
				}
				names[here] += unknown
			}
		}
		for _, here := range texts {
			answers.WriteString(names[here][1:] + ": " + here + "\n")
		}
	}
	if answers.String() == elsewhere {
		return
	}
	t.Error("elsewhere.txt differs from the documents: go test ./internal/cli -run FlagsOfPerf -update")
	if *update {
		if err := os.WriteFile("elsewhere.txt", []byte(answers.String()), 0o644); err != nil {
			t.Error(err)
		}
	}
}
