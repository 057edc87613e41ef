package cli

import (
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
)

// optionRow matches a row of the table of perf record's options: the options, and what
// record has.
var optionRow = regexp.MustCompile(`(?m)^\| (.*-.*) \| (.+) \|$`)

// docs/record.md has each option of perf record, and record has those that it calls the same.
func TestRecordOptions(t *testing.T) {
	doc, err := os.ReadFile("../../docs/record.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(doc), "\n| perf record | cyclestack record |\n")
	if !ok {
		t.Fatal("docs/record.md has no table of perf record's options")
	}
	flags := (&app{in: strings.NewReader(""), out: io.Discard, err: io.Discard}).record().Flags()
	long := regexp.MustCompile(`--([a-z-]+)`)
	short := regexp.MustCompile("`-([A-Za-z])`")
	listed := map[string]bool{}
	for _, row := range optionRow.FindAllStringSubmatch(table, -1) {
		for _, m := range long.FindAllStringSubmatch(row[1], -1) {
			listed[m[1]] = true
			if strings.HasPrefix(row[2], "the same") && flags.Lookup(m[1]) == nil {
				t.Errorf("--%s is said to be the same, and record has no such flag", m[1])
			}
			if strings.HasPrefix(row[2], "no: not done yet") && flags.Lookup(m[1]) != nil {
				t.Errorf("--%s is said to be missing, and record has it", m[1])
			}
		}
		for _, m := range short.FindAllStringSubmatch(row[1], -1) {
			if strings.HasPrefix(row[2], "the same") && flags.ShorthandLookup(m[1]) == nil {
				t.Errorf("-%s is said to be the same, and record has no such flag", m[1])
			}
		}
	}
	if len(listed) < 80 {
		t.Errorf("%d options are in the table", len(listed))
	}
	perf := needPerf(t)
	options, _ := perf.command("record", "--list-opts").Output() // its exit status is 130
	if len(options) < 100 {
		t.Fatalf("perf lists no options: %q", options)
	}
	for _, m := range long.FindAllStringSubmatch(string(options), -1) {
		if !listed[m[1]] {
			t.Errorf("perf has --%s, and the table has not", m[1])
		}
	}
}
