package optional_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/cyclestack/cyclestack/internal/optional"
)

// TestAttached has the spellings that perf record 6.1 takes: a level is attached to its letter,
// and a separate word is the program.
func TestAttached(t *testing.T) {
	record := &cobra.Command{Use: "record"}
	flags := record.Flags()
	flags.IntP("compression-level", "z", 0, "")
	flags.Lookup("compression-level").NoOptDefVal = "1"
	flags.BoolP("callchains", "g", false, "")
	flags.StringP("output", "o", "", "")
	root := &cobra.Command{Use: "cyclestack"}
	root.AddCommand(record)
	for given, want := range map[string]string{
		"record -z5 gzip -z9":                 "record -z=5 gzip -z9",
		"record -gz19 -- gzip -z9":            "record -gz=19 -- gzip -z9",
		"record -z -g gzip":                   "record -z -g gzip",
		"record -z 5":                         "record -z 5",
		"record -o -z5 -z3 true":              "record -o -z5 -z=3 true",
		"record --output -z5 -z3 true":        "record --output -z5 -z=3 true",
		"record --output=x -z3 true":          "record --output=x -z=3 true",
		"record -oz5 -z=4 true":               "record -oz5 -z=4 true",
		"record --compression-level -z7 true": "record --compression-level -z=7 true",
		"record -yz5":                         "record -yz5",
		"record":                              "record",
		"stat -z5":                            "stat -z5",
		"":                                    "",
	} {
		args := strings.Fields(given)
		before := slices.Clone(args)
		if got := strings.Join(optional.Attached(root, args), " "); got != want {
			t.Errorf("%q: %q, want %q", given, got, want)
		}
		if !slices.Equal(args, before) {
			t.Errorf("%q: the arguments were changed", given)
		}
	}
}
