package pipeline

import "testing"

// TestAddresses stores a byte and loads it from an address that is computed in another
// way. Where both are the same whatever the registers hold, the byte goes round in a chain
// of seven cycles.
func TestAddresses(t *testing.T) {
	const store, load = "8807", "8a06" // mov %al,(%rdi); mov (%rsi),%al
	tests := []struct {
		name, code string
		same       bool
	}{
		{"copied", "4889fe", true},
		{"other", "4889ee", false},
		{"there and back", "488d7710 4883ee10", true},
		{"one beyond", "488d7701", false},
		{"negated twice", "4889fe 48f7de 48f7de", true},
		{"all bits inverted twice", "4889fe 48f7d6 48f7d6", true},
		{"exchanged by exclusive or", "4889fe 4831ce 4831ce", true},
		{"added and subtracted", "4889fe 4801ce 4829ce", true},
		{"inc and dec", "4889fe 48ffc6 48ffce", true},
		{"shifted as scaled", "4889ce 48c1e603 4829fe 488d3ccd00000000 4829f7 4889fe", true},
		{"on the stack", "57 5e", true},
		{"on the stack, in the wrong order", "57 53 5e 5f", false},
		{"through memory", "48897c2410 488b742410", true},
		{"through other memory", "48897c2410 488b742418", false},
		{"32 bits are not all", "89fe", false},
		{"its lower half and upper half", "4889fe 48c1ee20 48c1e620 89f9 4801ce", true},
		{"multiplied by one", "486bf701", true},
		{"multiplied by three, as lea", "486bf703 4c8d047f 4c29c6 4801fe", true},
		{"extended with the sign of itself", "4863f7 4863cf 4829ce 4801fe", true},
		{"aligned, and what was cut off", "4889fe 4883e6f0 4889f9 4883e10f 4809ce", true},
		{"a constant", "be05000000 4801fe 4883ee05", true},
		{"of a call", "e800000000 59 4889fe", true},
		{"their first and second byte", "0fb6fb 0fb6f7", false},
		{"the second byte of both", "0fb6ff 0fb6f7", true},
		{"less what loop counts, before and after", "4889fe 4801ce e200 4829ce", false},
		{"of a frame", "55 4889e5 4883ec20 c9 4889fe", true},
	}
	m := NewMachine(CoreOf("amdzen4"))
	for _, test := range tests {
		ops := assemble(t, bytesOf(t, test.code+load+"0401"+store+turn), 0x1000)
		alone := assemble(t, bytesOf(t, test.code+load+"0401"+"8803"+turn), 0x1000)
		chained := perTurn(m, ops) > perTurn(m, alone)+1
		if chained != test.same {
			t.Errorf("%s: the same address %v, want %v", test.name, chained, test.same)
		}
	}
}

// TestRemembered moves values through memory.
func TestRemembered(t *testing.T) {
	for _, test := range []struct {
		name, code string
		same       bool
	}{
		{"pushed, popped to memory and loaded", "57 8f442410 488b742410", true},
		{"a byte, with zeros and with what memory held behind it", "0fb6fb 885c2410 488b742410", false},
		{"what memory held before and after a byte of it was stored", "488b7c2410 885c2410 488b742410", false},
		{"the first half of what was stored", "89df 48895c2410 8b742410", true},
	} {
		m := NewMachine(CoreOf("amdzen4"))
		for _, op := range assemble(t, bytesOf(t, test.code), 0x1000) {
			m.Execute(&op, false, false)
		}
		if v := m.values.registers; v[RSI] == v[RDI] != test.same {
			t.Errorf("%s: %%rdi is %x, and %%rsi is %x", test.name, v[RDI], v[RSI])
		}
	}
}
