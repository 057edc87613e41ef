package emulator

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/disasm"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/pipeline"
)

// inRegisters is a program of the plugin's source. It reads instructions of 16 bytes and their sizes, and says
// which ones have no callbacks, or are simple ones.
const inRegisters = `#include "%s/plugin/trace.c"
int main(void)
{
	unsigned char in[17];
	for (options.x86 = true; fread(in, 1, sizeof in, stdin) == sizeof in;)
		putchar(in_registers(in, in[16]) ? '1' : "0LS"[simple(in, in[16])]);
	return 0;
}
`

// TestInRegisters compares which instructions of the C library have no callbacks with those that access no memory.
// It compares the simple ones with those that load or store.
func TestInRegisters(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("instructions of amd64")
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	program := compiled(t, "cc", fmt.Sprintf(inRegisters, dir), "-I"+filepath.Join(dir, "plugin"), "-ffunction-sections", "-Wl,--gc-sections")
	insts, input := libraryCode(t)
	cmd := exec.Command(program)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.Output()
	if err != nil || len(out) != len(insts) {
		t.Fatalf("%d answers to %d questions: %v", len(out), len(insts), err)
	}
	ops, err := pipeline.NewDecoder(disasm.AMD64)
	if err != nil {
		t.Fatal(err)
	}
	none, missed, simple := 0, 0, 0
	for i, inst := range insts {
		loads, stores := ops.Accesses(inst, []byte(input[17*i:17*i+16]))
		switch {
		case out[i] == 'L' && loads && !stores || out[i] == 'S' && stores && !loads:
			simple++
		case out[i] == 'L' || out[i] == 'S':
			t.Errorf("% x has one access (%c): it loads is %v, it stores %v", input[17*i:17*i+inst.Len], out[i], loads, stores)
		case !loads && !stores:
			none++
			missed += int('1' - out[i])
		case out[i] == '1':
			t.Errorf("% x has no callback", input[17*i:17*i+inst.Len])
		}
	}
	t.Logf("%d instructions, %d access no memory, %d of these have callbacks, %d are simple", len(insts), none, missed, simple)
	if none == 0 || float64(missed) > 0.1*float64(none) {
		t.Errorf("%d of %d instructions that access no memory have callbacks", missed, none)
	}
	if accesses := len(insts) - none; float64(simple) < 0.5*float64(accesses) {
		t.Errorf("%d of %d instructions that access memory are simple", simple, accesses)
	}
}

// libraryCode returns the instructions of the C library, and the input of inRegisters.
func libraryCode(t *testing.T) (list []disasm.Inst, input string) {
	paths, _ := filepath.Glob("/lib/x86_64-linux-gnu/libc.so.6")
	if len(paths) == 0 {
		t.Skip("no C library")
	}
	f, err := elf.Open(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	code, err := f.Section(".text").Data()
	if err != nil {
		t.Fatal(err)
	}
	d, err := disasm.New(disasm.AMD64, disasm.ATT)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for addr := uint64(0); len(code) > 16; {
		inst := d.Decode(code, addr)
		if !inst.Bad {
			list = append(list, inst)
			all.Write(code[:16])
			all.WriteByte(byte(inst.Len))
		}
		n := max(inst.Len, 1)
		code, addr = code[n:], addr+uint64(n)
	}
	return list, all.String()
}
