// Package code finds the code that a perf.data file has samples of: the
// functions that its programs had mapped, their listings, and which of their
// branches were taken, from branch stacks.
//
// It is a companion of package samples, which counts: that one says that a
// function of a module has samples, this one what the function looks like.
//
//	r, err := code.New(file, nil, "perf.data", profile.Config{})
//	f, err := r.Function(scope.Code)
//	listing, err := r.List(f, disasm.ATT)
package code

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/object"
	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/source/samples"
	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// A Reader knows what a recording had mapped.
type Reader struct {
	src     io.ReadSeeker
	name    string
	parts   []perfdata.Part
	root    string
	spaces  *profile.Spaces // nil if branches are not asked for
	files   []*profile.File
	symbols *profile.Symbolizer
	events  []*perfdata.Event
	number  uint64 // of the record at hand
	untimed bool
}

// New reads what the processes of a recording had mapped. The recording is the file src,
// or a directory of perf record --threads with further parts. It is read again for
// [Reader.Branches]. The name is for messages. The reader must be closed, which leaves
// src open.
func New(src io.ReadSeeker, parts []perfdata.Part, name string, symbols profile.Config) (*Reader, error) {
	r := &Reader{src: src, name: name, parts: parts, root: symbols.Root, spaces: profile.NewSpaces(), symbols: profile.NewSymbolizer(symbols)}
	if err := r.maps(); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// Of is New for a recording without stacks of branches that was read for its samples.
// Nothing is read again.
func Of(in *samples.Reader, symbols profile.Config) *Reader {
	return &Reader{files: in.Files(), events: in.Events(), symbols: profile.NewSymbolizer(symbols)}
}

// OfPrograms is New for what a simulator says of programs, which are at these paths.
func OfPrograms(paths []string, symbols profile.Config) *Reader {
	spaces := profile.NewSpaces()
	for i, path := range paths {
		if strings.HasPrefix(path, "/") {
			spaces.Map(0, profile.Mapping{PID: 1, Start: uint64(i) << 32, Len: 1, File: path})
		}
	}
	spaces.Settle()
	return &Reader{files: spaces.Files(), symbols: profile.NewSymbolizer(symbols)}
}

// Close closes the files with symbols.
func (r *Reader) Close() error { return r.symbols.Close() }

// Events are the events that were sampled, with their attributes.
func (r *Reader) Events() []*perfdata.Event { return r.events }

// start begins to read the file.
func (r *Reader) start() (*perfdata.Reader, error) {
	list := []io.Seeker{r.src}
	for _, p := range r.parts {
		if f, ok := p.R.(io.Seeker); ok {
			list = append(list, f)
		}
	}
	for _, f := range list {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return nil, fmt.Errorf("%s: it has to be read several times: %w", r.name, err)
		}
	}
	r.number = 0
	return perfdata.NewReader(r.src, r.name, perfdata.Options{Parts: r.parts})
}

// ended says how reading ended. Damage is no error here: the reader of the counts has
// noted what it costs.
func (r *Reader) ended(in *perfdata.Reader) error {
	var bad *perfdata.Error
	if err := in.Err(); err != nil && !errors.As(err, &bad) {
		return err
	}
	return nil
}

// maps reads what was mapped when.
func (r *Reader) maps() error {
	in, err := r.start()
	if err != nil {
		return err
	}
	defer in.Close()
	for _, b := range in.Features().BuildIDs {
		r.spaces.BuildID(b.Filename, hex.EncodeToString(b.BuildID))
	}
	for in.Next() {
		if r.number++; r.number == 1 {
			r.events = in.Events()
			r.untimed = !timed(r.events)
		}
		r.event(in.Record())
	}
	r.events = in.Events()
	r.spaces.AddJitdumps(r.root)
	r.spaces.Settle()
	r.files = r.spaces.Files()
	return r.ended(in)
}

// timed says whether all records have times.
func timed(events []*perfdata.Event) bool {
	return !slices.ContainsFunc(events, func(e *perfdata.Event) bool {
		return e.SampleType&perffile.SampleTime == 0 || !e.Has(perffile.FlagSampleIDAll)
	})
}

// now is the time of a record, or its number where there are no times.
func (r *Reader) now(time uint64) uint64 {
	if r.untimed {
		return r.number
	}
	return time
}

// event takes what places depend on from a record.
func (r *Reader) event(rec perfdata.Record) {
	switch rec := rec.(type) {
	case *perfdata.Mmap:
		m := profile.Mapping{PID: rec.PID, Start: rec.Addr, Len: rec.Len, PgOff: rec.PgOff, File: string(rec.Filename),
			BuildID: hex.EncodeToString(rec.BuildID), Kernel: rec.Mode() == perfdata.ModeKernel, Data: rec.Misc&perffile.MiscMmapData != 0}
		r.spaces.Map(r.now(rec.Trailer().Time), m)
	case *perfdata.Comm:
		r.spaces.SetComm(r.now(rec.Trailer().Time), rec.PID, rec.TID, string(rec.Comm), rec.Misc&perffile.MiscCommExec != 0)
	case *perfdata.Task:
		switch {
		case rec.Type != perffile.RecordFork:
			r.spaces.Exit(r.now(rec.Trailer().Time), rec.PID, rec.TID)
		case rec.Misc&perffile.MiscForkExec == 0:
			r.spaces.Fork(r.now(rec.Trailer().Time), rec.PID, rec.TID, rec.PPID, rec.PTID)
		}
	case *perfdata.KSymbol:
		r.spaces.KernelSymbol(r.now(rec.Trailer().Time), rec.Addr, uint64(rec.Len), string(rec.Name), rec.Flags&perffile.KSymbolUnregister != 0)
	case *perfdata.BuildID:
		r.spaces.BuildID(string(rec.Filename), hex.EncodeToString(rec.BuildID))
	}
}

// Function returns the function that a place of package samples is in, by its
// module, build id, name and address.
func (r *Reader) Function(c *counts.Code) (*profile.Function, error) {
	var why error
	for _, f := range r.files {
		if f.Base() != c.Module || f.BuildID != c.BuildID {
			continue
		}
		list, err := r.symbols.Lookup(f, object.Named(c.Function))
		if err != nil {
			why = err
			continue
		}
		for _, fn := range list {
			if fn.Symbol != "" && c.Addr >= fn.Addr && c.Addr < fn.Addr+max(1, fn.Size) {
				return fn, nil
			}
		}
	}
	if why == nil {
		why = fmt.Errorf("no code is known for %s in %s", c.Function, c.Module)
	}
	return nil, why
}

// Status says where the code of a file is from.
func (r *Reader) Status(f *profile.File) profile.Status { return r.symbols.Status(f) }
