package object

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A program is a source file under testdata/programs, and ways to build it.
type program struct {
	name    string
	command string // {src} and {out} stand for the files
	inline  string // a function that is inlined into another one
}

var programs = []program{
	{"c", "gcc -g -O2 -o {out} shapes.c -lm", "square"},
	{"c-dwarf4-pie", "gcc -gdwarf-4 -O3 -fPIE -pie -o {out} shapes.c -lm", "square"},
	{"c-dwarf3", "gcc -gdwarf-3 -gstrict-dwarf -O1 -o {out} shapes.c -lm", ""},
	{"c-dwarf2-compressed", "gcc -gdwarf-2 -gz -O2 -o {out} shapes.c -lm", ""},
	{"c-dwarf5-relative", "gcc -gdwarf-5 -O2 -o {out} ../programs/shapes.c -lm", "square"},
	{"c-dwarf4-relative", "gcc -gdwarf-4 -O2 -o {out} ../programs/shapes.c -lm", "square"},
	{"c-clang", "clang -g -O2 -o {out} shapes.c -lm", "square"},
	{"c++", "g++ -g -O2 -o {out} trees.cc", "_ZN5trees4NodeIiE6insertEi"},
	{"c++-sections", "g++ -g -O1 -ffunction-sections -Wl,--gc-sections -o {out} trees.cc", ""},
	{"rust", "rustc -g -O -o {out} words.rs", ""},
	{"go", "go build -o {out} primes.go", "main.sieve.mark"},
	{"go-dwarf4", "env GOEXPERIMENT=nodwarf5 go build -o {out} primes.go", "main.sieve.mark"},
	{"go-dwarf4-pie", "env GOEXPERIMENT=nodwarf5 go build -buildmode=pie -o {out} primes.go", "main.sieve.mark"},
}

// build builds a program, or skips the test where the compiler is missing.
func (p program) build(t testing.TB) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "program")
	words := strings.Fields(strings.ReplaceAll(p.command, "{out}", out))
	compiler := words[0]
	if compiler == "env" {
		compiler = words[2]
	}
	if _, err := exec.LookPath(compiler); err != nil {
		t.Skipf("needs %s", compiler)
	}
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir = filepath.Join("testdata", "programs")
	cmd.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false", "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("%s cannot build here: %v\n%s", compiler, err, text)
	}
	return out
}

func open(t testing.TB, path string, options Options) *Object {
	t.Helper()
	o, err := Open(path, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	return o
}
