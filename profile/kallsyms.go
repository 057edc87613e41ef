package profile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// errHidden says that the kernel does not show its addresses.
var errHidden = errors.New("the kernel hides the addresses of its symbols: set kernel.kptr_restrict to 0, or run as root")

// maxLine is the longest line of a list of symbols.
const maxLine = 1 << 16

// usualSymbols and usualNames are how many functions a kernel has, and how many
// bytes their names: room that is made at once.
const (
	usualSymbols = 1 << 16
	usualNames   = 1 << 22
)

// readKallsyms reads /proc/kallsyms or a copy of it: lines of an address, the
// type of the symbol as nm shows it, its name, and a module in brackets. Only
// code is kept.
func readKallsyms(r io.Reader) (*nameTable, error) {
	t := &nameTable{marks: map[string]uint64{}, ranges: make([]namedRange, 0, usualSymbols), names: make([]byte, 0, usualNames)}
	symbols, zeros, line := 0, 0, 0
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxLine)
	for s.Scan() {
		line++
		addr, rest, ok1 := bytes.Cut(s.Bytes(), []byte(" "))
		kind, name, ok2 := bytes.Cut(rest, []byte(" "))
		value, ok3 := parseHex(addr)
		if !ok1 || !ok2 || !ok3 || len(kind) != 1 {
			return nil, fmt.Errorf("line %d is no symbol", line)
		}
		symbols++
		if value == 0 {
			zeros++
			continue
		}
		switch kind[0] {
		case 't', 'T', 'w', 'W':
		default:
			continue
		}
		if i := bytes.IndexByte(name, '\t'); i >= 0 {
			name = name[:i]
		}
		if string(name) == "_text" || string(name) == "_stext" {
			t.marks[string(name)] = value
		}
		if !t.add(value, 0, name) {
			return nil, fmt.Errorf("line %d: there are too many symbols", line)
		}
		t.ranges[len(t.ranges)-1].order = rank(kind[0], name, symbols)
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", line+1, err)
	}
	if symbols > 0 && zeros == symbols {
		return nil, errHidden
	}
	t.settle()
	return t, nil
}

// parseHex reads a number of up to 16 hexadecimal digits.
func parseHex(text []byte) (value uint64, ok bool) {
	for _, c := range text {
		switch {
		case '0' <= c && c <= '9':
			value = value<<4 | uint64(c-'0')
		case 'a' <= c && c <= 'f':
			value = value<<4 | uint64(c-'a'+10)
		case 'A' <= c && c <= 'F':
			value = value<<4 | uint64(c-'A'+10)
		default:
			return 0, false
		}
	}
	return value, len(text) > 0 && len(text) <= 16
}

// rank orders symbols at one address as perf's choose_best_symbol does: not weak,
// global, with fewer underscores in front, with the longer name, first in the
// list. The one to show gets the highest rank.
func rank(kind byte, name []byte, index int) uint32 {
	binding := uint32(0)
	switch kind {
	case 'T':
		binding = 2
	case 't':
		binding = 1
	}
	underscores := len(name) - len(bytes.TrimLeft(name, "_"))
	const last = 1<<20 - 1
	return binding<<30 | uint32(7-min(underscores, 7))<<27 | uint32(min(len(name), 127))<<20 | uint32(last-min(index, last))
}

// reference returns the symbol that the kernel's mapping names and its address
// in the run: the file is called [kernel.kallsyms]_text, and the offset is the
// address of _text.
func reference(m Mapping) (name string, addr uint64) {
	_, name, ok := strings.Cut(m.File, "]")
	if !ok || name == "" {
		return "", 0
	}
	return name, m.PgOff
}

// openKallsyms reads a list of the kernel's symbols.
func openKallsyms(path string) (*nameTable, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t, err := readKallsyms(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}
