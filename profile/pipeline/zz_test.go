package pipeline

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cyclestack/cyclestack/profile/disasm"
)

func TestZZ(t *testing.T) {
	d, _ := disasm.New(disasm.AMD64, disasm.ATT)
	decoder, _ := NewDecoder(disasm.AMD64)
	var machines []*Machine
	for _, cpu := range []string{"amdzen1", "amdzen5", "haswell", "sapphirerapids", "generic"} {
		machines = append(machines, NewMachine(CoreOf(cpu)))
	}
	r := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))
	end := time.Now().Add(15 * time.Second)
	n := 0
	for time.Now().Before(end) {
		code := make([]byte, 40+r.IntN(400))
		for i := range code {
			code[i] = byte(r.Uint32())
			if r.IntN(4) == 0 {
				code[i] = []byte{0x0f, 0x66, 0xc4, 0xc5, 0x62, 0xf3, 0x48, 0xf0}[r.IntN(8)]
			}
		}
		if r.IntN(2) == 0 {
			for i := 16; i < len(code); i++ {
				code[i] = code[i%16]
			}
		}
		s := time.Now()
		done := make(chan bool)
		cur := ""
		go func() {
			for _, m := range machines {
				m.Reset()
			}
			for rest := code; len(rest) > 0; {
				i := d.Decode(rest, 0x1000)
				op := decoder.Op(i, rest)
				for k, m := range machines {
					cur = fmt.Sprintf("%x core %d class %d", rest[:i.Len], k, op.Class)
					m.Execute(&op, k%2 == 0, k%3 == 0)
				}
				rest = rest[i.Len:]
			}
			done <- true
		}()
		select {
		case <-done:
		case <-time.After(3 * time.Second):
			t.Fatalf("hang at %s in %x", cur, code)
		}
		if e := time.Since(s); e > 200*time.Millisecond {
			fmt.Println(e, len(code))
		}
		n++
	}
	fmt.Println(n)
}
