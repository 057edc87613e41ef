package kept

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cyclestack/cyclestack/internal/sorting"
)

// Bounds on indexes: of one, and of all.
const (
	indexMost   = 64 << 20
	indexesMost = 128 << 20
)

// Indexes keep what was read of programs for the next time, below the user's cache
// directory. Those that were not used for longest go, where there are too many.
type Indexes struct {
	cache func() (string, error)
	once  sync.Once
	dir   string       // "" if there is none
	left  atomic.Int64 // bytes until it is pruned
}

// NewIndexes returns the indexes below a cache directory. It looks for the directory at the
// first use.
func NewIndexes(cache func() (string, error)) *Indexes { return &Indexes{cache: cache} }

// path returns the file of an index; "" if it cannot be kept.
func (x *Indexes) path(name string) string {
	x.once.Do(func() {
		if dir, err := place(x.cache, "indexes"); err == nil {
			x.dir = dir
		}
	})
	if x.dir == "" || name == "" || name[0] == '.' || len(name) > 160 || strings.Trim(name, "0123456789abcdef.s") != "" {
		return ""
	}
	return filepath.Join(x.dir, name)
}

// Read returns an index from a byte on, and so many bytes at most; nil if there are none.
func (x *Indexes) Read(name string, at int64, most int) []byte {
	path := x.path(name)
	if path == "" {
		return nil
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > indexMost || at < 0 || at >= info.Size() {
		return nil // a pipe would wait for a writer when it is opened
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	data := make([]byte, min(info.Size()-at, int64(most)))
	if _, err := f.ReadAt(data, at); err != nil {
		return nil
	}
	if now := time.Now(); now.Sub(info.ModTime()) > time.Hour {
		_ = os.Chtimes(path, now, now) // so that it counts as used
	}
	return data
}

// Write keeps an index in place of the one before.
func (x *Indexes) Write(name string, data []byte) {
	path := x.path(name)
	if path == "" || len(data) > indexMost {
		return
	}
	f, err := os.CreateTemp(x.dir, "*"+unfinished)
	if err != nil {
		return
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	if x.left.Add(-int64(len(data))) <= 0 {
		x.left.Store(indexesMost / 16)
		x.prune()
	}
}

// prune removes what there is no room for.
func (x *Indexes) prune() {
	entries, err := os.ReadDir(x.dir)
	if err != nil {
		return
	}
	var list []os.FileInfo
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			list = append(list, info)
		}
	}
	sorting.Stable(list, func(a, b os.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	total := int64(0)
	for _, info := range list {
		stale := strings.HasSuffix(info.Name(), unfinished) && time.Since(info.ModTime()) > staleAfter
		if total += info.Size(); total > indexesMost || stale {
			_ = os.Remove(filepath.Join(x.dir, info.Name()))
		}
	}
}
