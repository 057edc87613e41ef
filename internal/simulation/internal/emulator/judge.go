package emulator

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/cyclestack/cyclestack/internal/simulation/internal/valgrind"
)

// unsupported returns an error if a process of the program was ended by an instruction that is
// not known.
func (s *Simulation) unsupported() error {
	status, ok := s.State.Sys().(syscall.WaitStatus)
	for i, p := range s.run.all {
		ended := i == 0 && ok && status.Signaled() && status.Signal() == syscall.SIGILL
		if e, certain := p.unsupported(); ended || certain {
			return e
		}
	}
	return nil
}

// unsupported names the latest instruction of a process. It is certain that QEMU does not know
// those of AVX-512.
func (p *process) unsupported() (e *valgrind.UnsupportedError, certain bool) {
	e = &valgrind.UnsupportedError{Tool: "QEMU", Instruction: "an instruction", Place: "it is not known where"}
	b := p.known(p.latest)
	if b == nil || len(b.insts) == 0 {
		return e, false
	}
	last := b.insts[len(b.insts)-1]
	in := p.run.code.inst(last)
	for _, i := range p.run.code.ordered() {
		if n, ok := i.at.get(in.addr); !ok || n != last {
			continue
		}
		if i.file != nil {
			if code, err := i.file.Code(in.addr, 15); err == nil {
				e.Instruction = valgrind.InstructionName(p.run.code.decoder, code, in.addr)
				certain = p.run.code.x86 && len(code) > 0 && code[0] == evex
			}
		}
		at := newSymbols(i).at(in)
		e.Place = fmt.Sprintf("%s, %s+%#x", at.function, filepath.Base(at.object), in.addr)
		if at.source != "" {
			e.Place = fmt.Sprintf("%s, %s:%d", at.function, filepath.Base(at.source), at.line)
		}
	}
	return e, certain
}

// evex is the first byte of 64-bit instructions of AVX-512.
const evex = 0x62

// latestOf reads which block a process executed last: the count of block 0, by the first thread.
func latestOf(f *os.File) uint32 {
	var entry [8]byte
	if _, err := f.ReadAt(entry[:], 0); err != nil {
		return 0
	}
	return uint32(binary.LittleEndian.Uint64(entry[:]))
}

// variants are library functions chosen by the processor's instructions, where better
// instructions are hidden: digests and ciphers.
var variants = regexp.MustCompile(`(?i)(sha|aes|gcm|ghash|chacha|poly1305|md5|crc).*_(avx2?|ssse3|sse[0-9]*|aesni|neon|x86_64)$`)

// mayVary reports whether a name ends like one of variants, in less time.
func mayVary(name string) bool {
	name = strings.TrimRight(name, "0123456789")
	at := strings.LastIndexByte(strings.TrimSuffix(name, "_"), '_')
	return at >= 0 && len(name)-at <= len("_aesni")
}

// cryptographic are libraries of digests and ciphers, whose functions are often without names.
var cryptographic = regexp.MustCompile(`^lib(crypto|gcrypt|nettle|sodium|mbedcrypto|botan)\b`)

// hiddenFeatures are instruction sets that QEMU lacks and processors have.
var hiddenFeatures = []string{"sha_ni", "vaes", "vpclmulqdq", "avx512f", "avx512_ifma", "avx512ifma"}

// hiddenLeast is the share of the instructions that is worth a note.
const hiddenLeast = 0.05

// hidden says whether the program would run other code on the processor itself, with the share of
// these instructions.
func (s *Simulation) hidden() (note string, share float64) {
	has := processorHas("/proc/cpuinfo", hiddenFeatures)
	if len(has) == 0 {
		return "", 0
	}
	var all, most int64
	which := ""
	for _, i := range s.run.code.ordered() {
		functions := map[string]int64{}
		crypto := cryptographic.MatchString(filepath.Base(i.path))
		name, until := "", uint64(0)
		for in := range s.run.code.sorted(i) {
			all += in.executed
			if i.file == nil {
				continue
			}
			if in.addr >= until {
				f, _ := i.file.Symbol(in.addr)
				name, until = "", i.file.Until(in.addr)
				if mayVary(f.Name) && variants.MatchString(f.Name) {
					name = f.Name
				} else if crypto {
					name = filepath.Base(i.path)
				}
			}
			if name == "" {
				continue
			}
			if functions[name] += in.executed; s.run.code.digests(in) {
				functions[name] -= digestEach * in.executed // QEMU 8.2 and later have these instructions
			}
		}
		for name, n := range functions {
			if n > most {
				which, most = name, n
			}
		}
	}
	if share = float64(most) / float64(all); share < hiddenLeast {
		return "", 0
	}
	return fmt.Sprintf("%s has %.0f %% of the instructions: the simulator hides what this processor has for it (%s), so that by itself the program runs other code",
		which, 100*share, strings.Join(has, ", ")), share
}

// digestEach is how many instructions there are at most for one of a digest, in code that uses those.
const digestEach = 10

// digests reports whether an instruction is one for SHA-1 or SHA-256 of x86.
func (l *library) digests(in *instruction) bool {
	code := l.bytes[in.code : in.code+uint32(in.size)]
	if l.x86 && len(code) > 4 && code[0]&0xf0 == 0x40 {
		code = code[1:]
	}
	return l.x86 && len(code) > 3 && code[0] == 0x0f && code[1] == 0x38 && code[2] >= 0xc8 && code[2] <= 0xcd
}

// processorHas returns those of some features that the processor has.
func processorHas(file string, features []string) (list []string) {
	f, err := os.Open(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<16)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ":")
		if strings.TrimSpace(name) != "flags" {
			continue
		}
		flags := " " + value + " "
		for _, one := range features {
			if strings.Contains(flags, " "+one+" ") {
				list = append(list, one)
			}
		}
		break
	}
	return list
}
