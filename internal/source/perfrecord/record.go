package perfrecord

import (
	"context"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/amount"
	"github.com/cyclestack/cyclestack/internal/cgroups"
	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/perfwrite"
	"github.com/cyclestack/cyclestack/source/perfdata"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// Options are what a recording says of itself, and where it looks.
type Options struct {
	// Root is the file system of the machine; nil is its own.
	Root fs.FS
	// Cmdline is the command that records, Version that of the program.
	Cmdline []string
	Version string
	// CPUID identifies the processor as perf's tables of processors do
	// ("GenuineIntel-6-55-4"); "" is left out.
	CPUID string
	// Next completes the present file, and returns the next one to write to; nil if there is
	// only one. See Limits.Switch.
	Next func() (io.Writer, error)
	// Kept is what recordings share; nil for nothing.
	Kept *Kept
	// Limits bound the recording.
	Limits
}

// Limits bound a recording. The zero Limits are none.
type Limits struct {
	MaxSize  Size // of the records; the recording ends when it is reached
	Realtime int  // SCHED_FIFO priority of the thread that writes; 0 for none
	Level    int  // of compression, 1 to 22; 0 for none
	Switch   SwitchOutput
	Control  Control
}

// A Size is a number of bytes.
type Size int64

// Set reads a size such as 10M.
func (s *Size) Set(text string) error {
	n, _, err := amount.Size(text)
	*s = Size(n)
	return err
}

// Stats are what a recording has.
type Stats struct {
	Samples   int64
	Lost      int64 // records that found no room in a ring, most of them samples
	Throttled int64 // times that the kernel stopped an event which came too often
	Bytes     int64 // of records
	Full      bool  // the recording ended as it reached MaxSize
	Files     int   // that the recording is in
}

// A Recording is samples that are taken and written.
type Recording struct {
	sampling *perfevent.Sampling
	out      sink
	tally    tally
	host     *host
	opts     Options
	failed   error
	full     bool // MaxSize is reached
	bare     bool // without build ids

	spec      perfevent.SampleSpec
	requests  chan request
	over      chan struct{}
	switching bool  // the recording is to go on in another file
	before    int64 // bytes of the files before
	files     int   // before this one
	timer     *time.Timer
	in, ack   *os.File // of Control; nil for none
}

// A sink is a file that is written: see perfdata.Writer.
type sink interface {
	io.Writer
	WriteRecord(perfdata.Record, perfdata.Trailer) error
	Flush() error
	Size() int64
	Close(*perfdata.Features) error
}

// Start opens the counters, starts the command, and writes the beginning of the
// recording to out. If out can seek, it gets what perf record writes into a file, else
// what it writes into a pipe. Errors are those of perfevent.Sample and of writing.
// After an error nothing is left but what was written.
func Start(ctx context.Context, sys *perfevent.System, spec perfevent.SampleSpec, out io.Writer, opts Options) (*Recording, error) {
	if opts.Root == nil {
		opts.Root = os.DirFS("/")
	}
	if opts.Kept == nil {
		opts.Kept = &Kept{}
	}
	if err := tryRealtime(opts.Realtime); err != nil {
		return nil, err
	}
	r := &Recording{opts: opts, host: &host{root: opts.Root}, bare: spec.NoBuildIDs, spec: spec, requests: make(chan request), over: make(chan struct{})}
	if err := r.listen(); err != nil {
		return nil, err
	}
	spec.Requests = r.requests
	r.opts.Kept.readKernel(r.host) // before the program runs, so as not to disturb it
	spec.Begin = func(s *perfevent.Sampling) error {
		r.sampling = s
		return r.begin(out, &spec)
	}
	s, err := perfevent.Sample(ctx, sys, spec)
	if err != nil {
		r.unlisten()
		return nil, err
	}
	r.sampling = s
	if r.in != nil {
		go r.obey(r.in, r.ack)
	}
	r.clock()
	if pid := s.PID(); pid > 0 {
		r.synthesis(&spec).command(pid, spec.Target.Command[0], s.Maps())
	}
	if r.failed != nil {
		r.Close()
		return nil, r.failed
	}
	return r, nil
}

// begin writes what precedes the samples, before the first is taken.
func (r *Recording) begin(out io.Writer, spec *perfevent.SampleSpec) (err error) {
	events := fileEvents(r.sampling.Events())
	o := perfwrite.WriterOptions{Events: events, Tracing: r.host.tracing(events), Level: r.opts.Level}
	if r.out, err = newSink(out, o, func() *perfdata.Features { return r.opts.Kept.header(r.host, r.opts) }); err != nil {
		return &WriteError{err}
	}
	r.tally.to = r.out
	s := r.synthesis(spec)
	s.kernel(r.host)
	if spec.Cgroups {
		if dir, err := cgroups.Mount(); err == nil {
			s.cgroups(strings.TrimPrefix(dir, "/"))
		}
	}
	switch t := &spec.Target; {
	case (t.All || len(t.CPUs) > 0) && r.opts.Kept.Brief:
		r.opts.Kept.begin(s)
	case t.All || len(t.CPUs) > 0:
		s.everything()
	default:
		s.processes(t.PIDs, t.TIDs)
	}
	return r.failed
}

// synthesis tells what runs and is mapped already. With copies of stacks that is data too: perf looks for
// .eh_frame_hdr there.
func (r *Recording) synthesis(spec *perfevent.SampleSpec) *synthesis {
	return &synthesis{root: r.opts.Root, write: r.write, tally: &r.tally, data: spec.StackUser > 0 || readsMemory(spec), pause: r.drain}
}

// readsMemory reports whether samples have addresses of data. Then mappings of data
// are recorded too, not only code.
func readsMemory(spec *perfevent.SampleSpec) bool {
	return slices.ContainsFunc(spec.Groups, func(g []perfevent.Event) bool {
		return slices.ContainsFunc(g, func(e perfevent.Event) bool { return e.Attr.SampleType&perffile.SampleAddr != 0 })
	})
}

// drain writes what is in the rings ahead of the first round: what changes while it
// is told what there is. The latter precedes it all the same: it has the time 0,
// and nothing is taken for complete before a round ends.
func (r *Recording) drain() {
	if r.failed != nil {
		return
	}
	if _, err := r.sampling.WriteTo(&r.tally); err != nil {
		r.failed = &WriteError{err}
	}
}

// write writes a record that is made here.
func (r *Recording) write(rec perfdata.Record) {
	if r.failed != nil {
		return
	}
	if err := r.out.WriteRecord(rec, perfdata.Trailer{}); err != nil {
		r.failed = &WriteError{err}
	}
}

// newSink returns the writer for where the recording goes.
func newSink(out io.Writer, o perfwrite.WriterOptions, features func() *perfdata.Features) (sink, error) {
	f, ok := out.(io.WriteSeeker)
	if ok {
		_, err := f.Seek(0, io.SeekCurrent)
		ok = err == nil
	}
	if !ok {
		return perfwrite.NewPipeWriter(out, o, features())
	}
	return perfwrite.NewWriter(f, o)
}

// A WriteError says that the recording could not be written.
type WriteError struct{ Err error }

func (e *WriteError) Error() string { return e.Err.Error() }
func (e *WriteError) Unwrap() error { return e.Err }

// Run records until all has ended, and completes the file. The error is a
// *[WriteError], or the cause of the context's end; with the latter the file is
// complete.
func (r *Recording) Run() error {
	if r.opts.Realtime > 0 {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := setRealtime(r.opts.Realtime); err != nil {
			return err
		}
		defer func() { _ = setRealtime(0) }()
	}
	for r.sampling.Next() {
		n, err := r.sampling.WriteTo(&r.tally)
		if err != nil {
			return &WriteError{err}
		}
		if n == 0 && !r.switching {
			continue
		}
		r.describe()
		r.write(&perfdata.FinishedRound{})
		if err := r.out.Flush(); err != nil {
			return &WriteError{err}
		}
		if most := int64(r.opts.MaxSize); most > 0 && r.tally.bytes >= most && !r.full {
			r.full = true
			r.sampling.Stop()
		}
		if r.due() {
			if err := r.change(); err != nil {
				return err
			}
		}
	}
	if unseen := int64(r.sampling.Lost()) - r.tally.lost; unseen > 0 {
		// The kernel reports lost records when it writes the next one. The last ones
		// are missing.
		r.write(&perfdata.Lost{Lost: uint64(unseen)})
		r.tally.lost += unseen
	}
	if r.failed != nil {
		return r.failed
	}
	if r.tally.seen != nil {
		r.opts.Kept.end(r.tally.seen, r.tally.lost > 0)
	}
	if err := r.complete(); err != nil {
		return err
	}
	return r.sampling.Err()
}

// Stats returns what was recorded so far.
func (r *Recording) Stats() Stats {
	t := &r.tally
	return Stats{Samples: t.samples, Lost: t.lost, Throttled: t.throttled, Bytes: r.before + r.out.Size(), Full: r.full, Files: r.files + 1}
}

// Notes returns what was refused or lowered, one line each.
func (r *Recording) Notes() []counts.Note { return r.sampling.Notes() }

// Stop ends the recording: Run completes the file and returns. It may be called
// from any goroutine. A command runs on until Close.
func (r *Recording) Stop() { r.sampling.Stop() }

// State is how the command ended; nil if there was none or it runs still. Valid
// after Run and after Close.
func (r *Recording) State() *os.ProcessState { return r.sampling.State() }

// Close frees everything; a command still running is ended. It does not close
// the file.
func (r *Recording) Close() error {
	r.unlisten()
	return r.sampling.Close()
}

// listen opens the files of commands.
func (r *Recording) listen() (err error) {
	if r.opts.Control != (Control{}) {
		r.in, r.ack, err = r.opts.Control.open()
	}
	return err
}

// unlisten ends all that asks for something. It may be called twice.
func (r *Recording) unlisten() {
	select {
	case <-r.over:
		return
	default:
		close(r.over)
	}
	for _, f := range []*os.File{r.in, r.ack} {
		if f != nil && r.opts.Control.kind == "fifo" {
			f.Close()
		}
	}
	if r.timer != nil {
		r.timer.Stop()
	}
}
