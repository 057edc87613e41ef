// Package testperf has what several packages' tests of recordings need: a file in memory to
// write one to, perf's own recordings for benchmarks, and the processor time of readers.
package testperf

import "io"

// A MemFile is a file in memory.
type MemFile struct {
	B  []byte // what was written
	at int64
}

// Write writes at the current place.
func (f *MemFile) Write(p []byte) (int, error) {
	if need := int(f.at) + len(p); need > len(f.B) {
		f.B = append(f.B, make([]byte, need-len(f.B))...)
	}
	copy(f.B[f.at:], p)
	f.at += int64(len(p))
	return len(p), nil
}

// Seek changes the current place.
func (f *MemFile) Seek(off int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		off += f.at
	case io.SeekEnd:
		off += int64(len(f.B))
	}
	f.at = off
	return off, nil
}
