//go:build !linux

package object

// unload gives up the memory of a mapped file, on systems that have a call for it.
func unload([]byte) {}
