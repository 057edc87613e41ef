package ostime

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of times in /proc/PID/stat and /proc/stat: USER_HZ is 100 for
// all processors that Go runs on.
const tick = 10 * time.Millisecond

// Limits of what is read, which no kernel comes near.
const (
	maxFile  = 1 << 20
	maxTasks = 1 << 16
)

// A proc reads the files of /proc.
type proc struct {
	root   fs.FS // with proc and sys below it
	buffer []byte

	asked, covered bool // whether it is known that proc/loadavg is another's, and whether that is so
}

// read returns the content of a file, valid until the next call. What is behind
// the first maxFile bytes is left out.
func (p *proc) read(name string) ([]byte, error) {
	f, err := p.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return p.content(f)
}

// A keptFile is a file of the kernel that stays open between two readings. Its content is
// made when it is read. Files of tests are opened each time.
type keptFile = *os.File

// again is read for a file that is kept open between calls, if it is the kernel's.
func (p *proc) again(kept *keptFile, dir, name string) ([]byte, error) {
	if *kept == nil {
		f, err := p.root.Open(dir + name)
		if err != nil {
			return nil, err
		}
		own, ok := f.(*os.File)
		if !ok {
			defer f.Close()
			return p.content(f)
		}
		*kept = own
	}
	for {
		p.room()
		_, err := (*kept).Seek(0, io.SeekStart)
		n := 0
		if err == nil {
			n, err = (*kept).Read(p.buffer) // the kernel gives all of it, if there is room
		}
		switch {
		case err == io.EOF:
			return nil, nil
		case err != nil:
			p.release(kept)
			return nil, err
		case n < len(p.buffer) || n >= maxFile:
			return p.buffer[:n], nil
		}
		p.grow()
	}
}

// release closes a file that is kept open.
func (p *proc) release(kept *keptFile) {
	if *kept != nil {
		(*kept).Close()
		*kept = nil
	}
}

// content returns what is in a file.
func (p *proc) content(f fs.File) ([]byte, error) {
	p.room()
	for n := 0; ; {
		more, err := f.Read(p.buffer[n:])
		n += more
		switch {
		case err == io.EOF || n >= maxFile:
			return p.buffer[:n], nil
		case err != nil:
			return p.buffer[:n], err
		case n == len(p.buffer):
			p.grow()
		}
	}
}

// room sees to it that there is a buffer.
func (p *proc) room() {
	if p.buffer == nil {
		p.buffer = make([]byte, 1<<12)
	}
}

// grow makes the buffer larger, and keeps what is in it.
func (p *proc) grow() { p.buffer = append(p.buffer, make([]byte, len(p.buffer))...) }

// numbers returns the entries of a directory that are numbers, in order.
func (p *proc) numbers(dir string) ([]int, error) {
	f, err := p.root.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := namesIn(f, dir)
	var list []int
	for _, name := range names {
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		if n, err := strconv.Atoi(name); err == nil && n > 0 {
			list = append(list, n)
		}
	}
	slices.Sort(list)
	if len(list) > 0 {
		err = nil // some ended while the directory was read
	}
	return list, err
}

// namesIn returns the names of the entries of a directory.
func namesIn(f fs.File, dir string) (names []string, err error) {
	switch d := f.(type) {
	case interface {
		Readdirnames(n int) ([]string, error)
	}:
		return d.Readdirnames(-1)
	case fs.ReadDirFile:
		entries, err := d.ReadDir(-1)
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names, err
	}
	return nil, &fs.PathError{Op: "readdir", Path: dir, Err: fs.ErrInvalid}
}

// A stat is what /proc/PID/stat tells, of a process or of one of its threads.
type stat struct {
	name         string
	parent       int
	user, system time.Duration // to the tick
	began        time.Duration // since boot, to the tick
	io           time.Duration // waiting for block devices, to the tick
	hasIO        bool          // the kernel is new enough to say so
	running      bool          // or it could run
	ended        bool          // a zombie
}

// errStat says that a file is not what proc_pid_stat(5) describes.
var errStat = errors.New("not what proc_pid_stat(5) describes")

// Fields of stat behind the name, counted from 0: see proc_pid_stat(5), which
// counts them from 1 with number and name before them.
const (
	fieldState  = 0
	fieldParent = 1
	fieldUser   = 11
	fieldSystem = 12
	fieldBegan  = 19
	fieldIO     = 39
)

// parseStat reads the content of a file stat. The name stands in brackets and can
// hold any character, brackets and blanks among them.
func parseStat(text []byte) (s stat, err error) {
	open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return s, errStat
	}
	s.name = string(text[open+1 : end])
	n := 0
	for field := range bytes.FieldsSeq(text[end+1:]) {
		switch n {
		case fieldState:
			s.running, s.ended = string(field) == "R", string(field) == "Z" || string(field) == "X"
		case fieldParent:
			if s.parent, err = strconv.Atoi(string(field)); err != nil {
				err = errStat
			}
		case fieldUser:
			s.user, err = ticks(field)
		case fieldSystem:
			s.system, err = ticks(field)
		case fieldBegan:
			s.began, err = ticks(field)
		case fieldIO:
			s.io, err = ticks(field)
			s.hasIO = true
		}
		if err != nil || n == fieldIO {
			return s, err
		}
		n++
	}
	if n <= fieldBegan {
		return s, errStat
	}
	return s, nil
}

// ticks reads a time in ticks.
func ticks(text []byte) (time.Duration, error) {
	n, err := strconv.ParseInt(string(text), 10, 64)
	const most = int64(1<<63-1) / int64(tick)
	if err != nil || n < 0 || n > most {
		return 0, errStat
	}
	return time.Duration(n) * tick, nil
}

// stat reads a file stat.
func (p *proc) stat(dir string) (stat, error) {
	var kept keptFile
	defer p.release(&kept)
	return p.statAgain(&kept, dir)
}

// statAgain is stat for a file that is kept open.
func (p *proc) statAgain(kept *keptFile, dir string) (stat, error) {
	text, err := p.again(kept, dir, "/stat")
	if err != nil {
		return stat{}, err
	}
	s, err := parseStat(text)
	if err != nil {
		return s, &fs.PathError{Op: "read", Path: dir + "/stat", Err: err}
	}
	return s, nil
}

// A sched is the content of a thread's /proc/PID/schedstat.
type sched struct {
	run, wait  time.Duration // it ran; it could have run and waited for a processor, before it did
	timeslices int64         // how often it was given one; 0 if that is not known
}

// schedstat reads a file schedstat.
func (p *proc) schedstat(kept *keptFile, dir string) (sched, error) {
	text, err := p.again(kept, dir, "/schedstat")
	if err != nil {
		return sched{}, err
	}
	f := bytes.Fields(text)
	if len(f) < 2 {
		return sched{}, &fs.PathError{Op: "read", Path: dir + "/schedstat", Err: errors.New("two numbers are missing")}
	}
	r, err1 := strconv.ParseInt(string(f[0]), 10, 64)
	w, err2 := strconv.ParseInt(string(f[1]), 10, 64)
	if err := errors.Join(err1, err2); err != nil || r < 0 || w < 0 {
		return sched{}, &fs.PathError{Op: "read", Path: dir + "/schedstat", Err: fmt.Errorf("%q is not a pair of times", f[:2])}
	}
	s := sched{run: time.Duration(r), wait: time.Duration(w)}
	if len(f) > 2 {
		s.timeslices, _ = strconv.ParseInt(string(f[2]), 10, 64)
	}
	return s, nil
}

// A status is what is needed of /proc/PID/status.
type status struct {
	voluntary, involuntary uint64 // switches to another thread
	switches               bool   // they are told
	peak                   uint64 // bytes resident at most, of the process; 0 if it has no memory any more
}

// status reads a file status. Its lines are "Key:\tvalue"; the name, which comes
// first, has no line ends in it: the kernel escapes them.
func (p *proc) status(kept *keptFile, dir string) (s status, err error) {
	text, err := p.again(kept, dir, "/status")
	if err != nil {
		return s, err
	}
	s.voluntary, s.switches = numberAfter(text, "\nvoluntary_ctxt_switches:")
	s.involuntary, _ = numberAfter(text, "\nnonvoluntary_ctxt_switches:")
	kilobytes, _ := numberAfter(text, "\nVmHWM:")
	s.peak = kilobytes << 10
	return s, nil
}

// numberAfter returns the number in a line that begins with a key, line end before it.
func numberAfter(text []byte, key string) (n uint64, ok bool) {
	at := bytes.Index(text, []byte(key))
	if at < 0 {
		return 0, false
	}
	line, _, _ := bytes.Cut(text[at+len(key):], []byte{'\n'})
	n, err := strconv.ParseUint(string(bytes.TrimSuffix(bytes.TrimSpace(line), []byte(" kB"))), 10, 53)
	return n, err == nil
}

// leads reports whether a thread is the first of its process.
func (p *proc) leads(tid int) bool {
	text, err := p.read(fmt.Sprintf("proc/%d/status", tid))
	n, ok := numberAfter(text, "\nTgid:")
	return err == nil && ok && n == uint64(tid)
}

// A machine is what all processors together did since boot, from /proc/stat.
type machine struct{ all, steal time.Duration }

// machine reads the first line of /proc/stat: user, nice, system, idle, iowait,
// irq, softirq, steal; what guests used is in user and nice.
func (p *proc) machine(kept *keptFile) (m machine, err error) {
	text, err := p.again(kept, "proc", "/stat")
	if err != nil {
		return m, err
	}
	line, _, _ := bytes.Cut(text, []byte{'\n'})
	f := bytes.Fields(line)
	const steal = 8
	if len(f) <= steal || string(f[0]) != "cpu" {
		return m, &fs.PathError{Op: "read", Path: "proc/stat", Err: errors.New("its first line has no stolen time")}
	}
	for i, text := range f[1 : steal+1] {
		d, err := ticks(text)
		if err != nil {
			return m, &fs.PathError{Op: "read", Path: "proc/stat", Err: fmt.Errorf("%q is not a time", text)}
		}
		if m.all += d; i == steal-1 {
			m.steal = d
		}
	}
	return m, nil
}

// delays says why the kernel does not tell how long threads wait for block
// devices; "" if it does.
func (p *proc) delays() string {
	const enable = "sysctl kernel.task_delayacct=1 has it do so for what is started later"
	text, err := p.read("proc/sys/kernel/task_delayacct")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "the kernel does not say whether it keeps account of delays (CONFIG_TASK_DELAY_ACCT, Linux 5.14)"
	case err != nil:
		return err.Error()
	case strings.TrimSpace(string(text)) != "1":
		return "the kernel keeps no account of delays: " + enable
	}
	return ""
}

// A cgroup is the one whose limit of processor time holds for a process.
type cgroup struct {
	dir string // of its files, and of the cgroups above it up to the mount
	top string
	v1  bool
}

// lastNumber is the number that was given last to a process or a thread, the fifth field
// of /proc/loadavg; 0 if it is not known. In containers lxcfs puts a file of its own
// there. It has the numbers of another namespace, or old ones.
func (p *proc) lastNumber(kept *keptFile) int {
	if !p.asked {
		mounts, err := p.read("proc/self/mountinfo")
		p.asked, p.covered = true, err == nil && bytes.Contains(mounts, []byte(" /proc/loadavg "))
	}
	if p.covered {
		return 0
	}
	text, err := p.again(kept, "proc", "/loadavg")
	if err != nil {
		return 0
	}
	text = bytes.TrimSpace(text)
	n, err := strconv.Atoi(string(text[bytes.LastIndexByte(text, ' ')+1:]))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// membership returns the content of /proc/PID/cgroup, the cgroups of a process.
func (p *proc) membership(kept *keptFile, pid int) ([]byte, error) {
	return p.again(kept, "proc/", fmt.Sprintf("%d/cgroup", pid))
}

// cgroup finds the cgroup of a process of some membership: of version 1 if the controller
// cpu is there, else of version 2. See cgroups(7).
func (p *proc) cgroup(membership string) (c cgroup, err error) {
	found := ""
	for line := range strings.Lines(membership) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(f) < 3 {
			continue
		}
		switch {
		case slices.Contains(strings.Split(f[1], ","), "cpu"):
			found, c.v1 = f[2], true
		case f[0] == "0" && f[1] == "" && !c.v1:
			found = f[2]
		}
	}
	if found == "" {
		return c, errors.New("the process is in no cgroup that can limit processor time")
	}
	return c, p.mounted(&c, found)
}

// mounted finds where a cgroup's files are. Fields of mountinfo are described in
// proc_pid_mountinfo(5).
func (p *proc) mounted(c *cgroup, name string) error {
	text, err := p.read("proc/self/mountinfo")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		before, after, _ := strings.Cut(line, " - ")
		b, a := strings.Fields(before), strings.Fields(after)
		if len(b) < 5 || len(a) < 3 {
			continue
		}
		fits := a[0] == "cgroup2" && !c.v1 ||
			a[0] == "cgroup" && c.v1 && slices.Contains(strings.Split(a[2], ","), "cpu")
		if !fits {
			continue
		}
		below, inside := strings.CutPrefix(path.Clean(name), strings.TrimSuffix(b[3], "/"))
		c.top = strings.TrimPrefix(path.Clean(b[4]), "/")
		c.dir = path.Join(c.top, below)
		if inside && fs.ValidPath(c.dir) && strings.HasPrefix(c.dir, c.top) {
			return nil
		}
	}
	return errors.New("the file system of cgroups is not mounted")
}

// throttled returns how long a cgroup, and those above it, were throttled because
// their processor time was used up. limited is whether any of them has a limit.
func (p *proc) throttled(c cgroup) (sum time.Duration, limited bool, err error) {
	for dir := c.dir; ; dir = path.Dir(dir) {
		limited = p.limited(dir, c.v1) || limited
		d, ok, err := p.throttledHere(dir)
		if err != nil {
			return 0, false, err
		}
		if ok {
			sum += d
		}
		if dir == c.top || len(dir) <= len(c.top) {
			return sum, limited, nil
		}
	}
}

// limited says whether a cgroup has a limit of processor time of its own.
func (p *proc) limited(dir string, v1 bool) bool {
	name := "/cpu.max"
	if v1 {
		name = "/cpu.cfs_quota_us"
	}
	text, err := p.read(dir + name)
	f := strings.Fields(string(text))
	return err == nil && len(f) > 0 && f[0] != "max" && f[0] != "-1"
}

// throttledHere reads a cgroup's cpu.stat. A root has no such line, and no limit.
func (p *proc) throttledHere(dir string) (d time.Duration, ok bool, err error) {
	text, err := p.read(dir + "/cpu.stat")
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) != 2 || f[0] != "throttled_usec" && f[0] != "throttled_time" {
			continue
		}
		n, err := strconv.ParseInt(f[1], 10, 64)
		unit := time.Nanosecond // version 1
		if f[0] == "throttled_usec" {
			unit = time.Microsecond
		}
		if err != nil || n < 0 || n > int64(1<<63-1)/int64(unit) {
			return 0, false, &fs.PathError{Op: "read", Path: dir + "/cpu.stat", Err: fmt.Errorf("%q is not a time", f[1])}
		}
		return time.Duration(n) * unit, true, nil
	}
	return 0, false, nil
}
