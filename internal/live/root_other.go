//go:build !linux

package live

import (
	"io/fs"
	"os"
)

// Root is the machine's file system.
func Root() fs.FS { return os.DirFS("/") }
