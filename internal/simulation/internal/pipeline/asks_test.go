package pipeline

import "testing"

// TestAsks checks which addresses of prefetch instructions are known: those of registers that were
// loaded, computed from such, or had an address in them.
func TestAsks(t *testing.T) {
	const prefetch = "0f1808" // prefetcht0 (%rax)
	for _, test := range []struct {
		name, code string
		loads      []uint64 // what the instructions load, in order, from addresses 0x10000, 0x20000, …
		want       uint64   // 1 if it is not known
	}{
		{"loaded", "488b07" + prefetch, []uint64{0x1000}, 0x1000},
		{"unknown", prefetch, nil, 1},
		{"computed", "488b07 486bc018 4883c010" + prefetch, []uint64{0x1000}, 0x18010},
		{"of an unknown register", "488b07 4801d8" + prefetch, []uint64{0x1000}, 1},
		{"shifted by a register", "488b07 488b0e 48d3e8" + prefetch, []uint64{0x4000, 2}, 0x1000},
		{"four bytes of it", "8b07" + prefetch, []uint64{0x1000}, 0x1000},
		{"a byte of an unknown register", "8a07" + prefetch, []uint64{0x10}, 1},
		{"by its own address", "8b4f08 0f184740", []uint64{1}, 0x10000 - 8 + 64},
		{"the index by the address", "488b07 8b0c98 0f1804d8", []uint64{0x1f000, 1}, 0x1f000 + 8*0x400},
		{"through the stack", "ff37 58" + prefetch, []uint64{0x1000, 0x1000}, 0x1000},
		{"before a system call", "488b07 0f05" + prefetch, []uint64{0x1000}, 1},
		{"relative to the instruction", "488d0500000000" + prefetch, nil, 1},
		{"zero", "31c0" + prefetch, nil, 0},
	} {
		m := NewMachine(CoreOf("amdzen4"))
		loads := test.loads
		ops := assemble(t, bytesOf(t, test.code), 0x400000)
		for i := range ops[:len(ops)-1] {
			if ops[i].Loads {
				m.At(uint64(len(test.loads)-len(loads)+1)<<16, 0)
				m.Loads(loads[0])
				loads = loads[1:]
			}
			m.Execute(&ops[i], false, false)
		}
		got, _, known := m.Asks(&ops[len(ops)-1])
		if !known {
			got = 1
		}
		if got != test.want {
			t.Errorf("%s: %#x, want %#x", test.name, got, test.want)
		}
	}
}
