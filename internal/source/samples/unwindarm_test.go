package samples_test

import (
	"bufio"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/source/samples"
	"github.com/cyclestack/cyclestack/source"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// TestUnwindArm stops a program for Arm in an emulator whose processor signs return
// addresses, and unwinds its registers and stack.
func TestUnwindArm(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"aarch64-linux-gnu-gcc", "qemu-aarch64"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("there is no %s", tool)
		}
	}
	for _, flags := range []string{"-O2 -fomit-frame-pointer -mbranch-protection=standard", "-O0 -mbranch-protection=none", "-g -O2 -mbranch-protection=standard -fno-asynchronous-unwind-tables"} {
		program := filepath.Join(t.TempDir(), "signed")
		words := append(strings.Fields(flags), "-static", "-o", program, "testdata/unwind/signed.c")
		if out, err := exec.Command("aarch64-linux-gnu-gcc", words...).CombinedOutput(); err != nil {
			t.Skipf("%s: %v\n%s", flags, err, out)
		}
		regs, stack := stopAt(t, program, "leaf")
		signed := false
		for i := 0; i+8 <= len(stack); i += 8 {
			w := binary.LittleEndian.Uint64(stack[i:])
			signed = signed || w>>48 != 0 && w&(1<<48-1) > 0x400000 && w&(1<<48-1) < 0x480000
		}
		if want := strings.Contains(flags, "=standard"); signed != want {
			t.Errorf("%s: signed return addresses on the stack: %v", flags, signed)
		}
		got := unwoundArm(t, program, regs, stack)
		if !strings.HasPrefix(got, "_start;") || !strings.HasSuffix(got, ";compare;second;third") || !strings.Contains(got, ";main;") {
			t.Errorf("%s: %s", flags, got)
		}
	}
}

// unwoundArm makes a recording of one sample, and returns its stack.
func unwoundArm(t *testing.T, program string, regs []uint64, stack []byte) string {
	t.Helper()
	const size = 1 << 13
	r := newAttrRecording(t, perfdata.Attr{SampleType: chained | perffile.SampleRegsUser | perffile.SampleStackUser, RegsUser: 1<<33 - 1, StackUser: size})
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 {
			r.add(1, &perfdata.Mmap{Header: perfdata.Header{Misc: perfdata.Misc(perfdata.ModeUser)}, PID: 7, TID: 7, Addr: p.Vaddr, Len: p.Memsz, PgOff: p.Off, Filename: []byte(program)})
		}
	}
	rest := append([]uint64{perffile.Regs64}, regs...)
	rest = append(rest, size)
	for i := 0; i < size; i += 8 {
		rest = append(rest, binary.LittleEndian.Uint64(stack[i:]))
	}
	r.chain(perfdata.ModeUser, 10, 1, nil, append(rest, size)...)
	if err := r.w.Close(&perfdata.Features{Arch: "aarch64"}); err != nil {
		t.Fatal(err)
	}
	rec, err := source.New(bytes.NewReader(r.out.B), "arm.data")
	if err != nil {
		t.Fatal(err)
	}
	s, err := rec.Stacks(samples.Options{By: counts.Function})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var parts []string
	for x := range s.All() {
		for _, f := range x.Frames {
			parts = append(parts, f.Function)
		}
	}
	// The sample itself has no address here: the last frame is unknown.
	return strings.Join(parts[:len(parts)-1], ";")
}

// A gdbClient speaks the protocol of GDB's remote stubs.
type gdbClient struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

// ask sends a packet and returns the answer.
func (g *gdbClient) ask(packet string) string {
	g.t.Helper()
	sum := byte(0)
	for i := range len(packet) {
		sum += packet[i]
	}
	fmt.Fprintf(g.conn, "$%s#%02x", packet, sum)
	if _, err := g.in.ReadString('$'); err != nil {
		g.t.Fatal(err)
	}
	text, err := g.in.ReadString('#')
	if err != nil {
		g.t.Fatal(err)
	}
	var end [2]byte
	for i := range end {
		end[i], _ = g.in.ReadByte()
	}
	fmt.Fprint(g.conn, "+")
	return strings.TrimSuffix(text, "#")
}

// stopAt runs a program up to a function. It returns the registers x0 to x30, sp and pc, and
// the stack.
func stopAt(t *testing.T, program, function string) ([]uint64, []byte) {
	t.Helper()
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	addr := uint64(0)
	for _, s := range symbols {
		if s.Name == function {
			addr = s.Value
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	cmd := exec.Command("qemu-aarch64", "-cpu", "max", "-g", fmt.Sprint(port), program)
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	defer func() {
		cmd.Process.Kill()
		cmd.Wait()
	}()
	var conn net.Conn
	for range 100 {
		if conn, err = net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Minute))
	g := &gdbClient{t, conn, bufio.NewReader(conn)}
	if a := g.ask(fmt.Sprintf("Z0,%x,4", addr)); a != "OK" {
		t.Skipf("no breakpoint: %q", a)
	}
	if a := g.ask("c"); !strings.HasPrefix(a, "T05") {
		t.Fatalf("it did not stop: %q", a)
	}
	raw, err := hex.DecodeString(g.ask("g")[:33*16])
	if err != nil {
		t.Fatal(err)
	}
	regs := make([]uint64, 33)
	for i := range regs {
		regs[i] = binary.LittleEndian.Uint64(raw[8*i:])
	}
	var stack []byte
	for len(stack) < 1<<13 {
		part, err := hex.DecodeString(g.ask(fmt.Sprintf("m%x,400", regs[31]+uint64(len(stack)))))
		if err != nil || len(part) == 0 {
			break
		}
		stack = append(stack, part...)
	}
	return regs, append(stack, make([]byte, 1<<13)...)[:1<<13]
}
