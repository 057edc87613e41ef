package ostime

import (
	"io/fs"
	"time"
)

// host is what is not of the program: the machine, the cgroup's limit and what the
// kernel keeps no account of.
type host struct {
	known    bool    // it was read
	brief    bool    // the command had ended by then, so that nothing is known of the machine meanwhile
	machine  machine // at the last table
	asked    time.Duration
	err      error // of reading the machine
	procstat keptFile
	throttle throttle

	noSched error  // the kernel tells no waiting time
	noIO    string // note on why it tells no waiting for devices; "" if it does
}

// surroundings reads what is not the program's, once: while the program runs, so
// that its start does not wait for it, or when it has ended.
func (w *Watch) surroundings() {
	if w.host.known {
		return
	}
	w.host.known = true
	if why := w.proc.delays(); why != "" {
		w.host.noIO = unknown("waiting for disks", why)
	}
	if !w.host.brief {
		w.host.machine, w.host.err = w.proc.machine(&w.host.procstat)
	}
	if !w.host.throttle.seen && w.host.throttle.err == nil {
		w.host.throttle.look(&w.proc, w.first(), false, w.looked)
	}
}

// first is the process whose cgroup counts: the command, or the first of those
// that ran already.
func (w *Watch) first() int {
	switch {
	case w.command > 0:
		return w.command
	case len(w.spec.PIDs) > 0:
		return w.spec.PIDs[0]
	case len(w.spec.TIDs) > 0:
		return w.spec.TIDs[0]
	}
	return 0
}

// lookAtLimit looks at the cgroup.
func (w *Watch) lookAtLimit() {
	if pid := w.first(); pid > 0 {
		t := w.tasks.live[pid]
		w.host.throttle.look(&w.proc, pid, t == nil || t.ended, w.looked)
	}
}

// A throttle adds up for how long the cgroup of a process stood still. A process
// can be moved to another one.
type throttle struct {
	of         int // the process
	at         time.Duration
	kept       keptFile // the file with its cgroup
	membership string
	cgroup     cgroup
	last       time.Duration
	sum        time.Duration // since the last table
	limited    bool
	err        error
	seen       bool
}

// unlimitedFor is how long a cgroup without a limit is not looked at again.
const unlimitedFor = time.Second

// look reads the cgroup's files. A cgroup without a limit is not read again for
// [unlimitedFor]. Of a process that has ended the cgroup is no longer known, since version
// 1 moves it to the root: then it is the one seen before, or that of the run before.
func (t *throttle) look(p *proc, pid int, ended bool, now time.Duration) {
	known := t.seen && (t.of == pid || ended)
	if known && !t.limited && (ended || now-t.at < unlimitedFor) {
		return
	}
	t.at = now
	if t.of != pid {
		p.release(&t.kept)
		t.of = pid
	}
	membership, c := t.membership, t.cgroup
	var err error
	if !known || !ended {
		var unchanged bool
		membership, c, unchanged, err = t.find(p, pid, known)
		if unchanged {
			return
		}
	}
	if err == nil && c.dir == "" {
		err = fs.ErrNotExist
	}
	var sum time.Duration
	limited := false
	if err == nil {
		sum, limited, err = p.throttled(c)
	}
	if err != nil {
		if !t.seen {
			t.err = err
		}
		return
	}
	if t.seen && c == t.cgroup && sum >= t.last {
		t.sum += sum - t.last
	}
	t.membership, t.cgroup, t.last, t.seen, t.err = membership, c, sum, true, nil
	t.limited = t.limited || limited
}

// find finds the cgroup of a process. unchanged is whether it is still the same and has
// no limit. If the cgroup was known, the process may just have ended: that is no error.
func (t *throttle) find(p *proc, pid int, known bool) (membership string, c cgroup, unchanged bool, err error) {
	text, err := p.membership(&t.kept, pid)
	switch {
	case err != nil && known:
		return t.membership, t.cgroup, false, nil
	case err != nil:
		return t.membership, t.cgroup, false, err
	case string(text) == t.membership:
		return t.membership, t.cgroup, t.seen && !t.limited, nil
	}
	membership = string(text)
	c, err = p.cgroup(membership)
	return membership, c, false, err
}
