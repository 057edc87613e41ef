package profile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// errHidden says that the kernel does not show its addresses.
var errHidden = errors.New("the kernel hides the addresses of its symbols: set kernel.kptr_restrict to 0, or run as root")

// maxLine is the longest line of a list of symbols.
const maxLine = 1 << 16

// readKallsyms reads /proc/kallsyms or a copy of it: lines of an address, the
// type of the symbol as nm shows it, its name, and a module in brackets. Only
// code is kept.
func readKallsyms(r io.Reader) (*nameTable, error) {
	t := &nameTable{marks: map[string]uint64{}}
	symbols, zeros, line := 0, 0, 0
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxLine)
	for s.Scan() {
		line++
		addr, rest, ok1 := bytes.Cut(s.Bytes(), []byte(" "))
		kind, name, ok2 := bytes.Cut(rest, []byte(" "))
		value, err := strconv.ParseUint(string(addr), 16, 64)
		if !ok1 || !ok2 || err != nil || len(kind) != 1 {
			return nil, fmt.Errorf("line %d is no symbol", line)
		}
		symbols++
		if value == 0 {
			zeros++
			continue
		}
		if !bytes.ContainsAny(kind, "tTwW") {
			continue
		}
		name, _, _ = bytes.Cut(name, []byte("\t"))
		if mark := string(name); mark == "_text" || mark == "_stext" {
			t.marks[mark] = value
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
