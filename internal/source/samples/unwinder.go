package samples

import (
	"math/bits"

	"github.com/cyclestack/cyclestack/internal/unwind"
	"github.com/cyclestack/cyclestack/profile"
)

// An unwinder finds the callers of samples from copies of the user's registers and stack
// (perf record --call-graph dwarf). It executes the call frame information of the mapped
// files. Where a file has none for an address it follows the frame pointer.
//
// It remembers the rules of addresses, as many as a fixed size allows. It is not for
// concurrent use.
type unwinder struct {
	spaces  *profile.Spaces
	symbols *profile.Symbolizer
	machine *unwind.Machine
	numbers []int8 // DWARF's numbers of the registers, by their bits in the mask
	pc      int    // the bit of the program counter
	known   []unwindRule
	memory  unwind.Memory
	time    uint64
	pid     int
}

// A userCall is an address in a stack.
type userCall struct {
	Addr uint64
	// Exact says that the instruction was not executed yet: it is where a signal came. For
	// other calls the address is the one to return to.
	Exact bool
}

// A stackEnd says how unwinding ended.
type stackEnd uint8

// The ends of a stack.
const (
	stackComplete  stackEnd = iota
	stackCut                // the copy of the stack is too short
	stackUnknown            // nothing says how to go on
	stackForeign            // registers of an architecture or ABI that is not supported
	stackUnlimited          // it has more calls than are followed
)

// An unwindRule is how to unwind at an address of a space.
type unwindRule struct {
	addr  uint64
	bias  uint64 // address in memory less that in the file
	row   *unwind.Row
	space uint32 // 0 for an entry without contents
}

const (
	unwindRules = 1 << 14 // a power of two
	mostCalls   = 1 << 10
)

// numbersOf are DWARF's numbers of registers by their bits in the kernel's masks (enum
// perf_event_x86_regs, perf_event_arm_regs); -1 for those that rules do not need.
var numbersOf = map[string][]int8{
	"amd64": {0, 3, 2, 1, 4, 5, 6, 7, -1, -1, -1, -1, -1, -1, -1, -1, 8, 9, 10, 11, 12, 13, 14, 15},
	"arm64": {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, -1},
}

// programCounters are the bits of the program counter, by uname's names of machines.
var programCounters = map[string]int{"x86_64": 8, "aarch64": 32}

// newUnwinder returns an unwinder for a recording of a machine, by uname's name for it.
func newUnwinder(machine string, spaces *profile.Spaces, symbols *profile.Symbolizer) *unwinder {
	u := &unwinder{spaces: spaces, symbols: symbols, pc: programCounters[machine]}
	arch := map[string]string{"x86_64": "amd64", "aarch64": "arm64"}[machine]
	u.machine, u.numbers = unwind.MachineOf(arch), numbersOf[arch]
	u.memory.File = u.word
	return u
}

// A userState is what was copied of a program: registers, in the order of the bits of their
// mask, and the stack from the stack pointer on.
type userState struct {
	Wide      bool // registers of 64 bits
	Mask      uint64
	Registers []uint64
	Stack     []byte
}

// unwind appends the calls of a process to a list: where it was, and the open calls from
// the innermost on.
func (u *unwinder) unwind(time uint64, pid int, s *userState, to []userCall) ([]userCall, stackEnd) {
	if u.machine == nil || !s.Wide || s.Mask>>u.pc&1 == 0 || bits.OnesCount64(s.Mask) > len(s.Registers) {
		return to, stackForeign
	}
	u.time, u.pid = time, pid
	var r unwind.Registers
	for i, mask := 0, s.Mask; mask != 0; mask &= mask - 1 {
		bit := bits.TrailingZeros64(mask)
		switch {
		case bit == u.pc:
			r.PC = s.Registers[i]
		case bit < len(u.numbers) && u.numbers[bit] >= 0:
			r.Set(int(u.numbers[bit]), s.Registers[i])
		}
		i++
	}
	u.memory.Start, u.memory.Stack, u.memory.Cut = r.Value[u.machine.SP], s.Stack, false
	exact := true
	for range mostCalls {
		to = append(to, userCall{r.PC, exact})
		sp := r.Value[u.machine.SP]
		outcome, signal := u.step(&r, exact)
		to[len(to)-1].Exact = exact || signal // a handler returns to where its trampoline starts
		switch {
		case outcome == unwind.Outside:
			return to, stackComplete
		case outcome == unwind.Broken && u.memory.Cut:
			return to, stackCut
		case outcome == unwind.Broken, !signal && r.Value[u.machine.SP] < sp:
			return to, stackUnknown
		}
		exact = signal
	}
	return to, stackUnlimited
}

// step goes to the caller. It reports whether that was interrupted by a signal.
func (u *unwinder) step(r *unwind.Registers, exact bool) (unwind.Outcome, bool) {
	addr := r.PC
	if !exact && addr > 0 {
		addr-- // the call, which may be the function's last instruction
	}
	rule := u.rule(addr)
	if rule.row != nil {
		return rule.row.Step(r, &u.memory, rule.bias), rule.row.Signal
	}
	if before := *r; u.machine.StepByFramePointer(r, &u.memory) != unwind.Caller {
		return unwind.Broken, false
	} else if u.spaces.Find(u.time, u.pid, r.PC-1, profile.User).File == nil {
		*r = before
		return unwind.Broken, false
	}
	return unwind.Caller, false
}

// rule returns the rule of an address.
func (u *unwinder) rule(addr uint64) *unwindRule {
	if u.known == nil {
		u.known = make([]unwindRule, unwindRules)
	}
	space := u.spaces.Number(u.time, int32(u.pid), profile.User)
	spread := (addr ^ uint64(space)<<40) * 0x9e3779b97f4a7c15
	e := &u.known[spread>>40%unwindRules]
	if e.addr == addr && e.space == space && space != 0 {
		return e
	}
	*e = unwindRule{addr: addr, space: space}
	at := u.spaces.Find(u.time, u.pid, addr, profile.User)
	e.row, e.bias = u.symbols.Unwind(at)
	e.bias = addr - e.bias
	return e
}

// word reads a word of the mapped files.
func (u *unwinder) word(addr uint64) (uint64, bool) {
	at, _, _, ok := u.spaces.Mapped(u.time, u.pid, addr, profile.User)
	if !ok {
		return 0, false
	}
	return u.symbols.Word(at)
}
