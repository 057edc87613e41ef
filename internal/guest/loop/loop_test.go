package loop

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/arch/arm64/arm64asm"
	"golang.org/x/arch/ppc64/ppc64asm"
	"golang.org/x/arch/riscv64/riscv64asm"
	"golang.org/x/arch/x86/x86asm"

	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
)

var disassemblers = map[string]func([]byte) (text string, size int, err error){
	"amd64": func(b []byte) (string, int, error) {
		i, err := x86asm.Decode(b, 64)
		return x86asm.GNUSyntax(i, 0, nil), i.Len, err
	},
	"arm64": func(b []byte) (string, int, error) {
		i, err := arm64asm.Decode(b)
		return arm64asm.GNUSyntax(i), 4, err
	},
	"ppc64le": func(b []byte) (string, int, error) {
		i, err := ppc64asm.Decode(b, binary.LittleEndian)
		return ppc64asm.GNUSyntax(i, 0), i.Len, err
	},
	"riscv64": func(b []byte) (string, int, error) {
		i, err := riscv64asm.Decode(b)
		return riscv64asm.GNUSyntax(i), i.Len, err
	},
}

// The machine code is what its comments say, according to disassemblers that are
// not ours.
func TestCode(t *testing.T) {
	p := Program{Loops: 0x01239abc, Status: 7}
	for arch, want := range map[string][]string{
		"amd64":   {"mov $0x1239abc,%ecx", "dec %rcx", "jne .-0x5", "mov $0x7,%edi", "mov $0x3c,%eax", "syscall"},
		"arm64":   {"mov x0, #0x9abc", "movk x0, #0x123, lsl #16", "subs x0, x0, #0x1", "b.ne .+0xfffffffffffffffc", "mov x0, #0x7", "mov x8, #0x5d", "svc #0x0"},
		"ppc64le": {"lis r3,291", "ori r3,r3,39612", "mtctr r3", "addi r3,r3,1", "bdnz 0xfffffffffffffffc", "li r3,7", "li r0,1", "sc 0"},
		"riscv64": {"lui x5,0x123a", "addiw x5,x5,-1348", "addi x5,x5,-1", "bnez x5,-4", "li x10,7", "li x17,93", "ecall"},
	} {
		file, err := p.ELF(arch)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, disassemble(t, arch, file)); diff != "" {
			t.Errorf("%s: %s", arch, diff)
		}
		m := machines[arch]
		if got := len(want) - 2; got != m.before+m.after {
			t.Errorf("%s: %d instructions outside of the loop, and %d+%d are stated", arch, got, m.before, m.after)
		}
	}
}

// TestPhases checks where the program of phases branches to, and its numbers.
func TestPhases(t *testing.T) {
	file, err := Phases{Count: 0x10002, Length: time.Millisecond, Random: 255, Seed: 7, Align: 8 * time.Millisecond, Offset: 3 * time.Microsecond}.ELF("arm64")
	if err != nil {
		t.Fatal(err)
	}
	code := disassemble(t, "arm64", file)
	at := func(i int, want string) {
		t.Helper()
		if code[i] != want {
			t.Errorf("instruction %d is %q, want %q", i, code[i], want)
		}
	}
	for i, want := range map[int]string{
		0: "mov x22, #0x7", 2: "mov x23, #0x2", 3: "movk x23, #0x1, lsl #16", 4: "mov x24, #0x3e8",
		6: "mov x25, #0xff", 8: "mov x26, #0x3", 10: "mov x28, #0x1f40", len(code) - 1: "ret",
	} {
		at(i, want)
	}
	next := slices.Index(code, "mul w22, w22, w19")
	for i, c := range code {
		if strings.HasPrefix(c, "bl .+") {
			at(i, fmt.Sprintf("bl .+%#x", 4*(next-i)))
		}
	}
	for _, p := range []Phases{{Length: 1}, {Count: 1}} {
		if _, err := p.ELF("arm64"); err == nil {
			t.Errorf("%+v has a program", p)
		}
	}
	if _, err := (Phases{Count: 1, Length: 1}).ELF("amd64"); err == nil {
		t.Error("amd64 has a program of phases")
	}
}

// disassemble returns the instructions of a file's only segment from its entry on.
func disassemble(t *testing.T, arch string, file []byte) []string {
	t.Helper()
	f, err := elf.NewFile(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Progs) != 1 || f.Progs[0].Type != elf.PT_LOAD || f.Progs[0].Flags != elf.PF_R|elf.PF_X {
		t.Fatalf("%s: segments %v, want one that is loaded", arch, f.Progs)
	}
	data, err := io.ReadAll(f.Progs[0].Open())
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for code := data[f.Entry-f.Progs[0].Vaddr:]; len(code) > 0; {
		text, size, err := disassemblers[arch](code)
		if err != nil {
			t.Fatalf("%s: % x: %v", arch, code, err)
		}
		list = append(list, text)
		code = code[size:]
	}
	return list
}

// The file is one that the kernel executes.
func TestExecute(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the programs are for Linux")
	}
	file, err := Program{Loops: 1000, Status: 42}.ELF(runtime.GOARCH)
	if err != nil {
		t.Skip(err)
	}
	name := filepath.Join(t.TempDir(), "loop")
	if err := os.WriteFile(name, file, 0o755); err != nil {
		t.Fatal(err)
	}
	err = exec.Command(name).Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 42 {
		t.Errorf("Run = %v, want status 42", err)
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		arch  string
		loops uint32
		want  string
	}{
		{"mips", 1, `loop: there is no program for "mips"`},
		{"arm64", 0, "loop: 0 loops are not from 1 to 2147483647"},
		{"arm64", 1 << 31, "loop: 2147483648 loops are not from 1 to 2147483647"},
	} {
		_, err := Program{Loops: c.loops}.ELF(c.arch)
		if got := fmt.Sprint(err); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
