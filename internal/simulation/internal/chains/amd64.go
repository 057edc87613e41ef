package chains

import (
	"strings"
	"sync"

	"github.com/cyclestack/cyclestack/internal/disasm"
)

// readerOf returns the function that reads an instruction's text; nil for an unknown
// instruction set.
func readerOf(arch disasm.Arch) func(text string) step {
	if arch == disasm.AMD64 {
		return readAMD64
	}
	return nil
}

// lost are the registers that a call may overwrite, and arguments those of a function's
// arguments.
var (
	lost      = []location{"rdi", "rsi", "rdx", "rcx", "r8", "r9", "rax", "r10", "r11"}
	arguments = lost[:6]
)

// wide returns the widest form of each register.
var wide = sync.OnceValue(func() map[string]location {
	wide := map[string]location{}
	for _, r := range []string{"a", "b", "c", "d"} {
		for _, form := range []string{"r" + r + "x", "e" + r + "x", r + "x", r + "l", r + "h"} {
			wide[form] = location("r" + r + "x")
		}
	}
	for _, r := range []string{"si", "di", "bp", "sp"} {
		for _, form := range []string{"r" + r, "e" + r, r, r + "l"} {
			wide[form] = location("r" + r)
		}
	}
	for _, r := range []string{"r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"} {
		for _, form := range []string{r, r + "d", r + "w", r + "b"} {
			wide[form] = location(r)
		}
	}
	return wide
})

// An operand of an instruction.
type operand struct {
	register location   // "" for none
	slot     location   // a variable on the stack; "" for none
	address  []location // of other memory
	memory   bool
}

// readAMD64 reads an instruction in AT&T's syntax. Its last operand is the one written.
func readAMD64(text string) step {
	name, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	for prefixes[name] {
		name, rest, _ = strings.Cut(strings.TrimSpace(rest), " ")
	}
	var ops []operand
	for _, o := range operands(rest) {
		ops = append(ops, readOperand(o))
	}
	if strings.HasPrefix(name, "call") {
		return step{call: true}
	}
	if len(ops) == 0 || strings.HasPrefix(name, "j") || strings.HasPrefix(name, "nop") || strings.HasPrefix(name, "prefetch") {
		return step{}
	}
	if strings.HasPrefix(name, "lea") {
		return step{writes: ops[len(ops)-1].register, reads: append(ops[0].address, nonEmpty(stackBase(ops[0]))...)}
	}
	var s step
	last := &ops[len(ops)-1]
	for i := range ops {
		if o := &ops[i]; o.memory && o.slot == "" && !(i == len(ops)-1 && isMove(name)) {
			s.load, s.address = true, o.address
		}
	}
	if !writes(name) {
		return s
	}
	s.writes = last.register
	if last.memory {
		s.writes = last.slot
		s.load = s.load && last.slot == "" // the value written is not the one loaded
	}
	sources := ops[:len(ops)-1]
	if !isMove(name) && len(ops) < 3 {
		sources = ops
	}
	for _, o := range sources {
		s.reads = append(s.reads, nonEmpty(o.register, o.slot)...)
	}
	return s
}

// prefixes stand before the name of an instruction.
var prefixes = map[string]bool{"lock": true, "rep": true, "repz": true, "repnz": true, "bnd": true, "notrack": true, "data16": true, "cs": true, "ds": true}

// isMove reports whether an instruction writes what it reads, without the old value.
func isMove(name string) bool {
	return strings.HasPrefix(name, "mov") || strings.HasPrefix(name, "vmov") || strings.HasPrefix(name, "set") || strings.HasPrefix(name, "pop")
}

// writes reports whether an instruction with operands writes its last one.
func writes(name string) bool {
	for _, n := range []string{"cmp", "test", "push", "bt", "ucomis", "comis", "vucomis", "vcomis", "ptest"} {
		if strings.HasPrefix(name, n) && !strings.HasPrefix(name, "cmpxchg") && !strings.HasPrefix(name, "bts") && !strings.HasPrefix(name, "btr") {
			return false
		}
	}
	return true
}

// operands divides the operands at commas outside brackets.
func operands(text string) []string {
	text, _, _ = strings.Cut(text, "#")
	var list []string
	depth, from := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				list = append(list, strings.TrimSpace(text[from:i]))
				from = i + 1
			}
		}
	}
	if last := strings.TrimSpace(text[from:]); last != "" {
		list = append(list, last)
	}
	return list
}

func readOperand(text string) operand {
	text = strings.TrimPrefix(text, "*")
	if register, ok := strings.CutPrefix(text, "%"); ok && !strings.Contains(text, ":") {
		return operand{register: wide()[register]}
	}
	open := strings.IndexByte(text, '(')
	if open < 0 {
		return operand{memory: strings.Contains(text, ":")}
	}
	o := operand{memory: true}
	inner := strings.TrimSuffix(text[open+1:], ")")
	for i, r := range strings.Split(inner, ",") {
		register := wide()[strings.TrimPrefix(strings.TrimSpace(r), "%")]
		if i < 2 && register != "" {
			o.address = append(o.address, register)
		}
	}
	if len(o.address) == 1 && (o.address[0] == "rbp" && open > 0 || o.address[0] == "rsp") {
		o.slot = location(text)
		o.address = nil
	}
	return o
}

// stackBase is the register that a pointer to a variable on the stack is made from.
func stackBase(o operand) location {
	if o.slot == "" {
		return ""
	}
	return "rsp"
}

func nonEmpty(list ...location) []location {
	var out []location
	for _, l := range list {
		if l != "" {
			out = append(out, l)
		}
	}
	return out
}
