package object

import (
	"encoding/binary"
	"path/filepath"
	"testing"

	"github.com/cyclestack/cyclestack/internal/unwind"
)

// TestUnwindStubs finds the caller of each stub of the procedure linkage table. GNU's linker describes stubs, LLVM's
// does not.
func TestUnwindStubs(t *testing.T) {
	for _, flag := range []string{"--ld-generated-unwind-info", "--no-ld-generated-unwind-info"} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "a.c"), `#include <stdlib.h>
int main(int argc, char **argv) { return argc > 1 ? system("") : getenv("") != 0; }`)
		run(t, dir, "gcc", "-O1", "-fcf-protection=none", "-Wl,-z,lazy,"+flag, "-o", "a", "a.c")
		o := open(t, filepath.Join(dir, "a"), Options{})
		if o.Arch != "amd64" {
			t.Skip("the stack is laid out for amd64")
		}
		at := names(t, o)["getenv@plt"]
		if at == 0 {
			t.Fatalf("%s: no stub", flag)
		}
		for offset := range uint64(16) {
			const start, caller = 0x7000, 0x1234
			stack := binary.LittleEndian.AppendUint64(nil, caller)
			if offset >= 11 { // behind the push
				stack = append(binary.LittleEndian.AppendUint64(nil, 1), stack...)
			}
			k := unwind.MachineOf(o.Arch)
			r, m := unwind.Registers{PC: at + offset}, unwind.Memory{Start: start, Stack: stack}
			r.Set(k.SP, start)
			row := o.Unwind(at + offset)
			if row == nil {
				t.Fatalf("%s: nothing for getenv@plt+%d", flag, offset)
			}
			if out := row.Step(&r, &m, 0); out != unwind.Caller || r.PC != caller || r.Value[k.SP] != start+uint64(len(stack)) {
				t.Errorf("%s: getenv@plt+%d: %v, caller %#x, stack pointer %#x", flag, offset, out, r.PC, r.Value[k.SP])
			}
		}
		if row := o.Unwind(at + 1<<20); row != nil {
			t.Errorf("%s: a row outside the file's code", flag)
		}
	}
}

// TestUnwindEntry: a program's first function has no caller, even if no table says so. musl's has none.
func TestUnwindEntry(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.c"), `int main(void) { return 0; }`)
	run(t, dir, "gcc", "-o", "a", "a.c")
	run(t, dir, "objcopy", "-R", ".eh_frame", "-R", ".eh_frame_hdr", "a", "bare")
	o := open(t, filepath.Join(dir, "bare"), Options{})
	k := unwind.MachineOf(o.Arch)
	if k == nil {
		t.Skipf("%s is not unwound", o.Arch)
	}
	start := names(t, o)["_start"]
	row := o.Unwind(start + 4)
	if row == nil {
		t.Fatalf("nothing for _start, at %#x", start)
	}
	r := unwind.Registers{PC: start + 4}
	r.Set(k.SP, 0x7000)
	if out := row.Step(&r, &unwind.Memory{}, 0); out != unwind.Outside {
		t.Errorf("_start has outcome %v", out)
	}
	if row := o.Unwind(names(t, o)["main"]); row != nil {
		t.Error("a row for main")
	}
}
