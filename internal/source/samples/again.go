package samples

import (
	"errors"
	"sync/atomic"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// ErrEnough is the error of a reader that Options.Enough has stopped.
var ErrEnough = errors.New("the rest of the recording is not needed")

// A watch asks Options.Enough about the functions of the samples so far, from time to time.
// It is nil if nothing is to be asked.
type watch struct {
	enough  func(f *profile.Function, y *profile.Symbolizer) bool
	symbols functionsOf
	batches int // that were taken
	next    int // how many these are when it asks
	seen    int // of the places that were gathered
	ended   atomic.Bool
}

// firstWatch is how many batches come before the first question; the next one is after twice
// as many.
const firstWatch = 16

func (r *Reader) newWatch() *watch {
	if r.opts.Enough == nil || !r.places.gather {
		return nil
	}
	return &watch{enough: r.opts.Enough, symbols: r.functions(), next: firstWatch}
}

// took notes that a batch was taken. All questions of one time are asked, and the last answer counts.
func (w *watch) took(p *places) {
	if w == nil {
		return
	}
	if w.batches++; w.batches < w.next || w.ended.Load() {
		return
	}
	w.next *= 2
	g := &p.gathered
	if w.seen > g.list.n {
		w.seen = 0 // they were looked up, and are gathered anew
	}
	for ; w.seen < g.list.n; w.seen++ {
		w.ended.Store(w.enough(w.symbols.at(p.files.place(*g.list.at(w.seen))), w.symbols.Symbolizer))
	}
}

// done reports whether the rest is not needed.
func (w *watch) done() bool { return w != nil && w.ended.Load() }

// keepGathered keeps the places for another table, if all of them are gathered still.
func (r *Reader) keepGathered() {
	if r.opts.Again && r.places.gather && r.places.recent == nil && len(r.places.codes) == 0 {
		r.again = r.places.gathered
	}
}

// Instructions returns the table of a reader by instruction with a filter of places in the
// code. The filter's functions may be inlined ones. It does not read the recording again, and is
// nil if that would be needed. The reader has Options.Again, and this table from now on.
func (r *Reader) Instructions(f Filter) (*counts.Table, error) {
	if r.again.list.n == 0 {
		return nil, nil
	}
	r.opts.By, r.opts.Filter, r.keep, r.opts.NoInline = counts.Instruction, f, newSelection(&f), false
	return r.resplit()
}

// Places returns the table of a reader with other options, as Instructions does. It is nil if
// the options differ in more than By and NoInline, or if samples are filtered.
func (r *Reader) Places(o Options) (*counts.Table, error) {
	derived := r.derive != nil && o.Derive != r.opts.Derive
	waits := r.waits != nil && !o.Waits
	if r.again.list.n == 0 || r.keep != nil || newSelection(&o.Filter) != nil || o.Within != 0 || derived || waits {
		return nil, nil
	}
	r.opts.By, r.opts.Within, r.opts.NoInline = o.By, 0, o.NoInline
	return r.resplit()
}

// resplit makes the table of the gathered places by the options.
func (r *Reader) resplit() (*counts.Table, error) {
	g := r.again
	p := newPlaces(r.opts.By, 0, r.keep, r.functions())
	p.files = r.places.files
	p.begin(r.places.columns)
	p.gathered.list = g.list
	p.lookUpCodes()
	codes := p.gathered.codes
	p.gathered = gathered{}
	for n, code := range codes {
		for col := range p.columns {
			g.addTo(p.codeSum(code, col), n*p.columns+col, col)
		}
	}
	r.places, r.passed = p, make([]perfdata.Sum, p.columns)
	if err := r.found(); err != nil {
		return nil, err
	}
	r.table = counts.Table{}
	r.fill()
	t := r.table
	return &t, nil
}

// Files are the files that were mapped.
func (r *Reader) Files() []*profile.File { return r.order.spaces.Files() }

// Events are the events of the recording.
func (r *Reader) Events() []*perfdata.Event { return r.in.Events() }
