//go:build unix

package kept

import (
	"io/fs"
	"os"
	"syscall"
)

// own reports whether this user owns a file.
func own(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}
