package profile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
)

// errHidden says that the kernel does not show its addresses.
var errHidden = errors.New("the kernel hides the addresses of its symbols: set kernel.kptr_restrict to 0, or run as root")

// maxLine is the longest line of a list of symbols.
const maxLine = 1 << 16

// usualSymbols and usualNames are a kernel's usual number of functions and bytes of names, to
// make room at once.
const (
	usualSymbols = 1 << 17
	usualNames   = 1 << 22
)

// readKallsyms reads /proc/kallsyms or a copy of it: lines of an address, the
// type of the symbol as nm shows it, its name, and a module in brackets. Only
// code is kept.
func readKallsyms(r io.Reader) (*nameTable, error) {
	t := &nameTable{marks: map[string]uint64{}, ranges: make([]namedRange, 0, usualSymbols), names: make([]byte, 0, usualNames)}
	symbols, zeros, line := 0, 0, 0
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, maxLine), maxLine)
	for s.Scan() {
		line++
		value, kind, name, ok := symbolLine(s.Bytes())
		if !ok {
			return nil, fmt.Errorf("line %d is not a symbol", line)
		}
		symbols++
		if value == 0 {
			zeros++
			continue
		}
		switch kind {
		case 't', 'T', 'w', 'W':
		default:
			continue
		}
		if i := bytes.IndexByte(name, '\t'); i >= 0 {
			t.passing = t.passing || string(name[i+1:]) == "[bpf]"
			name = name[:i]
		}
		if string(name) == markNames[0] || string(name) == markNames[1] {
			t.marks[string(name)] = value
		}
		if !t.add(value, 0, name) {
			return nil, fmt.Errorf("line %d: there are too many symbols", line)
		}
		t.ranges[len(t.ranges)-1].order = rank(kind, name, symbols)
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

// symbolLine divides a line of kallsyms. The name is with what follows it.
func symbolLine(line []byte) (value uint64, kind byte, name []byte, ok bool) {
	digits := bytes.IndexByte(line, ' ')
	if digits < 0 || len(line) < digits+3 || line[digits+2] != ' ' {
		return 0, 0, nil, false
	}
	value, ok = parseHex(line[:digits])
	return value, line[digits+1], line[digits+3:], ok
}

// parseHex reads a number of up to 16 hexadecimal digits.
func parseHex(text []byte) (value uint64, ok bool) {
	odd := byte(0)
	for _, c := range text {
		digit := hexDigits[c]
		value, odd = value<<4|uint64(digit&0xf), odd|digit
	}
	return value, odd < 0x10 && len(text) > 0 && len(text) <= 16
}

// hexDigits are the values of digits, and 0xff for other characters.
var hexDigits = func() (values [256]byte) {
	for i := range values {
		values[i] = 0xff
	}
	for i, c := range "0123456789abcdef" {
		values[c] = byte(i)
		values[unicode.ToUpper(c)] = byte(i)
	}
	return values
}()

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
	underscores := 0
	for underscores < len(name) && name[underscores] == '_' {
		underscores++
	}
	const last = 1<<20 - 1
	return binding<<30 | uint32(7-min(underscores, 7))<<27 | uint32(min(len(name), 127))<<20 | uint32(last-min(index, last))
}

// reference returns the symbol in the name of the kernel's mapping, and its address in the
// run. The name is [kernel.kallsyms]_text, and the offset is the address of _text.
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
