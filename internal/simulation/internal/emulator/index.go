package emulator

import (
	"maps"
	"slices"
)

// An index has the numbers of an image's instructions by address.
type index struct {
	pieces map[uint64]*piece // of code, by address / pieceBytes
	number uint64            // of the latest piece that was asked for
	latest *piece            // nil at first
	n      int               // instructions
}

// A piece has the numbers, plus 1, of the instructions that begin in some bytes of code.
type piece [pieceBytes]uint32

const pieceBytes = 64

func newIndex() index { return index{pieces: map[uint64]*piece{}} }

// piece returns that of an address; nil if there is none.
func (x *index) piece(addr uint64) *piece {
	if number := addr / pieceBytes; x.latest == nil || number != x.number {
		p := x.pieces[number]
		if p == nil {
			return nil
		}
		x.number, x.latest = number, p
	}
	return x.latest
}

// get returns the number of the instruction at an address.
func (x *index) get(addr uint64) (n uint32, ok bool) {
	p := x.piece(addr)
	if p == nil || p[addr%pieceBytes] == 0 {
		return 0, false
	}
	return p[addr%pieceBytes] - 1, true
}

// add adds an instruction at an address that has none.
func (x *index) add(addr uint64, n uint32) {
	p := x.piece(addr)
	if p == nil {
		p = &piece{}
		x.pieces[addr/pieceBytes] = p
	}
	p[addr%pieceBytes] = n + 1
	x.n++
}

// remove forgets the instruction at an address.
func (x *index) remove(addr uint64) {
	x.piece(addr)[addr%pieceBytes] = 0
	x.n--
}

// list returns the numbers by address.
func (x *index) list() []uint32 {
	list := make([]uint32, 0, x.n)
	for _, number := range slices.Sorted(maps.Keys(x.pieces)) {
		for _, n := range x.pieces[number] {
			if n > 0 {
				list = append(list, n-1)
			}
		}
	}
	return list
}
