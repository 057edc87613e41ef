// Package optional lets numbers follow the letters of flags whose value may be absent, as in
// perf's record -z5.
//
//	root.SetArgs(optional.Attached(root, args))
package optional

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Attached returns a program's arguments with a "=" before such numbers: -z5 becomes -z=5. It
// leaves the first argument of the command that is no flag, and what follows, as they are: they
// may be another program's.
func Attached(root *cobra.Command, args []string) []string {
	for _, c := range root.Commands() {
		if len(args) > 0 && c.Name() == args[0] {
			return append(args[:1:1], ofCommand(c.Flags(), args[1:])...)
		}
	}
	return args
}

func ofCommand(flags *pflag.FlagSet, args []string) []string {
	out := append([]string(nil), args...)
	for i := 0; i < len(out); i++ {
		a := out[i]
		takesNext := false
		switch {
		case a == "--" || len(a) < 2 || a[0] != '-':
			return out
		case a[1] == '-':
			f := flags.Lookup(a[2:])
			takesNext = f != nil && f.NoOptDefVal == ""
		default:
			out[i], takesNext = ofLetters(flags, a)
		}
		if takesNext {
			i++
		}
	}
	return out
}

// ofLetters spells an argument of letters. The value of the last one may be the next argument.
func ofLetters(flags *pflag.FlagSet, a string) (spelt string, takesNext bool) {
	for at := 1; at < len(a); at++ {
		f := flags.ShorthandLookup(a[at : at+1])
		switch rest := a[at+1:]; {
		case f == nil || strings.HasPrefix(rest, "="):
			return a, false
		case f.NoOptDefVal == "":
			return a, rest == ""
		case rest != "" && rest[0] >= '0' && rest[0] <= '9':
			return a[:at+1] + "=" + rest, false
		}
	}
	return a, false
}
