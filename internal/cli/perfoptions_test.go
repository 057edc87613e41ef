package cli

import (
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// optionRow matches a row of a table of perf's options: the options, and what is here.
var optionRow = regexp.MustCompile(`(?m)^\| (.*-.*) \| (.+) \|$`)

// The documents have each option of perf record and perf report. What they call the same
// is there.
func TestPerfOptions(t *testing.T) {
	a := &app{in: strings.NewReader(""), out: io.Discard, err: io.Discard}
	testPerfOptions(t, a.record(), "record.md", "\n| perf record | cyclestack record |\n", 80)
	testPerfOptions(t, a.report(), "profile.md", "\n| perf report | cyclestack |\n", 75)
}

// testPerfOptions tests the table below heading, which has at least rows options.
func testPerfOptions(t *testing.T, command *cobra.Command, file, heading string, rows int) {
	doc, err := os.ReadFile("../../docs/" + file)
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(doc), heading)
	if !ok {
		t.Fatalf("docs/%s has no table of perf's options", file)
	}
	table, _, _ = strings.Cut(table, "\n\n")
	has := func(name string) bool {
		flags := command.Flags()
		return flags.Lookup(name) != nil || flags.GetNormalizeFunc() != nil && flags.Lookup(string(flags.GetNormalizeFunc()(flags, name))) != nil
	}
	long := regexp.MustCompile(`--([a-z-]+)`)
	short := regexp.MustCompile("`-([A-Za-z])`")
	ofPerf := regexp.MustCompile("`perf [^`]*`")
	listed := map[string]bool{}
	for _, row := range optionRow.FindAllStringSubmatch(table, -1) {
		for _, m := range long.FindAllStringSubmatch(row[1], -1) {
			listed[m[1]] = true
			if strings.HasPrefix(row[2], "the same") && !has(m[1]) {
				t.Errorf("--%s is said to be the same, and %s has no such flag", m[1], command.Name())
			}
			if strings.HasPrefix(row[2], "no") && has(m[1]) {
				t.Errorf("--%s is said to be missing, and %s has it", m[1], command.Name())
			}
		}
		for _, m := range short.FindAllStringSubmatch(row[1], -1) {
			if strings.HasPrefix(row[2], "the same") && command.Flags().ShorthandLookup(m[1]) == nil {
				t.Errorf("-%s is said to be the same, and %s has no such flag", m[1], command.Name())
			}
		}
		// What stands there instead must be there, but for commands of perf.
		for _, m := range long.FindAllStringSubmatch(ofPerf.ReplaceAllString(row[2], ""), -1) {
			if command.Name() == "report" && !has(m[1]) {
				t.Errorf("%s: report has no --%s", row[1], m[1])
			}
		}
	}
	if len(listed) < rows {
		t.Errorf("docs/%s: %d options are in the table", file, len(listed))
	}
	perf := needPerf(t)
	options, _ := perf.command(command.Name(), "--list-opts").Output() // its exit status is 130
	if len(options) < 100 {
		t.Fatalf("perf lists no options: %q", options)
	}
	for _, m := range long.FindAllStringSubmatch(string(options), -1) {
		if !listed[m[1]] {
			t.Errorf("perf %s has --%s, and the table has not", command.Name(), m[1])
		}
	}
}
