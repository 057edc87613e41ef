package counts

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Name makes a name of what a file calls something: what is no character, or controls a
// terminal, is replaced. Names are for people, and files come from anywhere.
func Name(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(text, string(utf8.RuneError)))
}
