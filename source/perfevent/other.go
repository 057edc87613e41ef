//go:build !linux

package perfevent

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/cyclestack/cyclestack/counts"
)

// errLinux is what counting fails with where there is no Linux kernel.
var errLinux = errors.New("counting needs Linux: report reads what was counted on one")

// A Run counts, on Linux.
type Run struct{}

// Start fails: it needs Linux.
func Start(context.Context, *System, Spec) (*Run, error) { return nil, errLinux }

// Next returns false.
func (r *Run) Next() bool { return false }

// Table returns nil.
func (r *Run) Table() *counts.Table { return nil }

// Err fails: it needs Linux.
func (r *Run) Err() error { return errLinux }

// Kind is "perf-event".
func (r *Run) Kind() string { return "perf-event" }

// Stop does nothing.
func (r *Run) Stop() {}

// Signal fails: it needs Linux.
func (r *Run) Signal(os.Signal) error { return errLinux }

// State returns nil.
func (r *Run) State() *os.ProcessState { return nil }

// Close does nothing.
func (r *Run) Close() error { return nil }

// Probe finds nothing that could be counted.
func (s *System) Probe(fs.FS) *Probe { return &Probe{} }

// Limits finds nothing.
func (s *System) Limits(fs.FS) *Probe { return &Probe{} }

// A Sampling takes samples, on Linux.
type Sampling struct{}

// Sample fails: it needs Linux.
func Sample(context.Context, *System, SampleSpec) (*Sampling, error) { return nil, errLinux }

// InheritedReads returns false.
func InheritedReads() bool { return false }

// Events returns nil.
func (s *Sampling) Events() []SampledEvent { return nil }

// Next returns false.
func (s *Sampling) Next() bool { return false }

// WriteTo fails: it needs Linux.
func (s *Sampling) WriteTo(io.Writer) (int64, error) { return 0, errLinux }

// Lost returns 0.
func (s *Sampling) Lost() uint64 { return 0 }

// PID returns 0.
func (s *Sampling) PID() int { return 0 }

// Maps returns nil.
func (s *Sampling) Maps() []byte { return nil }

// Notes returns nil.
func (s *Sampling) Notes() []counts.Note { return nil }

// Err fails: it needs Linux.
func (s *Sampling) Err() error { return errLinux }

// Stop does nothing.
func (s *Sampling) Stop() {}

// Signal fails: it needs Linux.
func (s *Sampling) Signal(os.Signal) error { return errLinux }

// State returns nil.
func (s *Sampling) State() *os.ProcessState { return nil }

// Close does nothing.
func (s *Sampling) Close() error { return nil }
