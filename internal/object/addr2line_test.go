package object

import (
	"bufio"
	"bytes"
	"fmt"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/disasm"
	"github.com/cyclestack/cyclestack/internal/testlong"
)

// TestAddr2line compares the inlined calls of instructions with addr2line: of
// all of them in small programs, and of a part in large ones.
func TestAddr2line(t *testing.T) {
	if _, err := exec.LookPath("addr2line"); err != nil {
		t.Skip("needs addr2line (binutils)")
	}
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			if p.name == debugOfGo5 {
				t.Skip("addr2line does not read Go's DWARF 5")
			}
			file := p.build(t)
			o := open(t, file, Options{})
			addrs := instructionsOf(t, o, testlong.Size(700, 20000))
			compareFrames(t, o, addrs, addr2line(t, file, addrs), p.inline)
		})
	}
}

// instructionsOf returns the addresses of about n instructions, spread over functions, and of
// all in a Go program's package.
func instructionsOf(t *testing.T, o *Object, n int) []uint64 {
	t.Helper()
	d, err := disasm.New(disasm.Arch(o.Arch), disasm.ATT)
	if err != nil {
		t.Fatal(err)
	}
	functions, err := o.Functions()
	if err != nil {
		t.Fatal(err)
	}
	var all, some []uint64
	for _, f := range functions {
		code, err := o.Code(f.Addr, int(f.Size))
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range disasm.Instructions(d, code, f.Addr) {
			all = append(all, i.Addr)
			if strings.HasPrefix(f.Name, "main.") {
				some = append(some, i.Addr)
			}
		}
	}
	if len(all) == 0 {
		t.Fatal("no instructions")
	}
	step := len(all)/n + 1
	for i := 0; i < len(all); i += step {
		some = append(some, all[i])
	}
	slices.Sort(some)
	return slices.Compact(some)
}

// addr2line returns what addr2line says of addresses.
func addr2line(t *testing.T, file string, addrs []uint64) map[uint64][]Frame {
	t.Helper()
	var in bytes.Buffer
	for _, a := range addrs {
		fmt.Fprintf(&in, "%x\n", a)
	}
	cmd := exec.Command("addr2line", "-e", file, "-i", "-f", "-a")
	cmd.Stdin = &in
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	found := map[uint64][]Frame{}
	var addr uint64
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		if text, ok := strings.CutPrefix(s.Text(), "0x"); ok {
			addr = parseHex(t, text)
			continue
		}
		function := s.Text()
		s.Scan()
		place, _, _ := strings.Cut(s.Text(), " (discriminator")
		at := strings.LastIndexByte(place, ':')
		line, _ := strconv.Atoi(place[at+1:]) // "?" is 0
		found[addr] = append(found[addr], Frame{Func: function, File: path.Clean(place[:at]), Line: line})
	}
	return found
}

func compareFrames(t *testing.T, o *Object, addrs []uint64, want map[uint64][]Frame, inline string) {
	t.Helper()
	faults, inlined, seen := 0, 0, inline == ""
	for _, a := range addrs {
		got := o.Frames(a)
		if fault := difference(got, want[a]); fault != "" {
			if faults++; faults <= 10 {
				t.Errorf("%x: %s:\ngot  %+v\nwant %+v", a, fault, got, want[a])
			}
		}
		for _, f := range got {
			inlined += truth(f.Inlined)
			seen = seen || f.Inlined && f.Func == inline
		}
	}
	if !seen {
		t.Errorf("%s was inlined nowhere", inline)
	}
	t.Logf("%d addresses, %d inlined frames, %d differences", len(addrs), inlined, faults)
}

// difference says how frames differ from addr2line's, or "". addr2line names
// the outermost function by the debug information.
func difference(got, want []Frame) string {
	if len(want) > 0 && want[0].File == "??" {
		if len(got) > 0 && got[0].Line != 0 {
			return "addr2line has no line"
		}
		return ""
	}
	if len(got) != len(want) {
		return "other depth"
	}
	for i := range got {
		if got[i].Line != want[i].Line || got[i].Line > 0 && path.Clean(got[i].File) != want[i].File {
			return "other line"
		}
		// Of a function without a symbol addr2line gives the symbol of the code.
		if i < len(got)-1 && got[i].Func != want[i].Func && (i > 0 || want[i].Func != got[len(got)-1].Func) {
			return "other function"
		}
	}
	return ""
}
