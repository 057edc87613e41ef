package disasm

import (
	"bufio"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/testlong"
)

// binaries are programs that the machine may have, from small to large. Others,
// also of other machines, can be named in CYCLESTACK_DISASM.
var binaries = []string{"/bin/ls", "/bin/bash", "/lib/x86_64-linux-gnu/libc.so.6", "/lib/x86_64-linux-gnu/libm.so.6"}

// TestObjdump compares the place of every instruction of whole programs, and
// where branches go, with objdump.
func TestObjdump(t *testing.T) {
	files := append(binaries, strings.Fields(os.Getenv("CYCLESTACK_DISASM"))...)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			if _, err := os.Stat(file); err != nil {
				t.Skip(err)
			}
			compareObjdump(t, file)
		})
	}
}

var machines = map[elf.Machine]struct {
	arch Arch
	tool string
}{
	elf.EM_X86_64:  {AMD64, "objdump"},
	elf.EM_386:     {I386, "objdump"},
	elf.EM_AARCH64: {ARM64, "llvm-objdump"},
	elf.EM_PPC64:   {PPC64LE, "llvm-objdump"},
	elf.EM_RISCV:   {RISCV64, "llvm-objdump"},
}

// compareObjdump steps through the code that objdump shows and expects each
// instruction at the address where objdump has one. Without -long it is a tenth of the
// code.
func compareObjdump(t *testing.T, file string) {
	f, err := elf.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m := machines[f.Machine]
	if _, err := exec.LookPath(m.tool); err != nil {
		t.Skipf("needs %s for %v", m.tool, f.Machine)
	}
	args := []string{"-d", "--no-show-raw-insn", file}
	if m.tool == "objdump" {
		args = append(args, "-w")
	}
	stop := ^uint64(0)
	if text := f.Section(".text"); text != nil && !testlong.Enabled() {
		from := text.Addr + text.Size/2
		stop = from + text.Size/10
		args = append(args, fmt.Sprintf("--start-address=%#x", from), fmt.Sprintf("--stop-address=%#x", stop))
	}
	cmd := exec.Command(m.tool, args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	c := comparison{t: t, decoder: decoder(t, m.arch, ATT), texts: m.arch == AMD64, code: codeOf(t, f), unknown: map[string]int{}}
	for s := bufio.NewScanner(out); s.Scan(); {
		addr, what, ok := objdumpLine(s.Text())
		switch {
		case ok && addr <= stop-16: // the last ones are cut
			c.add(addr, what)
		case !ok && !strings.Contains(s.Text(), ">:"):
			c.last = Inst{}
		}
	}
	// A part in a thousand covers instructions that repeat a prefix.
	if c.other > c.instructions/someTexts/1000 {
		t.Errorf("%d of %d instructions are written otherwise", c.other, c.instructions/someTexts)
	}
	if c.instructions == 0 {
		t.Fatal("objdump shows no instructions")
	}
	t.Logf("%d instructions, %d branches, %d differences, %d texts differ; without text %v", c.instructions, c.branches, c.wrong, c.other, c.unknown)
}

// A comparison compares the instructions of a decoder with those of objdump.
type comparison struct {
	t       *testing.T
	decoder Decoder
	texts   bool // they are compared as well
	code    func(addr uint64) []byte

	last                                 Inst   // the instruction before
	text                                 string // of it, as objdump has it
	instructions, branches, wrong, other int
	unknown                              map[string]int
}

// add compares the next instruction.
func (c *comparison) add(addr uint64, what string) {
	// A gap, or a symbol in the midst of an instruction, starts afresh.
	if c.last.Len > 0 && c.last.Next() != addr && !skips(c.text) {
		c.fault("%x: %q: got %d bytes, want %d", c.last.Addr, c.text, c.last.Len, addr-c.last.Addr)
	}
	bytes := c.code(addr)
	inst := c.decoder.Decode(bytes, addr)
	c.last, c.text = inst, what
	if to, ok := branchTarget(what); ok && inst.HasTarget() {
		if c.branches++; to != inst.Target {
			c.fault("%x: %q: got target %#x", addr, what, inst.Target)
		}
	}
	got := c.decoder.Text(inst, bytes)
	if strings.HasPrefix(got, ".byte") || strings.HasPrefix(got, ".inst") {
		c.unknown[strings.Fields(what + " ?")[0]]++
	}
	if c.texts && c.instructions%someTexts == 0 {
		if a, b := plainText(got), plainText(what); a != b && !spelledOtherwise(what) {
			if c.other++; c.other <= 10 {
				c.t.Logf("%x: got %q, objdump has %q", addr, a, b)
			}
		}
	}
	c.instructions++
}

func (c *comparison) fault(format string, args ...any) {
	if c.wrong++; c.wrong <= 20 {
		c.t.Errorf(format, args...)
	}
}

// someTexts says how many instructions there are to one whose text is compared.
const someTexts = 4

var (
	immediate = regexp.MustCompile(`\$-?0x[0-9a-f]+`)
	mnemonics = map[string]string{"movslq": "movsxd", "cltq": "cdqe", "movabs": "mov", "cqto": "cqo", "cltd": "cdq", "cwtl": "cwde"}
)

// plainText writes an instruction without what objdump and x/arch choose
// differently: the suffixes of mnemonics, zero displacements, scales of one,
// signs of numbers, and 0x in front of targets.
func plainText(text string) string {
	text, _, _ = strings.Cut(text, "#")
	text, _, _ = strings.Cut(text, " <")
	name, operands, _ := strings.Cut(strings.TrimSpace(text), " ")
	if n, ok := mnemonics[name]; ok {
		name = n
	}
	name = strings.TrimRight(name, "bwlqt")
	operands = strings.NewReplacer("0x0(", "(", ",1)", ")", "%st(0)", "%st", " ", "").Replace(operands)
	operands = immediate.ReplaceAllStringFunc(operands, func(s string) string {
		negative := s[1] == '-'
		v, _ := strconv.ParseUint(strings.TrimLeft(s, "$-0x"), 16, 64)
		if negative {
			v = -v
		}
		return fmt.Sprintf("$%x", uint16(v))
	})
	return name + " " + strings.TrimPrefix(operands, "0x")
}

// spelledOtherwise says whether objdump has its own name for an instruction with some
// immediate, or writes prefixes without effect.
func spelledOtherwise(text string) bool {
	for _, s := range []string{"nop", "xchg   %ax,%ax", "vpcmp", "vpclmul", "pclmul", "{vex}", "notrack", "repz ret", "(bad)", "data16",
		"fst", "fclex", "finit", // with FWAIT in front
		"vfm", "vfnm", "vprot", // AMD's: only the length is known
	} {
		if strings.Contains(text, s) {
			return true
		}
	}
	return false
}

// operand is the target of a branch as objdump writes it: before a symbol.
var operand = regexp.MustCompile(`(?:^|[\s,])(?:0x)?([0-9a-f]+) <`)

func branchTarget(text string) (uint64, bool) {
	m := operand.FindStringSubmatch(text)
	if m == nil || strings.Contains(text, "#") {
		return 0, false
	}
	to, err := strconv.ParseUint(m[1], 16, 64)
	return to, err == nil
}

// skips says whether objdump may go on elsewhere: it elides runs of zeros, takes FWAIT for part
// of the next instruction, and undefined bytes one by one.
func skips(text string) bool {
	return strings.Contains(text, "(bad)") || strings.HasPrefix(text, "rex") || strings.HasPrefix(text, "fst") || strings.HasPrefix(text, "fclex") || strings.HasPrefix(text, "finit")
}

// objdumpLine reads "  1234:\tmov …".
func objdumpLine(line string) (addr uint64, text string, ok bool) {
	place, text, ok := strings.Cut(line, ":")
	if !ok || len(text) < 2 || text[0] != ' ' && text[0] != '\t' {
		return 0, "", false
	}
	addr, err := strconv.ParseUint(strings.TrimSpace(place), 16, 64)
	return addr, strings.TrimSpace(text), err == nil
}

// codeOf returns a function that finds the code from an address on.
func codeOf(t *testing.T, f *elf.File) func(addr uint64) []byte {
	type section struct {
		addr uint64
		data []byte
	}
	var all []section
	for _, s := range f.Sections {
		if s.Flags&elf.SHF_EXECINSTR == 0 || s.Type == elf.SHT_NOBITS {
			continue
		}
		data, err := s.Data()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, section{s.Addr, data})
	}
	return func(addr uint64) []byte {
		for _, s := range all {
			if addr >= s.addr && addr < s.addr+uint64(len(s.data)) {
				return s.data[addr-s.addr:]
			}
		}
		return nil
	}
}
