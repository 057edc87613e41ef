package valgrind

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cyclestack/cyclestack/internal/simulation/internal/child"
)

// Follow runs a program under lackey, with all that it starts, and hands on each process's code
// as printed. It stops when the first process ends, or after limit blocks of all processes
// together, and kills all. Each process that executes a program gets a follower of its own from
// start.
//
// It discards the program's output, and reads its standard input from the current position.
// Geometry, Tool and Instructions of the command are ignored. The error is a *[ToolError]
// if nothing could be followed.
func Follow(ctx context.Context, c Command, limit int64, start func() Follower) (*Trace, error) {
	if _, err := c.find(); err != nil {
		return nil, err
	}
	dir, err := scratch()
	if err != nil {
		return nil, err
	}
	t := &tracer{dir: dir, start: start, left: limit, logs: map[string]*logFile{}, ended: map[string]Follower{}, buffer: make([]byte, logRead), idle: logIdle}
	err = t.run(ctx, &c)
	t.close()
	if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
		return nil, err
	}
	t.trace.Blocks = limit - t.left
	t.trace.Cut = t.trace.Cut || t.left == 0
	return &t.trace, nil
}

// A tracer follows the logs of all processes of a run.
//
// Each process that is forked or executes a program writes a log of its own, from its
// beginning on. The first process has most of the blocks, and writes into a pipe: that
// takes half as long as writing into a file, and waits for the reader. The others cannot
// have a pipe: their process numbers, and so the names of their logs, are not known before
// they write. Their logs are files, which are emptied as they are read.
type tracer struct {
	dir    string
	start  func() Follower
	left   int64
	logs   map[string]*logFile // by name, which is the number of the process
	ended  map[string]Follower // of processes that have ended
	buffer []byte
	idle   time.Duration // between looking at the logs
	full   bool          // there are more logs than can be followed
	trace  Trace
}

const (
	logRead    = 1 << 20               // bytes that are read at a time, and that the pipe holds if possible
	logIdle    = 10 * time.Millisecond // in this time the pipe does not become full: waiting for each line would wake up both sides each time
	logHurry   = time.Millisecond      // the same for a pipe of the usual size
	logBehind  = 256 << 20             // bytes that reading may lag behind
	logRelease = 4 << 20               // bytes that are given back at a time after reading
	logsMost   = 200                   // processes that are followed at a time
	endedMost  = 10_000                // ended processes that are kept for their children
)

// run runs the program to its end, or until it is cut.
func (t *tracer) run(ctx context.Context, c *Command) error {
	inner, stop := context.WithCancel(ctx)
	defer stop()
	cmd, said := c.under(inner, traceOptions(t.dir))
	if err := cmd.Start(); err != nil {
		return err
	}
	// If the process is faster than this, its log is a file.
	first := strconv.Itoa(cmd.Process.Pid)
	if err := unix.Mkfifo(filepath.Join(t.dir, first), 0o600); err != nil && !errors.Is(err, unix.EEXIST) {
		stop()
		_ = cmd.Wait()
		return err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // only what was printed matters
	}()
	cut := t.follow(ctx, ended)
	stop()
	<-ended
	t.find()
	child.EndRest(cmd.Process.Pid, t.dir)
	for n := 1; n > 0 && t.left > 0 && ctx.Err() == nil; {
		n, _ = t.read()
	}
	t.trace.Cut = cut
	switch log := t.logs[first]; {
	case ctx.Err() != nil:
		return ctx.Err()
	case t.trace.Programs > 0:
		return nil
	case log != nil && log.failed != "":
		return &ToolError{Lackey, log.failed}
	}
	return &ToolError{Lackey, lastWords(said.String())}
}

// follow reads the logs until the first process has ended. It returns true if more was
// printed than is read.
func (t *tracer) follow(ctx context.Context, ended <-chan struct{}) (cut bool) {
	for ctx.Err() == nil {
		t.find()
		n, behind := t.read()
		if t.left == 0 || behind || t.full {
			return true
		}
		wait := t.idle
		if n >= logRead/4 {
			wait = 0
		}
		select {
		case <-ended:
			return false
		case <-time.After(wait):
		}
	}
	return false
}

// find opens the logs that are new.
func (t *tracer) find() {
	entries, err := os.ReadDir(t.dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		name := e.Name()
		pid, err := strconv.Atoi(name)
		if err != nil || t.logs[name] != nil {
			continue
		}
		if t.full = len(t.logs) >= logsMost; t.full {
			return
		}
		if log := openLog(filepath.Join(t.dir, name), pid); log != nil {
			if log.small {
				t.idle = logHurry
			}
			log.traceLog = newTraceLog(t.start(), t.ancestor, &t.left)
			t.logs[name] = log
		}
	}
}

// read reads a piece of each log, and reports whether reading lags far behind in one.
func (t *tracer) read() (total int, behind bool) {
	for name, log := range t.logs {
		n := log.next(t.buffer)
		total += n
		if execs := log.execs; execs > log.counted {
			t.trace.Programs += execs - log.counted
			log.counted = execs
		}
		behind = behind || log.behind > logBehind
		if n == 0 && !log.pipe && log.gone() {
			t.end(name, log)
			_ = os.Remove(filepath.Join(t.dir, name))
			delete(t.logs, name)
		}
	}
	return total, behind
}

// ancestor returns the follower of a process that has forked another one; nil if it is not
// known.
func (t *tracer) ancestor(pid string) Follower {
	for range len(t.logs) {
		log := t.logs[pid]
		if log == nil {
			return t.ended[pid]
		}
		if log.begun {
			return log.to
		}
		pid = log.parent
	}
	return nil
}

// end ends following a process.
func (t *tracer) end(pid string, log *logFile) {
	log.settle()
	log.to.End()
	if len(t.ended) < endedMost {
		t.ended[pid] = log.to
	}
	_ = unix.Close(log.fd)
}

// close ends following all processes.
func (t *tracer) close() {
	for pid, log := range t.logs {
		t.end(pid, log)
	}
}

// A logFile is the log of a process, which goes on writing it.
type logFile struct {
	*traceLog
	pid      int
	fd       int
	pipe     bool
	small    bool  // the pipe
	offset   int64 // a file has been read up to here
	released int64 // and emptied up to here
	marked   bool  // its first byte is 0
	behind   int64 // bytes not read yet
	quiet    int   // how often nothing new was found
	counted  int   // programs that have begun
}

// openLog opens a log; nil if that fails.
func openLog(path string, pid int) *logFile {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	log := &logFile{pid: pid, fd: fd}
	var stat unix.Stat_t
	if unix.Fstat(fd, &stat) == nil && stat.Mode&unix.S_IFMT == unix.S_IFIFO {
		log.pipe = true
		_, err := unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, logRead)
		log.small = err != nil // users may have a limited number of large ones
	}
	return log
}

// next reads the next piece into a buffer, and returns its length: 0 if there is nothing
// new.
func (f *logFile) next(buffer []byte) int {
	if f.pipe {
		n, _ := unix.Read(f.fd, buffer)
		f.write(buffer[:max(n, 0)])
		return max(n, 0)
	}
	if f.behind < 0 || f.restarted() {
		f.begin()
		f.offset, f.released, f.marked = 0, 0, false
	}
	n, _ := unix.Pread(f.fd, buffer, f.offset)
	n = max(n, 0)
	f.write(buffer[:n])
	f.offset += int64(n)
	f.mark()
	if f.offset-f.released >= logRelease {
		// If a file system cannot do it, the file grows with what is followed.
		_ = unix.Fallocate(f.fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, f.released, f.offset-f.released)
		f.released = f.offset
	}
	return n
}

// mark sets the first byte of a file that has been read to 0: the process does not write it
// a second time. It finds out how much is not read yet.
func (f *logFile) mark() {
	if !f.marked && f.offset > 0 {
		n, err := unix.Pwrite(f.fd, []byte{0}, 0)
		f.marked = n == 1 && err == nil
	}
	var stat unix.Stat_t
	if unix.Fstat(f.fd, &stat) == nil {
		f.behind = stat.Size - f.offset
	}
}

// restarted reports whether a file has been emptied and written anew since it was marked.
// That happens when its process executes another program.
func (f *logFile) restarted() bool {
	if !f.marked {
		return false
	}
	var first [1]byte
	n, err := unix.Pread(f.fd, first[:], 0)
	return err == nil && (n == 0 || first[0] != 0)
}

// gone reports whether the process of a log without news has ended. It checks now and then
// only.
func (f *logFile) gone() bool {
	const often = 32
	f.quiet++
	return f.quiet%often == 0 && errors.Is(unix.Kill(f.pid, 0), unix.ESRCH)
}
