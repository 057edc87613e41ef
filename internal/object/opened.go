package object

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"sync"
)

// Opened keeps objects and lists of symbols open, so that recordings which follow each other
// read them once. They must be read one after another: each is a round, and ends with a call
// of End. What no round asked for in a while is closed.
type Opened struct {
	// Patience is how many rounds, after the first, ask for an object in vain before it is opened.
	// So no symbols are read of programs that end soon.
	Patience int

	mu      sync.Mutex
	round   int
	objects map[string]*openedObject
	asked   map[string]openedAsked // objects that are not open
	lists   map[string]openedList  // by path
}

// ErrLater is the error of an object that is opened only if later rounds ask for it.
var ErrLater = errors.New("symbols are read if it runs on")

// openedAsked is when an object was asked for in vain.
type openedAsked struct {
	info   os.FileInfo
	rounds int // in how many
	last   int
}

// An openedObject is a file that is open.
type openedObject struct {
	*Object
	info  os.FileInfo // of the path when it was opened
	round int         // when it was last asked for
}

// An openedList is a list of symbols.
type openedList struct {
	list  any
	state string
}

// openedRounds is how many rounds may do without an object before it is closed. openedMost
// is how many objects are kept.
const (
	openedRounds = 30
	openedMost   = 256
)

// Close closes all objects.
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

// Open opens an object, or returns the one that is open. A path that has another file by now
// is opened again.
func (k *Opened) Open(path string, o Options) (*Object, error) {
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
		// It may be in use until this round ends.
		delete(k.objects, key)
		k.objects[fmt.Sprint(k.round, " ", key)] = old
	}
	if k.later(key, info) {
		return nil, ErrLater
	}
	file, err := Open(path, o)
	if err != nil {
		return nil, err
	}
	if k.objects == nil {
		k.objects = map[string]*openedObject{}
	}
	k.objects[key] = &openedObject{file, info, k.round}
	return file, nil
}

// later reports whether an object is to wait. What was there in the first round need not.
func (k *Opened) later(key string, info os.FileInfo) bool {
	if k.Patience == 0 || k.round == 0 {
		return false
	}
	a := k.asked[key]
	if a.info == nil || !os.SameFile(a.info, info) {
		a = openedAsked{info: info, last: -1}
	}
	if a.last < k.round {
		a.last = k.round
		a.rounds++
	}
	if a.rounds > k.Patience {
		delete(k.asked, key)
		return false
	}
	if k.asked == nil {
		k.asked = map[string]openedAsked{}
	}
	k.asked[key] = a
	return true
}

// List returns a list of symbols. It is read when its state has changed.
func (k *Opened) List(path, state string, read func(path string) (any, error)) (any, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if old, ok := k.lists[path]; ok && old.state == state {
		return old.list, nil
	}
	list, err := read(path)
	if err != nil {
		return nil, err
	}
	if k.lists == nil {
		k.lists = map[string]openedList{}
	}
	k.lists[path] = openedList{list, state}
	return list, nil
}

// End ends a round, and closes what was not asked for lately.
func (k *Opened) End() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.round++
	maps.DeleteFunc(k.asked, func(_ string, a openedAsked) bool { return k.round-a.last > openedRounds })
	var errs []error
	for key, o := range k.objects {
		if k.round-o.round > openedRounds || len(k.objects) > openedMost && k.round-o.round > 1 {
			errs = append(errs, o.Close())
			delete(k.objects, key)
		}
	}
	return errors.Join(errs...)
}
