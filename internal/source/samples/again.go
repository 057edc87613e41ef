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
	r.opts.By, r.opts.Filter, r.keep, r.opts.NoInline, r.opts.Fold = counts.Instruction, f, newSelection(&f), false, 0
	r.opts.Pick = nil
	return r.resplit()
}

// Places returns the table of a reader with other options, as Instructions does. It is nil if
// the options differ in more than By, NoInline, Fold and Pick, or if samples are filtered.
func (r *Reader) Places(o Options) (*counts.Table, error) {
	derived := r.derive != nil && o.Derive != r.opts.Derive
	waits := r.waits != nil && !o.Waits
	if r.again.list.n == 0 || r.keep != nil || newSelection(&o.Filter) != nil || o.Within != 0 || derived || waits {
		return nil, nil
	}
	r.opts.By, r.opts.Within, r.opts.NoInline, r.opts.Fold, r.opts.Pick = o.By, 0, o.NoInline, o.Fold, o.Pick
	return r.resplit()
}

// resplit makes the table of the gathered places by the options.
func (r *Reader) resplit() (*counts.Table, error) {
	g := r.again
	p := newPlaces(r.opts.By, 0, r.keep, r.functions())
	p.files = r.places.files
	p.begin(r.places.columns)
	if p.gathered.list = g.list; r.opts.Fold > 0 && r.opts.By == counts.Instruction {
		r.fold(&p, &g)
	} else {
		p.lookUpCodes()
	}
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

// A foldable is a function whose places may become one.
type foldable struct {
	function *profile.Function // nil for code without a name
	sums     []perfdata.Sum    // by column
	places   int
	hottest  int32 // place
	most     int64 // samples there
	code     int32 // of all places, and 1; 0 for none yet
	stays    bool  // each place is one
}

// fold looks up the gathered places. Those of each function with less than Options.Fold of every column
// become one. Functions of a name in a module are one. So is code without a name, at its hottest place.
func (r *Reader) fold(p *places, g *gathered) {
	functions, of := map[counts.Code]*foldable{}, make([]*foldable, g.list.n)
	whole := make([]perfdata.Sum, p.columns)
	for _, is := range inOrder(&g.list, 0) {
		at, name := p.files.place(codePlace{is.offset, is.file}), counts.Code{}
		f := p.symbols.at(at)
		if f != nil {
			if name.Function = f.Name; f.Name == "" {
				f = nil
			}
		}
		if name.Module = at.File.Base(); at.File != nil {
			name.BuildID = at.File.BuildID
		}
		x := functions[name]
		if x == nil {
			x = &foldable{function: f, sums: make([]perfdata.Sum, p.columns)}
			functions[name] = x
		}
		of[is.number] = x
		x.places++
		samples := int64(0)
		for col := range p.columns {
			var sum perfdata.Sum
			g.addTo(&sum, int(is.number)*p.columns+col, col)
			x.sums[col].Merge(&sum)
			whole[col].Merge(&sum)
			samples += sum.Samples()
		}
		if samples > x.most || samples == x.most && is.number < x.hottest {
			x.hottest, x.most = is.number, samples
		}
	}
	n := 0
	for name, x := range functions {
		if x.stays = name.Module != "" && (x.function != nil || p.columns > 1) && r.hot(x.sums, whole); x.stays {
			n += x.places
		} else {
			n++
		}
	}
	p.codes, p.sums, p.gathered.codes = make([]key, 0, n), make([]perfdata.Sum, 0, n*p.columns), make([]int32, len(of))
	for n, x := range of {
		switch {
		case x.stays:
			x.code = p.addCode(key{place: p.files.place(*g.list.at(n))}) + 1
		case x.code == 0:
			x.code = p.addCode(key{place: p.files.place(*g.list.at(int(x.hottest))), function: x.function}) + 1
		}
		p.gathered.codes[n] = x.code - 1
	}
}

// hot reports whether a part has Options.Fold of the whole in any column.
func (r *Reader) hot(part, whole []perfdata.Sum) bool {
	for col, e := range r.columns {
		own, all := part[col].Cell(e), whole[col].Cell(e)
		if own.Samples > 0 && (own.Value >= r.opts.Fold*all.Value || float64(own.Samples) >= r.opts.Fold*float64(all.Samples)) {
			return true
		}
	}
	return false
}

// Files are the files that were mapped.
func (r *Reader) Files() []*profile.File { return r.order.spaces.Files() }

// Events are the events of the recording.
func (r *Reader) Events() []*perfdata.Event { return r.in.Events() }
