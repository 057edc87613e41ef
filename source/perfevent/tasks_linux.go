package perfevent

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cyclestack/cyclestack/internal/sorting"
)

// tasks returns the threads of a process in order, none if there is no such
// process.
func tasks(pid int) ([]int, error) {
	d, err := os.Open("/proc/" + strconv.Itoa(pid) + "/task")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil && err != io.EOF && len(names) == 0 {
		return nil, nil // it ended meanwhile
	}
	var tids []int
	for _, name := range names {
		if tid, err := strconv.Atoi(name); err == nil {
			tids = append(tids, tid)
		}
	}
	slices.Sort(tids)
	return tids, nil
}

// looks is how many lists of threads in a row must have no other thread than those before.
const looks = 3

// allTasks is tasks for a process whose threads come and go. The kernel goes from thread
// to thread. If one ends at that moment, the list ends there and lacks the later ones. On
// Linux 6.18, with 1 to 20 threads that come and go, one in two to ten thousand lists
// did. So three that lack the same thread are not expected. Some of the threads may have
// ended.
func allTasks(pid int) ([]int, error) {
	var all []int
	for same := 0; same < looks; same++ {
		tids, err := tasks(pid)
		if err != nil {
			return nil, err
		}
		for _, tid := range tids {
			if at, found := slices.BinarySearch(all, tid); !found {
				all, same = sorting.Insert(all, at, tid), 0
			}
		}
	}
	return all, nil
}

// States of tasks that matter here: see task_state_array in fs/proc/array.c. The
// others are sleep that signals end, or an end.
const (
	stateNone    = 0 // there is no such task
	stateRunning = 'R'
	stateWaiting = 'D' // for what is not to be interrupted
	stateZombie  = 'Z'
	stateDead    = 'X'
)

// taskState returns the letter of a thread's state.
func taskState(tid int) byte {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(tid) + "/stat")
	if err != nil {
		return stateNone
	}
	// "7 (name) S …", and any name.
	_, state, _ := strings.Cut(string(text[strings.LastIndexByte(string(text), ')')+1:]), " ")
	if state == "" {
		return stateNone
	}
	return state[0]
}

// ended says whether a state is that of a thread that has ended: a zombie has,
// though nobody has asked yet how.
func ended(state byte) bool {
	return state == stateNone || state == stateZombie || state == stateDead
}

// taskExists says whether there is a thread of a number that has not ended.
func taskExists(tid int) bool { return !ended(taskState(tid)) }

// neverRan says whether a thread has begun, but not yet been on a processor; false
// also if the kernel does not tell.
func neverRan(tid int) bool { return timeslices(strconv.Itoa(tid)) == "0" && toldOfTimeslices() }

// toldOfTimeslices says whether the kernel counts timeslices, instead of having
// 0 for them.
var toldOfTimeslices = sync.OnceValue(func() bool { return timeslices("self") != "0" })

// timeslices returns how often a thread was given a processor, "" if that is not
// known: the last of what /proc/PID/schedstat has.
func timeslices(task string) string {
	text, err := os.ReadFile("/proc/" + task + "/schedstat")
	if err != nil {
		return ""
	}
	fields := strings.Fields(string(text))
	if len(fields) < 3 {
		return ""
	}
	return fields[2]
}

// processExists says whether any thread of a process has not ended: the first
// may have, and the others go on.
func processExists(pid int) bool {
	if taskExists(pid) {
		return true
	}
	tids, err := tasks(pid)
	return err == nil && slices.ContainsFunc(tids, taskExists)
}

// guarded says whether this user may not look at a thread, whatever he may count: see
// PTRACE_MODE_READ in ptrace(2).
func guarded(tid int) bool {
	_, err := os.Readlink("/proc/" + strconv.Itoa(tid) + "/exe")
	return errors.Is(err, fs.ErrPermission)
}

// processOf returns the process of a thread, the thread itself if that is not known.
func processOf(tid int) int {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(tid) + "/status")
	if err != nil {
		return tid
	}
	_, rest, _ := strings.Cut(string(text), "\nTgid:")
	line, _, _ := strings.Cut(rest, "\n")
	if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil {
		return pid
	}
	return tid
}

// taskName returns the name of a thread.
func taskName(tid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", tid))
	if err != nil {
		return "?"
	}
	return strings.TrimRight(string(text), "\n")
}
