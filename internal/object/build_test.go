package object

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/testlong"
)

// A program is a source file under testdata/programs, and ways to build it.
type program struct {
	name    string
	command string // {src} and {out} stand for the files
	inline  string // a function that is inlined into another one
	long    bool   // it is large, and compared with -long only
}

var programs = []program{
	{"c", "gcc -g -O2 -o {out} shapes.c -lm", "square", false},
	{"c-dwarf4-pie", "gcc -gdwarf-4 -O3 -fPIE -pie -o {out} shapes.c -lm", "square", true},
	{"c-no-build-id", "gcc -g -O2 -Wl,--build-id=none -o {out} shapes.c -lm", "square", false},
	{"c-dwarf3", "gcc -gdwarf-3 -gstrict-dwarf -O1 -o {out} shapes.c -lm", "", true},
	{"c-dwarf2-compressed", "gcc -gdwarf-2 -gz -O2 -o {out} shapes.c -lm", "", false},
	{"c-dwarf5-relative", "gcc -gdwarf-5 -O2 -o {out} ../programs/shapes.c -lm", "square", false},
	{"c-dwarf4-relative", "gcc -gdwarf-4 -O2 -o {out} ../programs/shapes.c -lm", "square", true},
	{"c-clang", "clang -g -O2 -o {out} shapes.c -lm", "square", true},
	{"c++", "g++ -g -O2 -o {out} trees.cc", "_ZN5trees4NodeIiE6insertEi", false},
	{"c++-sections", "g++ -g -O1 -ffunction-sections -Wl,--gc-sections -o {out} trees.cc", "", true},
	{"rust", "rustc -g -O -o {out} words.rs", "", true},
	{"go", "go build -trimpath=false -o {out} primes.go", "main.sieve.mark", true},
	{"go-dwarf4", "env GOEXPERIMENT=nodwarf5 go build -o {out} primes.go", "main.sieve.mark", false},
	{"go-dwarf4-pie", "env GOEXPERIMENT=nodwarf5 go build -buildmode=pie -o {out} primes.go", "main.sieve.mark", true},
}

var (
	buildDir string              // of the programs that tests share
	built    = map[string]bool{} // by their names
)

func TestMain(m *testing.M) {
	var err error
	if buildDir, err = os.MkdirTemp("", "object-"); err != nil {
		panic(err)
	}
	status := m.Run()
	os.RemoveAll(buildDir)
	os.Exit(status)
}

// build builds a program once for all tests, or skips the test where the compiler is
// missing.
func (p program) build(t testing.TB) string {
	t.Helper()
	if p.long {
		testlong.Only(t)
	}
	out := filepath.Join(buildDir, p.name)
	if built[p.name] {
		return out
	}
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
	built[p.name] = true
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
