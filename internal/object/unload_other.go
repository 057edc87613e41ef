//go:build !linux

package object

import "os"

// unload gives up the memory of a mapped file, on systems that have a call for it.
func unload([]byte) {}

// stateOf identifies a file with its contents, on systems where that is known.
func stateOf(os.FileInfo) string { return "" }
