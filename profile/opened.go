package profile

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/cyclestack/cyclestack/internal/object"
)

// Opened keeps files and lists of symbols open between Symbolizers, so that recordings which
// follow each other read them once. The Symbolizers must be used one after another. A file
// that no Symbolizer asked for in a while is closed.
type Opened struct {
	mu      sync.Mutex
	round   int // Symbolizers that were closed
	objects map[string]*openedObject
	lists   map[string]openedList // by path
}

// An openedObject is a file that is open.
type openedObject struct {
	*object.Object
	info  os.FileInfo // of the path when it was opened
	round int         // when it was last asked for
}

// An openedList is a list of the kernel's symbols.
type openedList struct {
	*nameTable
	state string // of the file, or of the running kernel's modules
}

// openedRounds is how many Symbolizers may do without a file before it is closed, and
// openedMost how many files are kept.
const (
	openedRounds = 30
	openedMost   = 256
)

// Close closes all files.
func (k *Opened) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	var errs []error
	for _, o := range k.objects {
		errs = append(errs, o.Close())
	}
	k.objects, k.lists = nil, nil
	return errors.Join(errs...)
}

// open opens a file, or returns the one that is open. A path that has another file by now is
// opened again.
func (k *Opened) open(path string, o object.Options) (*object.Object, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	key := o.BuildID + " " + path
	if old := k.objects[key]; old != nil {
		if os.SameFile(old.info, info) && old.info.Size() == info.Size() && old.info.ModTime().Equal(info.ModTime()) {
			old.round = k.round
			return old.Object, nil
		}
		// It may be in use until this Symbolizer is closed.
		delete(k.objects, key)
		k.objects[fmt.Sprint(k.round, " ", key)] = old
	}
	file, err := object.Open(path, o)
	if err != nil {
		return nil, err
	}
	if k.objects == nil {
		k.objects = map[string]*openedObject{}
	}
	k.objects[key] = &openedObject{file, info, k.round}
	return file, nil
}

// kallsyms returns a list of the kernel's symbols. It is read again when it has changed: the
// running kernel's when its modules have.
func (k *Opened) kallsyms(path string) (*nameTable, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	state := ""
	if path == ownKallsyms {
		modules, _ := os.ReadFile("/proc/modules") // some kernels have none
		state = string(modules)
	} else if info, err := os.Stat(path); err == nil {
		state = fmt.Sprint(info.Size(), info.ModTime())
	}
	if old, ok := k.lists[path]; ok && old.state == state {
		return old.nameTable, nil
	}
	t, err := openKallsyms(path)
	if err != nil {
		return nil, err
	}
	if k.lists == nil {
		k.lists = map[string]openedList{}
	}
	k.lists[path] = openedList{t, state}
	return t, nil
}

// end notes that a Symbolizer was closed, and closes what was not asked for lately.
func (k *Opened) end() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.round++
	var errs []error
	for key, o := range k.objects {
		if k.round-o.round > openedRounds || len(k.objects) > openedMost && k.round-o.round > 1 {
			errs = append(errs, o.Close())
			delete(k.objects, key)
		}
	}
	return errors.Join(errs...)
}
