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

// taskExists says whether there is a thread of a number that has not ended.
func taskExists(tid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(tid) + "/stat")
	if err != nil {
		return false
	}
	// "7 (name) S …": a zombie has ended, though nobody has asked yet how.
	_, state, _ := strings.Cut(string(text[strings.LastIndexByte(string(text), ')')+1:]), " ")
	return !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X")
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

// taskName returns the name of a thread.
func taskName(tid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", tid))
	if err != nil {
		return "?"
	}
	return strings.TrimRight(string(text), "\n")
}
