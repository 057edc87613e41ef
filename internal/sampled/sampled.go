// Package sampled makes accounts of what runs from samples, one window after another: of
// processes, threads, cgroups, modules, functions or lines. A window is recorded into a
// file without a name, and read as any recording.
//
//	s, err := sampled.New(sampled.Options{Kernel: measure.ThisKernel(), By: counts.Function})
//	defer s.Close()
//	err = s.Window(ctx, writer)
package sampled

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/internal/object"
	"github.com/cyclestack/cyclestack/internal/output"
	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/recorded"
	"github.com/cyclestack/cyclestack/internal/release"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/internal/source/perfrecord"
	"github.com/cyclestack/cyclestack/internal/source/samples"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/report"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// ErrLarge ends a recording that has more bytes than were allowed.
var ErrLarge = errors.New("the recording is too large")

// A Bound bounds a recording, and says who records.
type Bound struct {
	Bytes    int64
	Command  []string
	Version  string
	BusyOnly bool // no samples of the clock where a processor is idle
	// Kept is what recordings of this machine share; nil for nothing.
	Kept *perfrecord.Kept
}

// Record takes samples into a file, and returns their number. Where the kernel refuses the
// processor's counters, the clock takes the samples.
func Record(ctx context.Context, k measure.Kernel, o measure.SampleOptions, f *os.File, b Bound) (int64, error) {
	rec, err := measure.NewRecording(k, o)
	if err != nil {
		return 0, err
	}
	id, _ := model.HostID(k.Root)
	start := func() (*perfrecord.Recording, error) {
		spec := rec.Spec()
		for _, g := range spec.Groups {
			for i := range g {
				g[i].Attr.ExcludeIdle = g[i].Attr.ExcludeIdle || b.BusyOnly && g[i].Attr.Type == perffile.TypeSoftware
			}
		}
		return perfrecord.Start(ctx, rec.Machine().Sys, spec, &bounded{File: f, most: b.Bytes}, perfrecord.Options{Root: k.Root, Cmdline: b.Command, Version: "cyclestack " + b.Version, CPUID: id, Kept: b.Kept})
	}
	run, err := start()
	if err != nil && rec.Refused(err) {
		run, err = start()
	}
	if err != nil {
		return 0, measure.StartError(err)
	}
	err = errors.Join(run.Run(), run.Close())
	return run.Stats().Samples, err
}

// A bounded file takes no more than so many bytes.
type bounded struct {
	*os.File
	n, most int64
}

// Write implements [io.Writer].
func (b *bounded) Write(p []byte) (int, error) {
	if b.n += int64(len(p)); b.n > b.most {
		return 0, ErrLarge
	}
	return b.File.Write(p)
}

// Reader opens the recording in a file. The file stays the caller's.
func Reader(f *output.Scratch, choice resolve.Choice) (*recorded.Recordings, error) {
	r, err := resolve.New(choice)
	if err != nil {
		return nil, err
	}
	return recorded.New(r, f.Path), nil
}

// Options say what is sampled, and what it is divided by.
type Options struct {
	Kernel measure.Kernel
	// Sample has the target, and as the timeout of its period the length of a window.
	Sample measure.SampleOptions
	By     counts.Kind
	Only   samples.Filter // which samples count
	Most   int            // accounts of a window, besides that of the whole
	Label  string         // of what is sampled
}

// The usual rate of samples on each processor, and the bounds of a window. The rate is
// prime, so that it does not keep in step with a program.
const (
	usualRate  = 199
	bytesMost  = 32 << 20
	ringSize   = 128 << 10
	usualPlace = 100
	patience   = 2 // windows without symbols of a new program
)

// A Sampler makes the accounts of one window after another.
type Sampler struct {
	o      Options
	by     *resolve.Resolver
	file   *output.Scratch
	opened object.Opened
	kept   perfrecord.Kept
}

// New returns a sampler. It must be closed.
func New(o Options) (*Sampler, error) {
	by, err := resolve.New(o.Sample.Choice)
	if err != nil {
		return nil, err
	}
	f, err := output.NewScratch()
	if err != nil {
		return nil, err
	}
	if o.Sample.Rate == (measure.Rate{}) {
		o.Sample.Rate.PerSecond = usualRate
	}
	if o.Most == 0 {
		o.Most = usualPlace
	}
	o.Sample.RingSize, o.Sample.Cgroups = ringSize, o.By == counts.Cgroup
	return &Sampler{o: o, by: by, file: f, opened: object.Opened{Patience: patience}, kept: perfrecord.Kept{Brief: true}}, nil
}

// Retarget has further windows be of another target.
func (s *Sampler) Retarget(t perfevent.Target) { s.o.Sample.Target = t }

// Close removes the file.
func (s *Sampler) Close() error { return errors.Join(s.opened.Close(), s.file.Close()) }

// Window samples for one window, and writes the accounts of it. A window without samples
// has none. It returns the number of samples, also of those that do not count.
func (s *Sampler) Window(ctx context.Context, w report.Writer) (n int64, err error) {
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	if err := s.file.Truncate(0); err != nil {
		return 0, err
	}
	n, err = Record(ctx, s.o.Kernel, s.o.Sample, s.file.File, Bound{Bytes: bytesMost, Command: []string{s.o.Label}, Version: release.Version, BusyOnly: true, Kept: &s.kept})
	if err != nil || n == 0 {
		return n, err
	}
	recs := recorded.New(s.by, s.file.Path)
	defer recs.Close()
	places := &recorded.PlaceOptions{Split: recorded.SplitBy(s.o.By), Top: s.o.Most, NoInline: true, Symbols: profile.Config{Opened: &s.opened}, Filter: recorded.Filter{Filter: s.o.Only}}
	err = recs.Places(places, func(bool) (report.Writer, error) { return w, nil })
	if none := (*samples.NoMatchError)(nil); errors.As(err, &none) {
		return n, nil
	}
	return n, err
}
