package perfevent

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/cyclestack/cyclestack/counts"
)

// Counters are counters that the caller lets count and stops, as often as it
// likes: those of a region of a program, in the program itself. They are not
// for several goroutines at once.
//
//	c, err := perfevent.Open(sys, perfevent.Spec{Groups: groups, Target: perfevent.Target{PIDs: []int{os.Getpid()}}})
//	defer c.Close()
//	c.Enable()
//	work()
//	c.Disable()
//	table, err := c.Table()
//
// With the own process as its target all threads are counted, also those that the Go
// runtime starts later. Counts split by thread ([counts.Thread]) are of the threads that
// exist at Open.
type Counters struct {
	session *session
	notes   notes
	step    *counts.Table // what was counted since the last reading
	sum     *counts.Table // since Open or Reset
	since   time.Time     // when counting was enabled
	active  time.Duration // enabled since the last reading
	on      bool
}

// Open opens the counters of processes, threads, cgroups or processors,
// disabled. A Spec for it has no command, and nothing about time or runs. The
// errors are those of [Start].
func Open(sys *System, spec Spec) (*Counters, error) {
	if len(spec.Target.Command) > 0 || spec.Interval > 0 || spec.Timeout > 0 || spec.Delay > 0 || spec.Repeat > 1 || spec.Separate {
		return nil, &TargetError{Msg: "counters that are enabled by hand have no command, interval, timeout, delay or repeats"}
	}
	if err := spec.check(sys); err != nil {
		return nil, err
	}
	c := &Counters{}
	c.session = prepare(sys, &spec, newScheme(&spec), -1, &c.notes)
	c.session.mode.held = true
	if err := c.session.begin(); err != nil {
		c.session.close()
		return nil, err
	}
	c.session.stopWatching()
	c.step, c.sum = counts.NewTable(c.session.layout), counts.NewTable(c.session.layout)
	return c, nil
}

// Enable lets the counters count.
func (c *Counters) Enable() error {
	if c.on {
		return nil
	}
	c.session.enabled, c.on, c.since = true, true, time.Now()
	return controlAll(c.session.opener.sets, unix.PERF_EVENT_IOC_ENABLE)
}

// Disable stops the counters.
func (c *Counters) Disable() error {
	err := controlAll(c.session.opener.sets, unix.PERF_EVENT_IOC_DISABLE)
	c.pass()
	c.on = false
	return err
}

// pass notes the time that has passed while counting was enabled.
func (c *Counters) pass() {
	if now := time.Now(); c.on {
		c.active += now.Sub(c.since)
		c.since = now
	}
}

// Table returns what was counted since Open or Reset. It is valid until the
// next call. Its duration is the time that counting was enabled.
func (c *Counters) Table() (*counts.Table, error) {
	c.read()
	c.sum.Label, c.sum.Start = c.step.Label, 0
	if err := c.sum.Add(c.step); err != nil {
		return nil, err
	}
	c.sum.Notes = c.notes.list
	return c.sum, nil
}

// read reads what was counted since it was last read.
func (c *Counters) read() {
	c.pass()
	c.session.fill(c.step, time.Now(), c.active)
	c.active = 0
}

// Reset sets the counts to zero.
func (c *Counters) Reset() {
	c.read()
	c.sum.Reset(c.session.layout)
	c.sum.Duration = 0
}

// Close closes the counters.
func (c *Counters) Close() error {
	c.session.close()
	return nil
}
