package flow_test

import (
	"bufio"
	"debug/elf"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/disasm"
	"github.com/cyclestack/cyclestack/internal/flow"
	"github.com/cyclestack/cyclestack/internal/testlong"
)

// TestObjdump compares the blocks of every function of whole programs with what
// a few rules make of objdump's text: a block begins at a target of a jump, or
// behind a jump or a return, and nowhere else.
func TestObjdump(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the rules are for amd64")
	}
	if _, err := exec.LookPath("objdump"); err != nil {
		t.Skip("needs objdump")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	files := []string{"/lib/x86_64-linux-gnu/libc.so.6", "/bin/ls"}
	if testlong.Enabled() {
		files = append(files, self)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			if _, err := os.Stat(file); err != nil {
				t.Skip(err)
			}
			compareBlocks(t, file)
		})
	}
}

// A piece is a run of instructions under one symbol, or of a section without any.
type piece struct {
	name  string
	insts []text
}

type text struct {
	addr uint64
	text string
}

var (
	jump    = regexp.MustCompile(`^(?:bnd |notrack |data16 |cs |ds )*j[a-z]+\s+[0-9a-fx*]`)
	loopEnd = regexp.MustCompile(`^(?:loop|jr?e?cxz)`)
	ret     = regexp.MustCompile(`^(?:bnd |repz |rep |data16 |cs )*(?:ret|iret|sysret|lret|ud2|ud1|ud0|ljmp)`)
	direct  = regexp.MustCompile(`\s(?:0x)?([0-9a-f]+)(?: <|$)`)
)

// leaders are where blocks begin by the rules.
func (p *piece) leaders() map[uint64]bool {
	at := map[uint64]bool{}
	for _, i := range p.insts {
		at[i.addr] = true
	}
	list := map[uint64]bool{p.insts[0].addr: true}
	for k, i := range p.insts {
		ends := jump.MatchString(i.text) || loopEnd.MatchString(i.text)
		if ends {
			if m := direct.FindStringSubmatch(i.text); m != nil {
				if to, err := strconv.ParseUint(m[1], 16, 64); err == nil && at[to] {
					list[to] = true
				}
			}
		}
		if (ends || ret.MatchString(i.text)) && k+1 < len(p.insts) {
			list[p.insts[k+1].addr] = true
		}
	}
	return list
}

func compareBlocks(t *testing.T, file string) {
	f, err := elf.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d, err := disasm.New(disasm.AMD64, disasm.ATT)
	if err != nil {
		t.Fatal(err)
	}
	functions, blocks, wrong := 0, 0, 0
	most := testlong.Size(1000, math.MaxInt)
	for p := range pieces(t, file) {
		if functions >= most {
			break
		}
		code := codeAt(t, f, p.insts[0].addr, p.insts[len(p.insts)-1].addr)
		if code == nil {
			continue
		}
		insts := disasm.Instructions(d, code, p.insts[0].addr)
		insts = insts[:min(len(insts), len(p.insts))]
		if !sameInsts(insts, p.insts) {
			continue // data among the code: compared elsewhere
		}
		functions++
		g := flow.NewGraph(insts, nil)
		want := p.leaders()
		for i := range g.Blocks {
			blocks++
			if !want[g.Blocks[i].Start()] {
				wrong++
				t.Errorf("%s: a block at %#x, which no rule has", p.name, g.Blocks[i].Start())
			}
			delete(want, g.Blocks[i].Start())
		}
		for addr := range want {
			wrong++
			t.Errorf("%s: no block at %#x", p.name, addr)
		}
		if wrong > 20 {
			t.Fatal("too many differences")
		}
	}
	t.Logf("%d functions, %d blocks", functions, blocks)
	if functions == 0 || blocks < 1000 {
		t.Error("too little was compared")
	}
}

func sameInsts(insts []disasm.Inst, texts []text) bool {
	for i := range texts {
		if i >= len(insts) || insts[i].Addr != texts[i].addr || insts[i].Bad || strings.Contains(texts[i].text, "(bad)") {
			return false
		}
	}
	return true
}

// codeAt reads code from an address up to 16 bytes behind another.
func codeAt(t *testing.T, f *elf.File, from, to uint64) []byte {
	for _, s := range f.Sections {
		if s.Flags&elf.SHF_EXECINSTR == 0 || from < s.Addr || to >= s.Addr+s.Size || s.Type == elf.SHT_NOBITS {
			continue
		}
		code := make([]byte, min(to+16, s.Addr+s.Size)-from)
		if _, err := s.ReadAt(code, int64(from-s.Addr)); err != nil {
			t.Fatal(err)
		}
		return code
	}
	return nil
}

// pieces yields what objdump shows of a program, symbol by symbol.
func pieces(t *testing.T, file string) func(yield func(*piece) bool) {
	return func(yield func(*piece) bool) {
		cmd := exec.Command("objdump", "-d", "-w", "--no-show-raw-insn", file)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}()
		p := &piece{}
		for s := bufio.NewScanner(out); s.Scan(); {
			line := s.Text()
			place, body, ok := strings.Cut(line, ":")
			addr, err := strconv.ParseUint(strings.TrimSpace(place), 16, 64)
			if ok && err == nil && strings.HasPrefix(line, " ") {
				p.insts = append(p.insts, text{addr, strings.TrimSpace(body)})
				continue
			}
			if len(p.insts) > 0 && !yield(p) {
				return
			}
			p = &piece{name: line}
		}
		if len(p.insts) > 0 {
			yield(p)
		}
	}
}
