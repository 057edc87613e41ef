package valgrind

import (
	"bytes"
	"errors"

	"github.com/cyclestack/cyclestack/counts"
)

// Bounds on the memory that a file can make a reader use.
const (
	maxNames     = 1 << 22
	maxNameBytes = 1 << 28
)

var errNames = errors.New("too many names")

// A name is the index of one that was read; 0 is none.
type name int32

// names are those of objects, files or functions. A file writes each once, with a number in
// brackets, and then the number alone: "(12) main" and then "(12)". The numbers hold until
// the end of the file, over all its parts.
type names struct {
	text   []string
	index  map[string]name
	number []name          // by number in brackets, as long as they are small
	far    map[uint64]name // the others
	bytes  int
	lost   int // numbers that were used and stand for nothing

	levels bool // functions, which callgrind numbers by level of recursion
}

func newNames() names {
	return names{text: []string{""}, index: map[string]name{"": 0}, far: map[uint64]name{}}
}

// forget forgets the numbers, at the end of a file.
func (n *names) forget() {
	n.number = n.number[:0]
	clear(n.far)
}

// nearNumbers is how many numbers are kept in a list and not in a map.
const nearNumbers = 1 << 16

// read reads a name as a file writes it.
func (n *names) read(b []byte) (name, error) {
	if len(b) == 0 || b[0] != '(' {
		return n.intern(b)
	}
	number, rest, ok := decimal(b[1:])
	if !ok || len(rest) == 0 || rest[0] != ')' { // such as (below main)
		return n.intern(b)
	}
	if text := bytes.TrimLeft(rest[1:], " \t"); len(text) > 0 {
		id, err := n.intern(text)
		n.set(number, id)
		return id, err
	}
	if id, ok := n.get(number); ok {
		return id, nil
	}
	n.lost++
	return n.intern(b)
}

func (n *names) get(number uint64) (name, bool) {
	if number < uint64(len(n.number)) {
		id := n.number[number]
		return id - 1, id > 0
	}
	id, ok := n.far[number]
	return id, ok
}

func (n *names) set(number uint64, id name) {
	if number >= nearNumbers {
		if len(n.far) < maxNames {
			n.far[number] = id
		}
		return
	}
	for uint64(len(n.number)) <= number {
		n.number = append(n.number, 0)
	}
	n.number[number] = id + 1
}

// intern returns the index of a text.
func (n *names) intern(b []byte) (name, error) {
	if string(b) == "???" { // what has no name
		b = nil
	}
	if n.levels {
		b = withoutLevel(b)
	}
	if id, ok := n.index[string(b)]; ok {
		return id, nil
	}
	if n.bytes += len(b); len(n.text) >= maxNames || n.bytes > maxNameBytes {
		return 0, errNames
	}
	id := name(len(n.text))
	text := string(b)
	n.text = append(n.text, counts.Name(text))
	n.index[text] = id
	return id, nil
}

// withoutLevel returns the name of a function without the level of recursion that callgrind
// adds: "sort" and "sort'2" are the same code.
func withoutLevel(b []byte) []byte {
	at := bytes.LastIndexByte(b, '\'')
	if at <= 0 {
		return b
	}
	if _, rest, ok := decimal(b[at+1:]); !ok || len(rest) > 0 {
		return b
	}
	return b[:at]
}

// decimal reads a number, and returns what follows it.
func decimal(b []byte) (v uint64, rest []byte, ok bool) {
	i := 0
	for ; i < len(b) && b[i]-'0' <= 9; i++ {
		if i == 19 { // not all numbers of 20 digits fit
			return 0, nil, false
		}
		v = v*10 + uint64(b[i]-'0')
	}
	return v, b[i:], i > 0
}
