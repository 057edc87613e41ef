package object

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cyclestack/cyclestack/internal/testlong"
)

// splitCases are ways to put debug information into other files. The code stays the same.
var splitCases = []struct {
	name, flags string
	after       []string // commands; the program is prog
	long        bool
}{
	{".dwo of DWARF 5", "-gdwarf-5 -gsplit-dwarf", nil, false},
	{".dwo of GNU, DWARF 4", "-gdwarf-4 -gsplit-dwarf", nil, false},
	{".dwp of DWARF 5", "-gdwarf-5 -gsplit-dwarf", []string{"llvm-dwp -e prog -o prog.dwp", "sh -c 'rm *.dwo'"}, true},
	{".dwp of GNU, DWARF 4", "-gdwarf-4 -gsplit-dwarf", []string{"dwp -e prog -o prog.dwp", "sh -c 'rm *.dwo'"}, true},
	{"dwz", "-gdwarf-5", []string{"cp prog other", "dwz -m shared.debug prog other"}, false},
	{"dwz of DWARF 4", "-gdwarf-4", []string{"cp prog other", "dwz -m shared.debug prog other"}, true},
	{"dwz of one file", "-gdwarf-5", []string{"dwz prog"}, true},
	{"dwz with DWARF 5's forms", "-gdwarf-5", []string{"cp prog other", "dwz -5 -m shared.debug prog other"}, true},
}

// TestDebugInOtherFiles compares the frames of all instructions with those of the same
// program that has its debug information with it.
func TestDebugInOtherFiles(t *testing.T) {
	for _, tt := range splitCases {
		t.Run(tt.name, func(t *testing.T) {
			compiler, source := "gcc", "shapes.c"
			if tt.long {
				testlong.Only(t)
				compiler, source = "g++", "trees.cc"
			}
			dir := t.TempDir()
			for _, name := range []string{"shapes.c", "trees.cc"} {
				text, err := os.ReadFile(filepath.Join("testdata", "programs", name))
				if err != nil {
					t.Fatal(err)
				}
				write(t, filepath.Join(dir, name), string(text))
			}
			whole := strings.ReplaceAll(tt.flags, "-gsplit-dwarf", "")
			for out, flags := range map[string]string{"prog": tt.flags, "whole": whole} {
				run(t, dir, compiler, append(strings.Fields(flags), "-O2", "-o", out, source, "-lm")...)
			}
			for _, command := range tt.after {
				words := strings.Fields(command)
				if strings.HasPrefix(command, "sh -c ") {
					words = []string{"sh", "-c", strings.Trim(command[6:], "'")}
				}
				if _, err := exec.LookPath(words[0]); err != nil {
					t.Skipf("needs %s", words[0])
				}
				cmd := exec.Command(words[0], words[1:]...)
				cmd.Dir = dir
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Skipf("%s: %v\n%s", command, err, out)
				}
			}
			compareObjects(t, open(t, filepath.Join(dir, "prog"), Options{}), open(t, filepath.Join(dir, "whole"), Options{}))
		})
	}
}

// compareObjects compares the frames of two builds with the same code.
func compareObjects(t *testing.T, got, want *Object) {
	t.Helper()
	inlined := 0
	for _, addr := range instructionsOf(t, want, 3000) {
		frames := want.Frames(addr)
		if d := cmp.Diff(frames, got.Frames(addr)); d != "" {
			t.Fatalf("%#x (-whole +here):\n%s\nnotes: %q", addr, d, got.Notes())
		}
		inlined += truth(len(frames) > 1)
	}
	if inlined == 0 {
		t.Error("no instruction is of an inlined call")
	}
	if notes := got.Notes(); len(notes) > 0 {
		t.Errorf("notes %q", notes)
	}
}

// TestSplitIsMissing: without the other files a note names them, and lines remain.
func TestSplitIsMissing(t *testing.T) {
	dir := t.TempDir()
	text, err := os.ReadFile("testdata/programs/shapes.c")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "shapes.c"), string(text))
	run(t, dir, "gcc", "-g", "-gsplit-dwarf", "-O2", "-o", "prog", "shapes.c", "-lm")
	run(t, dir, "sh", "-c", "rm *.dwo")
	o := open(t, filepath.Join(dir, "prog"), Options{})
	addr := names(t, o)["path"]
	if file, line := o.Line(addr); line == 0 || filepath.Base(file) != "shapes.c" {
		t.Errorf("path is at %s:%d", file, line)
	}
	if frames := o.Frames(addr); len(frames) != 1 || frames[0].Func != "path" {
		t.Errorf("frames %+v", frames)
	}
	if notes := strings.Join(o.Notes(), "\n"); !strings.Contains(notes, ".dwo") {
		t.Errorf("nothing is said of the other file: %q", notes)
	}
	run(t, dir, "gcc", "-g", "-gsplit-dwarf", "-O1", "-o", "prog", "shapes.c", "-lm")
	run(t, dir, "sh", "-c", "cp *.dwo kept; gcc -g -gsplit-dwarf -O2 -o prog shapes.c -lm; for f in *.dwo; do mv kept $f; done")
	o = open(t, filepath.Join(dir, "prog"), Options{})
	o.Frames(addr)
	if notes := strings.Join(o.Notes(), "\n"); !strings.Contains(notes, "another build") {
		t.Errorf("the file of another build is taken: %q", notes)
	}
}
