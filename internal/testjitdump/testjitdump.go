// Package testjitdump writes jitdumps for tests of their readers.
package testjitdump

import (
	"bytes"
	"encoding/binary"
)

// Types of records.
const (
	codeLoad = iota
	codeMove
	debugInfo
	closed
)

// sameFile is a name that stands for the one before.
const sameFile = "\xff"

// A Line says the line of the code from an address on.
type Line struct {
	Addr uint64
	File string
	Line int
}

// A File is a jitdump in the making.
type File struct {
	bytes.Buffer
	order binary.AppendByteOrder
}

// New begins a file for amd64, of process 7.
func New(order binary.AppendByteOrder, flags uint64) *File {
	f := &File{order: order}
	for _, v := range []uint32{0x4a695444, 1, 40, 62, 0, 7} {
		f.U32(v)
	}
	f.U64(12345)
	f.U64(flags)
	return f
}

// U32 and U64 write a number.
func (f *File) U32(v uint32) { f.Write(f.order.AppendUint32(nil, v)) }
func (f *File) U64(v uint64) { f.Write(f.order.AppendUint64(nil, v)) }

// Record begins a record; its header is not counted in the size.
func (f *File) Record(kind uint32, time uint64, size int) {
	f.U32(kind)
	f.U32(uint32(size + 16))
	f.U64(time)
}

// Load writes a piece of code.
func (f *File) Load(time, addr uint64, name, code string) {
	f.Record(codeLoad, time, 40+len(name)+1+len(code))
	f.U32(7)
	f.U32(7)
	for _, v := range []uint64{addr, addr, uint64(len(code)), 1} {
		f.U64(v)
	}
	f.WriteString(name + "\x00" + code)
}

// Move writes that code was moved.
func (f *File) Move(time, from, to uint64, size int) {
	f.Record(codeMove, time, 48)
	f.U32(7)
	f.U32(7)
	for _, v := range []uint64{to, from, to, uint64(size), 1} {
		f.U64(v)
	}
}

// Debug writes the lines of the piece of code that follows.
func (f *File) Debug(addr uint64, lines ...Line) {
	size := 16
	for _, l := range lines {
		size += 16 + len(l.File) + 1
	}
	f.Record(debugInfo, 0, size)
	f.U64(addr)
	f.U64(uint64(len(lines)))
	for _, l := range lines {
		f.U64(l.Addr)
		f.U32(uint32(l.Line))
		f.U32(0)
		f.WriteString(l.File + "\x00")
	}
}

// Sample has a function with lines that is moved, and another one at its
// old address.
func Sample(order binary.AppendByteOrder) *File {
	f := New(order, 0)
	f.Debug(0x5000, Line{0x5000, "/src/a.js", 3}, Line{0x5001, sameFile, 4})
	f.Load(10, 0x5000, "first", "\x90\x90\xc3")
	f.Record(99, 0, 4)
	f.U32(0)
	f.Move(20, 0x5000, 0x6000, 3)
	f.Load(30, 0x5000, "second", "\x55\xc3")
	f.Record(closed, 40, 0)
	return f
}
