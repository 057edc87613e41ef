//go:build !unix

package object

import (
	"io"
	"os"
)

// mapFile reads a file, on systems where it cannot be mapped in the same way.
func mapFile(f *os.File, size int64) (data []byte, free func() error, err error) {
	data, err = io.ReadAll(io.LimitReader(f, size))
	return data, func() error { return nil }, err
}
