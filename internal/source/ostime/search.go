package ostime

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// search is the state of the search for new processes.
type search struct {
	numbers  [2]int        // the number that the kernel gave last, and the one at least Every before; 0 if not known
	numbered time.Duration // when the first was read
	foreign  map[int]bool  // processes that were looked at and are not watched
	loadavg  keptFile      // has the last number
}

// probeMost is how many numbers are looked at one by one. Listing all processes takes
// longer than that, unless there are few.
const probeMost = 64

// seek looks for processes that the watched ones have started, and reports whether any
// threads can have begun. The kernel gives numbers in order. So no thread has begun if no
// number was given, and of a few new numbers each is looked at. A thread has its number
// before it can be seen: its maker may wait in the run queue in between. So the
// numbers of the last Every are looked at again.
func (w *Watch) seek() bool {
	last, from := w.proc.lastNumber(&w.search.loadavg), w.search.numbers[1]
	switch {
	case w.search.foreign == nil:
		w.descend()
	case last > 0 && w.search.numbers == [2]int{last, last}:
		return false
	case from > 0 && last >= from && last-from <= probeMost && len(w.search.foreign) < maxTasks:
		w.probe(from+1, last)
	default:
		if 0 < last && last < from { // numbers have begun again: some of these are others now
			maps.DeleteFunc(w.search.foreign, func(pid int, _ bool) bool { return pid <= last || pid > from })
		}
		w.descend()
	}
	if w.looked-w.search.numbered >= Every {
		w.search.numbers, w.search.numbered = [2]int{last, w.search.numbers[0]}, w.looked
	}
	return true
}

// probe finds those of the family among processes with some numbers.
func (w *Watch) probe(from, to int) {
	known := w.watched()
	parents := map[int]int{}
	for pid := from; pid <= to; pid++ {
		seen := pid <= w.search.numbers[0] && w.search.foreign[pid] // and not one before it of the same number
		if known[pid] || seen || w.tasks.live[pid] != nil {
			continue
		}
		s, err := w.proc.stat(fmt.Sprintf("proc/%d", pid))
		// Any thread has a directory in /proc, though only processes are listed there.
		if err == nil && (!known[s.parent] && s.parent < from || w.proc.leads(pid)) {
			parents[pid] = s.parent
		}
	}
	w.follow(parents, known)
}

// pids are the processes that are watched with all their threads.
func (w *Watch) pids() []int {
	seen := map[int]bool{}
	for _, t := range w.tasks.live {
		if !slices.Contains(w.spec.TIDs, t.tid) {
			seen[t.pid] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// descend finds the processes that the watched ones have started. Each process is
// looked at once, unless it is watched.
func (w *Watch) descend() {
	all, err := w.proc.numbers("proc")
	if err != nil {
		return
	}
	known := w.watched()
	if w.search.foreign == nil { // what a command starts has larger numbers, or begins with small ones after now
		w.search.foreign = map[int]bool{}
		for _, pid := range all {
			w.search.foreign[pid] = pid < w.command
		}
	}
	there, parents := map[int]bool{}, map[int]int{}
	for _, pid := range all {
		switch {
		case known[pid]:
		case w.search.foreign[pid]:
			there[pid] = true
		default:
			if s, err := w.proc.stat(fmt.Sprintf("proc/%d", pid)); err == nil {
				parents[pid] = s.parent
			}
		}
	}
	w.search.foreign = there
	w.follow(parents, known)
}

// follow begins to watch those of some processes that descend from known ones. parents
// has the parent of each. The others are foreign.
func (w *Watch) follow(parents map[int]int, known map[int]bool) {
	fresh := slices.Sorted(maps.Keys(parents))
	// A child can have a smaller number than its parent, when numbers have
	// begun again.
	for found := true; found; {
		found = false
		for _, pid := range fresh {
			if !known[pid] && known[parents[pid]] {
				known[pid], found = true, true
				w.threads(pid)
			}
		}
	}
	for _, pid := range fresh {
		if !known[pid] {
			w.search.foreign[pid] = true
		}
	}
}

// watched is the set of pids.
func (w *Watch) watched() map[int]bool {
	known := map[int]bool{}
	for _, pid := range w.pids() {
		known[pid] = true
	}
	return known
}
