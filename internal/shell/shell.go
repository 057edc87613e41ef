// Package shell quotes words for command lines that are copied to a shell.
package shell

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line joins words to a command line that a shell divides into the same words.
func Line(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = Quote(w)
	}
	return strings.Join(quoted, " ")
}

// Quote returns a word as a POSIX shell takes it. A word that would not print is quoted
// with $'…', which bash, ksh and zsh take.
func Quote(s string) string {
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./+:@%,=") == "" && s != "" {
		return s
	}
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return dollarQuote(s)
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// dollarQuote is Quote for what must not reach a terminal as it is.
func dollarQuote(s string) string {
	var b strings.Builder
	b.WriteString("$'")
	for i, r := range s {
		switch _, size := utf8.DecodeRuneInString(s[i:]); {
		case r == '\'' || r == '\\':
			b.WriteString("\\" + string(r))
		case unicode.IsPrint(r) && (r != utf8.RuneError || size > 1):
			b.WriteRune(r)
		default:
			for _, c := range []byte(s[i : i+size]) {
				fmt.Fprintf(&b, "\\%03o", c)
			}
		}
	}
	b.WriteByte('\'')
	return b.String()
}
