package object

import (
	"fmt"
	"os"
)

// Regular returns an error for a path that is not a regular file's. Opening other files may
// block, or do things.
func Regular(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: is not a regular file", path)
	}
	return err
}

// openRegular opens a regular file.
func openRegular(path string) (*os.File, os.FileInfo, error) {
	if err := Regular(path); err != nil {
		return nil, nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// ReadAt reads up to size bytes of a regular file from an offset on.
func ReadAt(path string, offset uint64, size int) ([]byte, error) {
	f, info, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	length := info.Size()
	if offset > uint64(length) {
		return nil, fmt.Errorf("%s has no byte %d", path, offset)
	}
	data := make([]byte, min(uint64(size), uint64(length)-offset))
	n, err := f.ReadAt(data, int64(offset))
	if n == len(data) {
		err = nil
	}
	return data[:n], err
}
