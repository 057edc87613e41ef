package object

import (
	"path"
	"regexp"
	"strings"
	"sync"
)

// A change replaces a part of a name.
type change struct {
	is      *regexp.Regexp
	instead string
}

// builds are the parts of names that change from one build of a program to the next, and
// their replacements.
var builds = sync.OnceValue(func() []change {
	return []change{
		// Parts and copies of functions that GCC and LLVM make: "f.part.0", in names
		// that were demangled "f() [clone .isra.0]". A number by itself tells functions
		// of one name apart after link-time optimisation.
		{regexp.MustCompile(`( ?\[clone [^\]]*\])+$`), ""},
		{regexp.MustCompile(`(\.(part|isra|constprop|cold|lto_priv|localalias|clone|llvm|__uniq|hot|unlikely|warm|specialized|resume|destroy|cleanup)(\.[0-9]+)*|([A-Za-z_$])\.[0-9]+)+$`), "$4"},
		// Recursion levels of callgrind: "f'2".
		{regexp.MustCompile(`'[0-9]+$`), ""},
		// Hashes of Rust's older mangling, and of crates in the newer one.
		{regexp.MustCompile(`::h[0-9a-f]{16}$`), ""},
		{regexp.MustCompile(`([A-Za-z0-9_])\[[0-9a-f]{8,16}\]::`), "$1::"},
		// Functions without a name are numbered as they come in the source: Rust's and
		// C++'s, and those of Go with what it wraps around them.
		{regexp.MustCompile(`\{(closure|lambda\([^{}]*\)|unnamed[^{}#]*)#[0-9]+\}`), "{$1}"},
		{regexp.MustCompile(`\.(func|gowrap|deferwrap)[0-9]+(\.[0-9]+)*`), ".$1"},
		{regexp.MustCompile(`-range[0-9]+`), "-range"},
		// Versions of symbols: "memcpy@@GLIBC_2.14".
		{regexp.MustCompile(`@@?[A-Z][A-Za-z]*_[0-9.]+$`), ""},
	}
})

// BaseName returns a function's name without what changes from one build of its
// program to the next: the suffixes of compilers' clones, the numbers of closures,
// hashes. Several functions may have one base name: a function and its cold part,
// the closures of one function.
func BaseName(function string) string {
	for _, b := range builds() {
		function = b.is.ReplaceAllString(function, b.instead)
	}
	return function
}

// moduleBuilds are the same for the names of modules: versions of libraries, and the
// process of code made at run time.
var moduleBuilds = sync.OnceValue(func() []change {
	return []change{
		{regexp.MustCompile(` \(deleted\)$`), ""},
		{regexp.MustCompile(`(-[0-9]+(\.[0-9]+)+)?\.so(\.[0-9]+)*$`), ".so"},
		{regexp.MustCompile(`^(perf|jitted)-[0-9]+(-[0-9]+)?\.`), "$1."},
	}
})

// BaseModule returns a module's name without its directory and what changes from
// one build or run to the next.
func BaseModule(module string) string {
	if strings.Contains(module, "/") {
		module = path.Base(module)
	}
	for _, b := range moduleBuilds() {
		module = b.is.ReplaceAllString(module, b.instead)
	}
	return module
}
