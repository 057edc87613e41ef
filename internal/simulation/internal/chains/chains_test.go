package chains

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/disasm"
	"github.com/cyclestack/cyclestack/internal/object"
	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
)

// assemble makes instructions of lines such as "4: mov (%rax),%rax", one byte each. A
// jump's target is the number of a line: "jne 4".
func assemble(t *testing.T, text string) (insts []disasm.Inst, say func(disasm.Inst) string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
		inst := disasm.Inst{Addr: uint64(i), Len: 1}
		name, target, _ := strings.Cut(lines[i], " ")
		var to uint64
		switch {
		case name == "jmp":
			inst.Flow = disasm.Jump
		case name[0] == 'j':
			inst.Flow = disasm.CondJump
		case name == "call":
			inst.Flow = disasm.Call
		case name == "ret":
			inst.Flow = disasm.Return
		}
		if inst.Flow != disasm.Next && inst.Flow != disasm.Return {
			if _, err := fmt.Sscan(target, &to); err != nil {
				t.Fatalf("%q: %v", lines[i], err)
			}
			inst.Target = to
		}
		insts = append(insts, inst)
	}
	return insts, func(i disasm.Inst) string { return lines[i.Addr] }
}

func TestLoads(t *testing.T) {
	for _, tt := range []struct {
		name, code string
		want       []uint64
	}{
		{"a list", `
			mov (%rax),%rax
			sub $0x1,%rdx
			jne 0
			ret`, []uint64{0}},
		{"a list with what its nodes hold", `
			add 0x8(%rax),%rbx
			mov (%rax),%rax
			test %rax,%rax
			jne 0
			ret`, []uint64{0, 1}},
		{"a list in a variable on the stack, as without optimisation", `
			mov -0x8(%rbp),%rax
			mov (%rax),%rax
			mov %rax,-0x8(%rbp)
			cmpq $0x0,-0x8(%rbp)
			jne 0
			ret`, []uint64{1}},
		{"a tree", `
			cmp %rsi,0x10(%rdi)
			jg 4
			mov 0x8(%rdi),%rdi
			jmp 5
			mov (%rdi),%rdi
			test %rdi,%rdi
			jne 0
			ret`, []uint64{0, 2, 4}},
		{"a tree, by a function that calls itself", `
			cmp %rsi,0x10(%rdi)
			mov 0x8(%rdi),%rdi
			call 0
			ret`, []uint64{0, 1}},
		{"a list of indexes", `
			movslq (%rbx,%rax,4),%rax
			sub $0x1,%rdx
			jne 0
			ret`, []uint64{0}},
		{"an array", `
			mov (%rdi,%rax,8),%rdx
			add %rdx,%rcx
			add $0x1,%rax
			jne 0
			ret`, nil},
		{"an array by a pointer", `
			add (%rdi),%rcx
			add $0x8,%rdi
			cmp %rdi,%rsi
			jne 0
			ret`, nil},
		{"an array of indexes into another", `
			movslq (%rdi,%rax,4),%rdx
			addsd (%rsi,%rdx,8),%xmm0
			add $0x1,%rax
			jne 0
			ret`, nil},
		{"two pointers after each other, but no cycle", `
			mov (%rdi),%rax
			mov (%rax),%rax
			ret`, nil},
		{"a global pointer", `
			mov 0x2e1a(%rip),%rax
			mov (%rax,%rcx,8),%rdx
			add $0x1,%rcx
			jne 0
			ret`, nil},
		{"what a call returns", `
			mov (%rax),%rdi
			call 100
			test %rax,%rax
			jne 0
			ret`, nil},
		{"a store along a list of which nothing is loaded", `
			mov %rax,(%rdi)
			lea 0x10(%rdi),%rdi
			jne 0
			ret`, nil},
		{"the address of the next node by arithmetic on what was loaded", `
			mov (%rsi),%rax
			lea (%rdx,%rax,1),%rsi
			test %rax,%rax
			jne 0
			ret`, []uint64{0}},
		{"a state machine", `
			movzbl (%rdi),%ecx
			add $0x1,%rdi
			shl $0x8,%rax
			movzbl (%rbx,%rax,1),%eax
			jne 0
			ret`, []uint64{3}},
		{"nothing", `ret`, nil},
	} {
		insts, say := assemble(t, tt.code)
		var got []uint64
		for addr := range Loads(disasm.AMD64, insts, say) {
			got = append(got, addr)
		}
		slices.Sort(got)
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	insts, say := assemble(t, "ret")
	if got := Loads("vax", insts, say); got != nil {
		t.Errorf("of an unknown instruction set: %v", got)
	}
}

const list = `
struct node { struct node *next; long value; };
long walk(struct node *n) { long sum = 0; while (n) { sum += n->value; n = n->next; } return sum; }
long add(long *a, long n) { long sum = 0; for (long i = 0; i < n; i++) sum += a[i]; return sum; }
int main(void) { return 0; }
`

// TestFinder checks the loads of compiled functions.
func TestFinder(t *testing.T) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("needs gcc")
	}
	for _, optimise := range []string{"-O0", "-O1", "-O2"} {
		dir := t.TempDir()
		source, program := filepath.Join(dir, "list.c"), filepath.Join(dir, "list")
		if err := os.WriteFile(source, []byte(list), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(gcc, optimise, "-fno-tree-vectorize", "-o", program, source).CombinedOutput(); err != nil {
			t.Skipf("gcc cannot compile here: %v: %s", err, out)
		}
		o, err := object.Open(program, object.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if o.Arch != string(disasm.AMD64) {
			t.Skipf("there is no reader of %s", o.Arch)
		}
		f := NewFinder(object.Options{})
		for function, want := range map[string]bool{"walk": true, "add": false} {
			found, err := o.Lookup(object.Named(function))
			if err != nil || len(found) != 1 {
				t.Fatal(found, err)
			}
			got := false
			for addr := found[0].Addr; addr < found[0].End(); addr++ {
				got = got || f.Chained(program, addr)
			}
			if got != want {
				t.Errorf("%s: %s has chained loads: %v, want %v", optimise, function, got, want)
			}
		}
		// Without symbols, the same loads are found in the code around them.
		stripped := program + "-stripped"
		if out, err := exec.Command("strip", "-o", stripped, program).CombinedOutput(); err != nil {
			t.Logf("strip: %v: %s", err, out)
		} else {
			walk, _ := o.Lookup(object.Named("walk"))
			for addr := walk[0].Addr; addr < walk[0].End(); addr++ {
				if f.Chained(program, addr) && !f.Chained(stripped, addr) {
					t.Errorf("%s: without symbols %#x is not chained", optimise, addr)
				}
			}
		}
		if f.Chained(source, 0) || f.Chained(filepath.Join(dir, "none"), 0) || f.Chained(program, 1) {
			t.Error("chains in what is no function")
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		o.Close()
	}
}

// FuzzLoads gives the reader of instructions anything.
func FuzzLoads(f *testing.F) {
	f.Add("mov (%rax,%rbx,4),%rax\nlock cmpxchg %rdx,(%rdi)\nlea 0x0(,%rax,8),%rcx")
	f.Add("call *0x10(%rax)\nmov %fs:0x28,%rax\n(((,,,")
	f.Fuzz(func(t *testing.T, text string) {
		lines := strings.Split(text, "\n")
		var insts []disasm.Inst
		for i := range lines {
			insts = append(insts, disasm.Inst{Addr: uint64(i), Len: 1})
		}
		Loads(disasm.AMD64, insts, func(i disasm.Inst) string { return lines[i.Addr] })
	})
}
