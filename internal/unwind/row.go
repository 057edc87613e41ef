package unwind

// Numbers of registers as DWARF has them.
const (
	amd64RBP, amd64RSP, amd64RIP        = 6, 7, 16
	arm64FP, arm64LR, arm64SP           = 29, 30, 31
	registers                           = 33 // that are followed
	pacMask                      uint64 = 1<<48 - 1
)

// A Machine says what an instruction set's registers are.
type Machine struct {
	SP, FP, Return int // DWARF's numbers; Return is the column of the return address
	word           int
	arm64          bool
}

// machines are those that can be unwound, by Go's names.
var machines = map[string]*Machine{
	"amd64": {SP: amd64RSP, FP: amd64RBP, Return: amd64RIP, word: 8},
	"arm64": {SP: arm64SP, FP: arm64FP, Return: arm64LR, word: 8, arm64: true},
}

// MachineOf returns the machine of Go's name for an instruction set, or nil.
func MachineOf(arch string) *Machine { return machines[arch] }

// Registers are the registers of a frame, by DWARF's numbers.
type Registers struct {
	PC    uint64
	Known uint64 // a bit for each register with a value
	Value [registers]uint64
}

// Set gives a register a value.
func (r *Registers) Set(n int, v uint64) {
	if uint(n) < registers {
		r.Value[n] = v
		r.Known |= 1 << n
	}
}

func (r *Registers) get(n int) (uint64, bool) {
	if uint(n) >= registers || r.Known>>n&1 == 0 {
		return 0, false
	}
	return r.Value[n], true
}

// A Memory is what can be read of a process: the copy of its stack, and its files.
type Memory struct {
	Start uint64 // of the stack
	Stack []byte
	// File reads a word of 8 bytes outside the stack; it may be nil.
	File func(addr uint64) (uint64, bool)
	// Cut says that a read was beyond the end of the copy.
	Cut     bool
	scratch [mostStacked]uint64 // of expressions
}

// Word returns the 8 bytes at an address.
func (m *Memory) Word(addr uint64) (uint64, bool) {
	if at := addr - m.Start; addr >= m.Start && at < uint64(len(m.Stack)) && len(m.Stack)-int(at) >= 8 {
		b := m.Stack[at : at+8 : at+8]
		return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 | uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56, true
	}
	if m.File != nil {
		if v, ok := m.File(addr); ok {
			return v, true
		}
	}
	m.Cut = m.Cut || addr-m.Start < mostStack
	return 0, false
}

// mostStack is how far above the stack pointer an address is taken for one of the stack.
const mostStack = 1 << 30

// A ruleKind says how a value of the caller is found.
type ruleKind uint8

const (
	ruleSame       ruleKind = iota
	ruleUndefined           // it cannot be found
	ruleOffset              // it is in memory at the CFA plus an offset
	ruleValue               // it is the CFA plus an offset
	ruleRegister            // it is in another register, plus an offset
	ruleExpression          // it is in memory where an expression says
	ruleComputed            // it is what an expression says
)

// A rule says how one register of the caller is found, or the CFA.
type rule struct {
	kind   ruleKind
	reg    uint16
	offset int64
	expr   []byte
}

type registerRule struct {
	register uint16
	rule
}

// A Row says how the registers of the caller are found at an address.
type Row struct {
	machine *Machine
	cfa     rule
	rules   []registerRule // of the registers that do not stay the same
	column  int            // of the return address
	// Signal says that the caller was interrupted, and made no call: its address is that of
	// an instruction that was not executed yet.
	Signal bool
}

// An Outcome says how a step ended.
type Outcome uint8

// The outcomes of a step.
const (
	Caller  Outcome = iota // the registers are the caller's
	Outside                // the function has no caller
	Broken                 // the caller cannot be found
)

// Step replaces the registers of a frame by those of its caller.
func (row *Row) Step(r *Registers, m *Memory, bias uint64) Outcome {
	cfa, ok := row.frame(r, m, bias)
	if !ok {
		return Broken
	}
	out := *r
	found := false
	for i := range row.rules {
		f := &row.rules[i]
		n := int(f.register)
		v, ok := f.value(r, m, cfa, bias)
		if n == row.column {
			found = true
			if f.kind == ruleUndefined {
				return Outside
			}
			if !ok {
				return Broken
			}
		}
		if uint(n) >= registers {
			continue
		}
		out.Known &^= 1 << n
		if ok {
			out.Set(n, v)
		}
	}
	pc, ok := out.get(row.column)
	if !found && !row.machine.arm64 || !ok {
		return Broken // only a link register may hold the return address by itself
	}
	if row.machine.arm64 {
		pc = unsign(pc)
		if !found && pc == r.PC { // it would go on for ever
			return Broken
		}
	}
	if _, stated := row.rule(row.machine.SP); !stated {
		out.Set(row.machine.SP, cfa)
	}
	if pc == 0 {
		return Outside
	}
	out.PC = pc
	*r = out
	return Caller
}

// unsign removes the signature of an address of a program. Arm's pointer authentication
// puts it above the 48 bits of addresses; bit 55 is of the kernel's addresses.
func unsign(pc uint64) uint64 {
	if pc>>55&1 == 0 {
		return pc & pacMask
	}
	return pc
}

func (row *Row) rule(register int) (*registerRule, bool) {
	for i := range row.rules {
		if int(row.rules[i].register) == register {
			return &row.rules[i], true
		}
	}
	return nil, false
}

// frame returns the canonical frame address.
func (row *Row) frame(r *Registers, m *Memory, bias uint64) (uint64, bool) {
	switch row.cfa.kind {
	case ruleRegister:
		v, ok := r.get(int(row.cfa.reg))
		return v + uint64(row.cfa.offset), ok
	case ruleComputed:
		return evaluate(row.cfa.expr, row.machine, r, m, nil, bias)
	}
	return 0, false
}

func (f *rule) value(r *Registers, m *Memory, cfa, bias uint64) (uint64, bool) {
	switch f.kind {
	case ruleOffset:
		return m.Word(cfa + uint64(f.offset))
	case ruleValue:
		return cfa + uint64(f.offset), true
	case ruleRegister:
		v, ok := r.get(int(f.reg))
		return v + uint64(f.offset), ok
	case ruleExpression, ruleComputed:
		v, ok := evaluate(f.expr, nil, r, m, &cfa, bias)
		if ok && f.kind == ruleExpression {
			return m.Word(v)
		}
		return v, ok
	}
	return 0, false
}

// Stub returns the row of an address in the procedure linkage table, or nil. On amd64 the return address is on top of
// the stack, until the stub pushes the number of its slot: the jump behind that is its last 5 bytes of 16.
func Stub(arch string, addr uint64) *Row {
	k := machines[arch]
	if k == nil {
		return nil
	}
	row := &Row{machine: k, column: k.Return, cfa: rule{kind: ruleRegister, reg: uint16(k.SP)}}
	if k.arm64 {
		return row
	}
	if row.cfa.offset = 8; addr%16 >= 11 {
		row.cfa.offset = 16
	}
	row.rules = []registerRule{{uint16(k.Return), rule{kind: ruleOffset, offset: -8}}}
	return row
}

// StepByFramePointer finds the caller where no table knows the function: code made at run
// time, for example. It takes the frame pointer's word, as ELF's tools do.
func (k *Machine) StepByFramePointer(r *Registers, m *Memory) Outcome {
	fp, ok1 := r.get(k.FP)
	sp, ok2 := r.get(k.SP)
	if !ok1 || !ok2 || fp == 0 || fp < sp {
		return Broken
	}
	before, _ := m.Word(fp)
	pc, ok := m.Word(fp + 8)
	if !ok {
		return Broken
	}
	if k.arm64 {
		pc = unsign(pc)
	}
	if pc == 0 {
		return Outside
	}
	out := Registers{PC: pc}
	out.Set(k.SP, fp+16)
	out.Set(k.FP, before)
	*r = out
	return Caller
}
