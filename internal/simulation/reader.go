package simulation

import (
	"io"
	"path/filepath"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/object"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/chains"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/valgrind"
)

// AnyCPU is the processor that tables of simulations name. It is none of the catalogue's.
const AnyCPU = valgrind.AnyCPU

// Detect reports whether a file that begins with head is of callgrind, cachegrind or another
// writer of their format.
func Detect(head []byte) bool { return valgrind.Detect(head) }

// ReaderOptions say what a [Reader] makes of a file.
type ReaderOptions struct {
	// By is the kind of places to split by: counts.Module, Function, Line or Instruction.
	// With counts.Run, its zero value, there is one scope.
	By counts.Kind
	// Within splits lines by function as well, with counts.Function. A line is in several
	// functions if one was inlined into others.
	Within counts.By
	// Only reports whether the costs of a place count; nil counts all.
	Only func(*counts.Code) bool
	// Chains looks into the program's files for loads whose address another load has
	// loaded: these wait for each other. The files are below Root.
	Chains bool
	Root   string

	// beyond is the share of the misses of the last simulated cache that a further cache
	// answers, and not memory. With 0 the file's own share holds.
	beyond float64
	rows   int         // the most places; 0 are all
	also   counts.Kind // of the places of a second table
	part   func(*counts.Table)
	// of is asked before Only, for a function. Sums are those of the run, if they are known.
	of   func(*counts.Code) bool
	sums []float64
}

// valgrind returns the options of the reader of valgrind's files, and what closes the
// program's files.
func (o *ReaderOptions) valgrind() (valgrind.Options, func() error) {
	opts := valgrind.Options{By: o.By, Within: o.Within, Beyond: o.beyond, Only: o.Only, Rows: o.rows, Also: o.also, Part: o.part, Function: o.of, Sums: o.sums}
	if !o.Chains {
		return opts, func() error { return nil }
	}
	finder := chains.NewFinder(object.Options{})
	opts.Chained = func(file string, addr uint64) bool {
		return finder.Chained(filepath.Join(o.Root, file), addr)
	}
	return opts, finder.Close
}

// A Reader yields one table of a file that callgrind or cachegrind wrote. The first scope
// is the whole run, and the others are its places.
type Reader struct {
	*valgrind.Reader
	close func() error
}

// NewReader returns a reader of the file that src holds. The name is for messages.
func NewReader(src io.Reader, name string, o ReaderOptions) *Reader {
	opts, closeFinder := o.valgrind()
	return &Reader{valgrind.NewReader(src, name, opts), closeFinder}
}

// Close closes the program's files, if the reader looked into them. It does not close src.
func (r *Reader) Close() error { return r.close() }
