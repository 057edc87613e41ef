package perfrecord

import (
	"errors"
	"maps"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/cyclestack/cyclestack/internal/amount"
)

// A SwitchOutput says when a recording goes on in another file: after a signal, SIGUSR2, or
// else when the file has a size, or after a time.
type SwitchOutput struct {
	Signal bool
	Size   int64
	Every  time.Duration
}

// On reports whether a recording has several files.
func (s *SwitchOutput) On() bool { return *s != SwitchOutput{} }

// Set reads a SwitchOutput in perf's spelling: signal, a size such as 10M, a time such as 30s.
func (s *SwitchOutput) Set(text string) error {
	*s = SwitchOutput{}
	if text == "signal" {
		s.Signal = true
		return nil
	}
	if size, unit, err := amount.Size(text); err == nil && unit {
		s.Size = int64(size)
		return nil
	}
	const day = 24 * time.Hour
	units := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': day}
	if n := len(text); n > 1 {
		if count, _, err := amount.Size(text[:n-1]); err == nil && units[text[n-1]] > 0 && count <= 1<<20 {
			s.Every = time.Duration(count) * units[text[n-1]]
			return nil
		}
	}
	return errors.New("it is signal, a size with its unit such as 10M, or a time such as 30s, 5m, 1h")
}

// Signal passes a signal on to the command; see perfevent.Sampling. SIGUSR2 may end the
// present file instead.
func (r *Recording) Signal(s os.Signal) error {
	if r.opts.Switch.Signal && s == syscall.SIGUSR2 {
		go r.ask(func(func(bool) error) { r.switching = true })
		return nil
	}
	return r.sampling.Signal(s)
}

// clock has the file end after a time.
func (r *Recording) clock() {
	if every := r.opts.Switch.Every; every > 0 {
		r.timer = time.AfterFunc(every, func() { r.ask(func(func(bool) error) { r.switching = true }) })
	}
}

// due reports whether the recording is to go on in another file.
func (r *Recording) due() bool {
	size := r.opts.Switch.Size
	return r.opts.Next != nil && !r.full && (r.switching || size > 0 && r.out.Size() >= size)
}

// change completes the present file, and goes on in the next. What exists then precedes
// what comes: rings keep what the kernel writes meanwhile.
func (r *Recording) change() error {
	r.switching = false
	if err := r.complete(); err != nil {
		return err
	}
	r.before, r.files = r.before+r.out.Size(), r.files+1
	out, err := r.opts.Next()
	if err != nil {
		return err
	}
	r.tally.first, r.tally.last = 0, 0
	spec := r.spec
	spec.Target.PIDs = slices.Concat(spec.Target.PIDs, slices.Sorted(maps.Keys(r.tally.pids)))
	if pid := r.sampling.PID(); pid > 0 {
		spec.Target.PIDs = append(spec.Target.PIDs, pid)
	}
	slices.Sort(spec.Target.PIDs)
	spec.Target.PIDs = slices.Compact(spec.Target.PIDs)
	r.clock()
	return r.begin(out, &spec)
}

// complete writes the end of a file.
func (r *Recording) complete() error {
	f := r.opts.Kept.header(r.host, r.opts)
	f.SampleTime = [2]uint64{r.tally.first, r.tally.last}
	if !r.bare {
		f.BuildIDs = append(r.host.buildIDs(), r.tally.buildIDs(r.opts.Kept)...)
	}
	if err := r.out.Close(f); err != nil {
		return &WriteError{err}
	}
	return nil
}
