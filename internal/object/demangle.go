package object

import (
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
	options := []demangle.Option{demangle.MaxLength(maxDemangled)}
	if !parameters {
		options = append(options, demangle.NoParams)
	}
	return demangle.Filter(base, options...) + suffix
}
