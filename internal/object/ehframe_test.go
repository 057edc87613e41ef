package object_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/cyclestack/cyclestack/internal/object"
)

// TestUnwound checks that a stripped program's functions are found at the addresses that nm
// prints of the program before stripping.
func TestUnwound(t *testing.T) {
	for _, tool := range []string{"gcc", "strip", "nm"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	dir := t.TempDir()
	source, program := filepath.Join(dir, "a.c"), filepath.Join(dir, "a")
	text := `__attribute__((noinline)) static int one(int x) { return x * 3; }
__attribute__((noinline)) static int two(int x) { return one(x) + 1; }
int main(int argc, char **argv) { return two(argc); }
`
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
		if err != nil {
			t.Skipf("%v: %v: %s", args, err, out)
		}
		return string(out)
	}
	run("gcc", "-O1", "-o", program, source)
	symbols := run("nm", program)
	run("strip", program)
	o, err := object.Open(program, object.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	for _, name := range []string{"one", "two", "main"} {
		found := regexp.MustCompile(`(?m)^([0-9a-f]+) [tT] ` + name + `$`).FindStringSubmatch(symbols)
		if found == nil {
			t.Fatalf("nm has no %s: %s", name, symbols)
		}
		var addr uint64
		if _, err := fmt.Sscanf(found[1], "%x", &addr); err != nil {
			t.Fatal(err)
		}
		if s, ok := o.Symbol(addr + 1); !ok || s.Addr != addr || s.Name != fmt.Sprintf("%#x", addr) || s.Size == 0 || s.Size > 64 {
			t.Errorf("%s at %#x: %+v, %v", name, addr, s, ok)
		}
	}
}
