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

// ErrLinux is returned by Start where there is no Linux kernel to count.
var ErrLinux = errors.New("counting needs Linux: report reads what was counted on one")

// A Run counts, on Linux.
type Run struct{}

// Start returns ErrLinux.
func Start(context.Context, *System, Spec) (*Run, error) { return nil, ErrLinux }

// Next returns false.
func (r *Run) Next() bool { return false }

// Table returns nil.
func (r *Run) Table() *counts.Table { return nil }

// Err returns ErrLinux.
func (r *Run) Err() error { return ErrLinux }

// Kind is "perf-event".
func (r *Run) Kind() string { return "perf-event" }

// Stop does nothing.
func (r *Run) Stop() {}

// Signal returns ErrLinux.
func (r *Run) Signal(os.Signal) error { return ErrLinux }

// State returns nil.
func (r *Run) State() *os.ProcessState { return nil }

// Close does nothing.
func (r *Run) Close() error { return nil }

// Probe finds nothing that could be counted.
func (s *System) Probe(fs.FS) *Probe { return &Probe{} }

// Limits finds nothing.
func (s *System) Limits(fs.FS) *Probe { return &Probe{} }

// Hypervisor names none.
func Hypervisor(fs.FS) string { return "" }

// Holders finds nothing.
func (s *System) Holders(fs.FS) []string { return nil }

// Counters count, on Linux.
type Counters struct{}

// Open returns ErrLinux.
func Open(*System, Spec) (*Counters, error) { return nil, ErrLinux }

// Enable returns ErrLinux.
func (c *Counters) Enable() error { return ErrLinux }

// Disable returns ErrLinux.
func (c *Counters) Disable() error { return ErrLinux }

// Table returns ErrLinux.
func (c *Counters) Table() (*counts.Table, error) { return nil, ErrLinux }

// Reset does nothing.
func (c *Counters) Reset() {}

// Close does nothing.
func (c *Counters) Close() error { return nil }

// CgroupRoot returns ErrLinux.
func CgroupRoot() (string, error) { return "", ErrLinux }

// A Sampling takes samples, on Linux.
type Sampling struct{}

// Sample returns ErrLinux.
func Sample(context.Context, *System, SampleSpec) (*Sampling, error) { return nil, ErrLinux }

// InheritedReads returns false.
func InheritedReads() bool { return false }

// Events returns nil.
func (s *Sampling) Events() []SampledEvent { return nil }

// Next returns false.
func (s *Sampling) Next() bool { return false }

// WriteTo returns ErrLinux.
func (s *Sampling) WriteTo(io.Writer) (int64, error) { return 0, ErrLinux }

// Lost returns 0.
func (s *Sampling) Lost() uint64 { return 0 }

// PID returns 0.
func (s *Sampling) PID() int { return 0 }

// Maps returns nil.
func (s *Sampling) Maps() []byte { return nil }

// Notes returns nil.
func (s *Sampling) Notes() []counts.Note { return nil }

// Err returns ErrLinux.
func (s *Sampling) Err() error { return ErrLinux }

// Stop does nothing.
func (s *Sampling) Stop() {}

// Signal returns ErrLinux.
func (s *Sampling) Signal(os.Signal) error { return ErrLinux }

// State returns nil.
func (s *Sampling) State() *os.ProcessState { return nil }

// Close does nothing.
func (s *Sampling) Close() error { return nil }
