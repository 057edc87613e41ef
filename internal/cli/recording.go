package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/internal/source/perfrecord"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/plan"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// write records into the file.
func (r *recorder) write(ctx context.Context) error {
	out, err := r.create()
	if err != nil {
		return err
	}
	defer out.discard() // unless it is kept
	signals := catch(len(r.program) > 0)
	defer signals.end() // not before the file has its name
	signals.finally(out.discard)
	out.guard.end()
	state, stats, err := r.run(ctx, out, signals)
	if err != nil {
		return err
	}
	if err := out.keep(); err != nil {
		return err
	}
	r.conclude(stats, out.file != nil && !out.to.direct)
	return programStatus(r.program, state)
}

// run records until the end, and returns how the program ended.
func (r *recorder) run(ctx context.Context, out io.Writer, signals *catcher) (*os.ProcessState, perfrecord.Stats, error) {
	rec, err := r.start(ctx, out)
	if err != nil {
		return nil, perfrecord.Stats{}, r.failure(err)
	}
	defer rec.Close()
	signals.pass(rec, len(r.program) > 0, func() {
		r.tell(r.program[0] + " goes on, and is recorded; another signal ends the recording, and the program")
	})
	told := len(rec.Notes())
	r.tellNotes(r.plan.Notes())
	r.tellNotes(rec.Notes())
	if err := rec.Run(); err != nil {
		return nil, perfrecord.Stats{}, r.failure(err)
	}
	r.tellNotes(rec.Notes()[told:])
	rec.Close()
	return rec.State(), rec.Stats(), nil
}

// tellNotes tells remarks, which stand behind no error.
func (r *recorder) tellNotes(notes []counts.Note) {
	for _, n := range notes {
		r.tell(noteText(n))
	}
}

// start starts to record.
func (r *recorder) start(ctx context.Context, out io.Writer) (*perfrecord.Recording, error) {
	m := r.plan.Machine()
	id, _ := model.HostID(m.Root)
	opts := perfrecord.Options{Root: m.Root, Cmdline: os.Args, Version: "cyclestack " + version, CPUID: id}
	rec, err := perfrecord.Start(ctx, m.Sys, r.plan.Spec(), out, opts)
	if err != nil && r.plan.Refused(err) {
		rec, err = perfrecord.Start(ctx, m.Sys, r.plan.Spec(), out, opts)
	}
	return rec, err
}

// failure gives an error of a recording its exit status.
func (r *recorder) failure(err error) error {
	var event *perfevent.EventError
	var unwritten *perfrecord.WriteError
	switch {
	case errors.As(err, &unwritten):
		name := r.c.output
		if name == "-" {
			name = "standard output"
		}
		return machineError(fmt.Errorf("cannot write %s: %w", name, reason(unwritten.Err)))
	case errors.As(err, &event):
		return usageError("%v", err)
	}
	return programError(measure.StartError(err))
}

// conclude says what there is now, and what to do with it if it can be read again.
func (r *recorder) conclude(s perfrecord.Stats, readable bool) {
	if s.Samples == 0 {
		r.tell(fmt.Sprintf("no samples in %s: what was sampled ran too briefly, or not at all", r.c.output))
		return
	}
	lost, throttled, next := "none lost", "", ""
	if s.Lost > 0 {
		lost = fmt.Sprintf("%d lost (-m gives them more room)", s.Lost)
	}
	if s.Throttled > 0 {
		throttled = fmt.Sprintf(", %d times throttled (-F or -c take fewer)", s.Throttled)
	}
	if readable {
		command := plan.Command{Args: []string{"cyclestack", "report", "--by", "function", r.c.output}}
		next = "; next: " + command.String()
	}
	r.tell(fmt.Sprintf("%d samples, %s%s, %s in %s%s", s.Samples, lost, throttled, bytesText(s.Bytes), r.c.output, next))
}

// bytesText is a size for people.
func bytesText(n int64) string {
	if n < 1e6 {
		return fmt.Sprintf("%d kB", (n+999)/1000)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// pass passes signals on to the program, as forward does. The second that asks for
// an end, or the first if there is no program, ends the recording.
func (w *catcher) pass(rec *perfrecord.Recording, program bool, goesOn func()) {
	ended := func() bool { return !program || rec.Signal(probe) != nil }
	w.hand(func(s os.Signal) (over bool) {
		number, ok := s.(syscall.Signal)
		if program && (!typed(s) || !inForeground()) {
			_ = rec.Signal(s) // it may have ended meanwhile
		}
		switch {
		case !ok || !ends(number):
		case !program || w.wait != nil:
			rec.Stop()
			return true
		default:
			w.wait = time.AfterFunc(patience, func() {
				if !ended() {
					goesOn()
				}
			})
		}
		return ended()
	})
}

// A recordedFile is where a recording goes: a file next to the one that it replaces, or
// what is no regular file as it is.
type recordedFile struct {
	to    target
	out   io.Writer
	file  *os.File // nil for standard output
	name  string
	guard *guard // until signals are caught
	kept  atomic.Bool
}

// create makes the file.
func (r *recorder) create() (_ *recordedFile, err error) {
	name := r.c.output
	f := &recordedFile{out: r.out, name: "standard output", guard: newGuard()}
	if name == "-" {
		bearPipes()
		return f, nil
	}
	defer func() {
		if err != nil {
			f.guard.end()
		}
	}()
	if f.to, err = destination(name, nil); err != nil {
		return nil, err
	}
	f.name = name
	if f.to.direct {
		f.file, err = os.OpenFile(name, os.O_WRONLY, 0)
	} else {
		if old, err := os.Stat(f.old()); err == nil && old.IsDir() && f.to.mode != 0 {
			return nil, usageError("-o %s: what is there would be kept as %s, which is a directory: name another file", name, f.old())
		}
		f.file, err = f.guard.neighbour(f.to)
	}
	if err != nil {
		return nil, machineError(fmt.Errorf("cannot write %s: %w", name, reason(err)))
	}
	f.out = f.file
	return f, nil
}

// old is what was in the place of the file before.
func (f *recordedFile) old() string { return f.to.path + ".old" }

// Write writes what somebody may have to read first.
func (f *recordedFile) Write(b []byte) (int, error) { return patiently(f.out, b) }

// Seek is that of a file. Standard output is written like a pipe, even if it leads
// into a file: others may have written into that.
func (f *recordedFile) Seek(offset int64, whence int) (int64, error) {
	if f.file == nil {
		return 0, errors.ErrUnsupported
	}
	return f.file.Seek(offset, whence)
}

// keep puts the file into its place. What was there is kept next to it, as perf does.
func (f *recordedFile) keep() error {
	if f.file == nil {
		return nil
	}
	if f.to.direct {
		return f.unwritten(f.file.Close())
	}
	if err := finished(f.file, f.to); err != nil {
		return f.unwritten(err)
	}
	f.kept.Store(true)
	err := os.Rename(f.to.path, f.old())
	switch {
	case errors.Is(err, syscall.EBUSY): // something is mounted there
		err = copyFile(f.to.path, f.old())
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	}
	if err == nil {
		err = settle(f.file.Name(), f.to.path)
	}
	if err != nil {
		return machineError(fmt.Errorf("cannot write %s: %w: the recording is in %s", f.name, reason(err), f.file.Name()))
	}
	return nil
}

func (f *recordedFile) unwritten(err error) error {
	if err == nil {
		return nil
	}
	return machineError(fmt.Errorf("cannot write %s: %w", f.name, reason(err)))
}

// discard removes what was written, if it is not kept.
func (f *recordedFile) discard() {
	if f.file == nil || f.kept.Load() {
		return
	}
	f.file.Close()
	if !f.to.direct {
		os.Remove(f.file.Name())
	}
}
