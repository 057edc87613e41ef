//go:build !linux

package samples

import "unsafe"

func huge(unsafe.Pointer, uintptr) {}
