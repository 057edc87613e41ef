package measure

import (
	"context"
	"io/fs"
	"os"
	"time"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/report"
)

// A Simulator runs a program again where its cycles cannot be counted. It is a part of its
// own, so that programs which only count need not have it: see package simulated.
type Simulator interface {
	// Prepare looks at what is to be measured. An error says why that cannot be simulated.
	Prepare(*Measurement) error
	// Resolve finds the method of the simulation.
	Resolve() error
	// Simulate runs the program that has ended once more, and writes the documents of
	// the simulation. Ran is the operating system's account of the first run. The
	// reason says why there is no simulation.
	Simulate(ctx context.Context, state *os.ProcessState, ran *account.Account) (Reason, error)
	// Takes predicts how long it takes to simulate a program that has ended; 0 if it
	// cannot be simulated.
	Takes(*Measurement, *os.ProcessState) time.Duration
}

// The following methods are for simulators.

// Options returns the options of the measurement.
func (m *Measurement) Options() *Options { return &m.options }

// Resolver returns the resolver of the user's choice. It loads the catalogue.
func (m *Measurement) Resolver() (*resolve.Resolver, error) { return m.resolver() }

// Root returns the machine's file system.
func (m *Measurement) Root() fs.FS { return m.machine.Root }

// ID returns the processor's identification, as the user or the machine gives it; "" if
// neither does.
func (m *Measurement) ID() string { return m.id() }

// OwnProgram reports whether only a program is counted that the measurement starts.
func (m *Measurement) OwnProgram() bool { return m.program() && len(m.options.Target.Command) > 0 }

// Rows reports whether there is an account for each of several scopes.
func (m *Measurement) Rows() bool { return m.rows() }

// Why says why no better source was used; "" if there is none.
func (m *Measurement) Why() string { return m.why() }

// ReadInput has the program read another file as its standard input.
func (m *Measurement) ReadInput(f *os.File) { m.stdin = f }

// Writer returns a writer of a document.
func (m *Measurement) Writer(o report.Options) (report.Writer, error) {
	return m.options.Client.Writer(o)
}
