// Package clocked serves measurements whose cycles cannot be counted: it samples the program by
// the clock while the operating system counts it, and finds the time's code.
package clocked

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/hotspots"
	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/internal/source/perfrecord"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/source"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// rate is how many samples are taken in a second on each processor. It is half of perf
// record's, as stat is to disturb less, and fits no regular period of programs.
const rate = 1999

// bytesMost bounds the recording: it ends when it is so large.
const bytesMost = 64 << 20

// clockEvent takes the samples.
const clockEvent = "cpu-clock"

// A Sampler is a measure.Sampler.
type Sampler struct {
	o       Options
	file    *os.File // nil before Begin, and if nothing is sampled
	rec     *perfrecord.Recording
	ran     sync.WaitGroup
	failed  error // the sampling
	full    bool
	samples *hotspots.Samples
}

// Options are those of a Sampler.
type Options struct {
	hotspots.Options
	// Create makes the file for the samples, which is read again.
	Create  func() (*os.File, error)
	Version string // of the program that records
}

// New returns a sampler for one run. It must be closed.
func New(o Options) *Sampler { return &Sampler{o: o} }

// Begin begins to sample a target. A measurement that is started again begins again.
func (s *Sampler) Begin(m *measure.Machine, t perfevent.Target) {
	s.failed = s.begin(m, t)
}

func (s *Sampler) begin(m *measure.Machine, t perfevent.Target) error {
	hz := uint64(rate)
	if most := m.Sys.MaxSampleRate(); most > 0 {
		hz = min(hz, most)
	}
	groups, err := m.Sys.ResolveSampled(clockEvent, hz, true)
	if err != nil {
		return err
	}
	for i := range groups[0] {
		groups[0][i].Attr.ExcludeIdle = true
	}
	if s.file == nil {
		s.file, err = s.o.Create()
	} else {
		err = s.file.Truncate(0)
	}
	if err != nil {
		return err
	}
	id, _ := model.HostID(m.Root)
	spec := perfevent.SampleSpec{Groups: groups, Target: t}
	out := &bounded{WriteSeeker: s.file, full: func() { s.full = true; s.rec.Stop() }}
	s.rec, err = perfrecord.Start(context.Background(), m.Sys, spec, out,
		perfrecord.Options{Root: m.Root, Cmdline: os.Args, Version: "cyclestack " + s.o.Version, CPUID: id})
	if err != nil {
		s.rec = nil
		return err
	}
	s.ran.Go(func() { s.failed = s.rec.Run() })
	return nil
}

// bounded calls full once when it is.
type bounded struct {
	io.WriteSeeker
	n    int64
	full func()
}

func (b *bounded) Write(p []byte) (int, error) {
	n, err := b.WriteSeeker.Write(p)
	if before := b.n; before < bytesMost && before+int64(n) >= bytesMost {
		b.full()
	}
	b.n += int64(n)
	return n, err
}

// End ends the sampling.
func (s *Sampler) End() {
	if s.rec == nil {
		return
	}
	s.rec.Stop()
	s.ran.Wait()
	s.failed = errors.Join(s.failed, s.rec.Close())
	s.rec = nil
	if s.failed == nil {
		s.failed = s.read()
	}
}

// read reads what was sampled.
func (s *Sampler) read() error {
	rec, err := source.New(s.file, s.file.Name())
	if err != nil {
		return err
	}
	s.samples, err = hotspots.Read(rec, s.o.Options)
	return err
}

// Hotspots returns where the time of an account went.
func (s *Sampler) Hotspots(a *account.Account) *account.Hotspots {
	h := hotspots.Of(a, s.samples)
	if h != nil && s.samples != nil {
		s.samples.Locate(h)
	}
	return h
}

// Places returns the code that the processor time went into; nil if nothing was sampled.
func (s *Sampler) Places() *account.Hotspots {
	if s.samples == nil || s.samples.Total == 0 {
		return nil
	}
	h := hotspots.OfSamples(s.samples)
	h.States = nil // they stand elsewhere
	s.samples.Locate(h)
	return h
}

// Notes are remarks on what was sampled.
func (s *Sampler) Notes() []counts.Note {
	var list []counts.Note
	if s.failed != nil {
		list = append(list, counts.Notef("no samples of the code: %v", s.failed))
	}
	if s.full {
		list = append(list, counts.Notef("only the beginning was sampled, until there were %d MB of samples", bytesMost>>20))
	}
	return list
}

// File returns the file with the samples; nil if there are none.
func (s *Sampler) File() *os.File {
	if s.samples == nil {
		return nil
	}
	return s.file
}
