package object

import (
	"bufio"
	"io"
	"os/exec"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/disasm"
)

// debugOfGo5 is the program whose DWARF 5 objdump 2.40 reads no lines from.
const debugOfGo5 = "go"

// TestObjdump compares every instruction's address, length, function and line with objdump -dl,
// for programs in several languages.
func TestObjdump(t *testing.T) {
	if _, err := exec.LookPath("objdump"); err != nil {
		t.Skip("needs objdump (binutils)")
	}
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			file := p.build(t)
			cmd := exec.Command("objdump", "-d", "-l", "-w", "--no-show-raw-insn", file)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer cmd.Wait()
			compareListing(t, open(t, file, Options{}), out, p.name != debugOfGo5)
		})
	}
}

var (
	symbolHead = regexp.MustCompile(`^([0-9a-f]+) <(.*)>:$`)
	lineHead   = regexp.MustCompile(`^([^ ].*):(\d+)( \(discriminator \d+\))?$`)
	instLine   = regexp.MustCompile(`^ *([0-9a-f]+):\t(.*)$`)
)

// A listing is where objdump is.
type listing struct {
	symbol string
	start  uint64
	file   string
	line   int
	fresh  bool // the line was printed for this instruction
}

func compareListing(t *testing.T, o *Object, out io.Reader, withLines bool) {
	d, err := disasm.New(disasm.Arch(o.Arch), disasm.ATT)
	if err != nil {
		t.Fatal(err)
	}
	var at listing
	var last disasm.Inst
	instructions, lines, faults := 0, 0, 0
	fault := func(format string, args ...any) {
		if faults++; faults <= 20 {
			t.Errorf(format, args...)
		}
	}
	for s := bufio.NewScanner(out); s.Scan(); {
		text := s.Text()
		if m := symbolHead.FindStringSubmatch(text); m != nil {
			at = listing{symbol: m[2], start: parseHex(t, m[1])}
			last = disasm.Inst{}
			continue
		}
		if m := lineHead.FindStringSubmatch(text); m != nil {
			at.file, at.fresh = path.Clean(m[1]), true
			at.line, _ = strconv.Atoi(m[2])
			continue
		}
		m := instLine.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		addr := parseHex(t, m[1])
		if last.Len > 0 && last.Next() != addr {
			fault("%x: %d bytes, objdump has the next instruction at %x", last.Addr, last.Len, addr)
		}
		code, err := o.Code(addr, 16)
		if err != nil {
			t.Fatal(err)
		}
		last = d.Decode(code, addr)
		instructions++
		sym, ok := o.Symbol(addr)
		if !ok && (isPadding(m[2]) || strings.Contains(at.symbol, "@plt-")) {
			continue // objdump gives it to the function before
		}
		if sym.Addr != at.start && !strings.HasPrefix(at.symbol, ".") {
			fault("%x: got symbol %+v, want %s at %x (%s)", addr, sym, at.symbol, at.start, m[2])
		}
		file, line := o.Line(addr)
		// objdump prints nothing for code of no line; see TestAddr2line.
		// It prints nothing either where only the file changes.
		if withLines && line != 0 && (line != at.line || at.fresh && path.Clean(file) != at.file) {
			fault("%x: got %s:%d, want %s:%d (%s)", addr, file, line, at.file, at.line, m[2])
		}
		lines += truth(line > 0)
		at.fresh = false
	}
	if instructions == 0 || lines == 0 {
		t.Errorf("%d instructions with %d lines: nothing was compared", instructions, lines)
	}
	t.Logf("%d instructions, %d with lines, %d differences; notes %q", instructions, lines, faults, o.Notes())
}

var padding = regexp.MustCompile(`^((data16|cs) )*(nop[wl]?|xchg +%ax,%ax|int3|ret|hlt|(add +%al,\(%rax\)))`)

// isPadding says whether an instruction is one of those between functions.
func isPadding(text string) bool { return padding.MatchString(text) }

func parseHex(t *testing.T, s string) uint64 {
	v, err := strconv.ParseUint(s, 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
