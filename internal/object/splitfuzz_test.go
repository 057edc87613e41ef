package object

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzSplit opens a program whose debug information is in another file, a .dwp or a .dwo, that
// is damaged: its functions keep their names, and a note says what is wrong. The seeds are
// what compilers and dwp make.
func FuzzSplit(f *testing.F) {
	text, err := os.ReadFile("testdata/programs/shapes.c")
	if err != nil {
		f.Fatal(err)
	}
	type build struct{ program, other string }
	var builds []build
	for i, flags := range []string{"-gdwarf-5 -gsplit-dwarf", "-gdwarf-4 -gsplit-dwarf"} {
		dir := f.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "shapes.c"), text, 0o600); err != nil {
			f.Fatal(err)
		}
		commands := [][]string{append(append([]string{"gcc"}, strings.Fields(flags)...), "-O2", "-o", "prog", "shapes.c", "-lm")}
		packer := []string{"llvm-dwp", "dwp"}[i]
		if _, err := exec.LookPath(packer); err == nil {
			commands = append(commands, []string{packer, "-e", "prog", "-o", "prog.dwp"})
		}
		for _, words := range commands {
			cmd := exec.Command(words[0], words[1:]...)
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				f.Skipf("%q: %v\n%s", words, err, out)
			}
		}
		others, err := filepath.Glob(filepath.Join(dir, "*.dw[op]"))
		if err != nil {
			f.Fatal(err)
		}
		for _, other := range others {
			b, err := os.ReadFile(other)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(uint8(len(builds)), b)
			builds = append(builds, build{filepath.Join(dir, "prog"), filepath.Base(other)})
			_ = os.Remove(other)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		x := builds[int(which)%len(builds)]
		// The program is next to its other file; another place keeps runs apart.
		dir := t.TempDir()
		program := filepath.Join(dir, "prog")
		if err := os.Link(x.program, program); err != nil {
			t.Skip(err)
		}
		if err := os.WriteFile(filepath.Join(dir, x.other), b, 0o600); err != nil {
			t.Fatal(err)
		}
		o, err := Open(program, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
		addr := names(t, o)["path"]
		for at := addr; at < addr+64; at += 4 {
			frames := o.Frames(at)
			if len(frames) == 0 || frames[len(frames)-1].Func != "path" {
				t.Fatalf("%#x: %+v", at, frames)
			}
		}
	})
}
