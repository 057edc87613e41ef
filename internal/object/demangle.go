package object

import (
	"strconv"
	"strings"

	"github.com/ianlancetaylor/demangle"
)

// maxDemangled is the longest name that is made, as a power of two. A short
// symbol can state a name of any length.
const maxDemangled = 14

// Demangle returns the name that programmers know of a C++, Rust or Go function's symbol, with
// or without parameters. Other names stay as they are.
func Demangle(name string, parameters bool) string {
	// A suffix such as @plt or @@VERSION is no part of the mangled name.
	base, suffix := name, ""
	if at := strings.IndexByte(name, '@'); at > 0 {
		base, suffix = name[:at], name[at:]
	}
	if !strings.HasPrefix(base, "_Z") && !strings.HasPrefix(base, "_R") && !strings.HasPrefix(base, "__Z") && !strings.HasPrefix(base, "_GLOBAL_") {
		return name
	}
	if strings.HasPrefix(base, "_ZN") && isOldRust(base) {
		base = underscored(base)
	}
	options := []demangle.Option{demangle.MaxLength(maxDemangled)}
	if !parameters {
		options = append(options, demangle.NoParams)
	}
	return demangle.Filter(base, options...) + suffix
}

// isOldRust reports whether a symbol ends with the hash of Rust's old mangling.
func isOldRust(symbol string) bool {
	const hash = "17h0123456789abcdefE"
	at := len(symbol) - len(hash)
	return at > 0 && symbol[at:at+3] == hash[:3] && symbol[len(symbol)-1] == 'E'
}

// underscored returns a symbol of Rust's old mangling with another underscore before each identifier that begins
// with one: package demangle takes the first for a separator, as in the new mangling.
func underscored(symbol string) string {
	out, rest := make([]byte, 0, len(symbol)+len(symbol)/8), symbol[3:]
	out = append(out, "_ZN"...)
	for len(rest) > 0 && rest[0] != 'E' {
		digits := 0
		for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
			digits++
		}
		n, err := strconv.Atoi(rest[:digits])
		if err != nil || n > len(rest)-digits {
			return symbol
		}
		id := rest[digits : digits+n]
		if rest = rest[digits+n:]; strings.HasPrefix(id, "_") {
			out = append(strconv.AppendInt(out, int64(n+1), 10), '_')
		} else {
			out = strconv.AppendInt(out, int64(n), 10)
		}
		out = append(out, id...)
	}
	return string(append(out, rest...))
}
