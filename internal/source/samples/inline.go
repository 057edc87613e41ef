package samples

import (
	"github.com/cyclestack/cyclestack/profile"
)

// functionsOf finds functions as they were asked for: with inlined calls as functions, or as
// parts of the functions around them.
type functionsOf struct {
	*profile.Symbolizer
	noInline bool
}

func (r *Reader) functions() functionsOf { return functionsOf{r.symbols, r.opts.NoInline} }

// at returns the function at a place.
func (s functionsOf) at(p profile.Place) *profile.Function {
	if s.noInline {
		return s.Function(p)
	}
	return s.Innermost(p)
}

// A symbolKey is the name of a function in a file.
type symbolKey struct {
	file   *profile.File
	symbol string
}

// unite puts the inlined calls of a function together with its own code, if samples are in
// both. A name that several functions of a file have stays apart.
func (p *places) unite() {
	own := map[symbolKey]*profile.Function{} // nil for a name of several, or of none
	for i := range p.codes {
		if f := p.codes[i].function; f != nil && f.Inlined {
			own[symbolKey{f.File, f.Symbol}] = nil
		}
	}
	if len(own) == 0 {
		return
	}
	several := map[symbolKey]bool{}
	for i := range p.codes {
		f := p.codes[i].function
		if f == nil || f.Inlined {
			continue
		}
		key := symbolKey{f.File, f.Symbol}
		other, ok := own[key]
		switch {
		case !ok || other == f || several[key]:
		case other == nil:
			own[key] = f
		default:
			own[key], several[key] = nil, true
		}
	}
	moved := make([]int32, len(p.codes))
	for i := range p.codes {
		moved[i] = int32(i)
		k := &p.codes[i]
		if k.function == nil || !k.function.Inlined {
			continue
		}
		f := own[symbolKey{k.function.File, k.function.Symbol}]
		if f == nil {
			continue
		}
		k.function = f
		if k.line.function == nil {
			moved[i] = united(p.functions, f, int32(i))
			continue
		}
		k.line.function = f
		moved[i] = united(p.lines, k.line, int32(i))
	}
	p.move(moved)
}

// united returns the number of a place by an index; that is the given one if it is not there yet.
func united[K comparable](index map[K]int32, of K, n int32) int32 {
	if other, ok := index[of]; ok {
		return other
	}
	index[of] = n
	return n
}

// move puts codes together: moved has for each the one that it becomes a part of, or itself.
func (p *places) move(moved []int32) {
	number, kept := make([]int32, len(moved)), 0
	for i := range moved {
		for col := range p.columns {
			if int(moved[i]) != i && p.recent == nil {
				p.sums[int(moved[i])*p.columns+col].Merge(&p.sums[i*p.columns+col])
			}
		}
	}
	for i := range moved {
		if int(moved[i]) != i {
			continue
		}
		number[i], p.codes[kept] = int32(kept), p.codes[i]
		if p.recent == nil {
			copy(p.sums[kept*p.columns:(kept+1)*p.columns], p.sums[i*p.columns:])
		}
		kept++
	}
	for i := range moved {
		number[i] = number[moved[i]]
	}
	clear(p.codes[kept:])
	p.codes, p.united = p.codes[:kept], number
	if p.recent == nil {
		p.sums = p.sums[:kept*p.columns]
	}
	for f, i := range p.functions {
		p.functions[f] = number[i]
	}
	for l, i := range p.lines {
		p.lines[l] = number[i]
	}
	if p.others >= 0 {
		p.others = number[p.others]
	}
	for i := range p.rows {
		if p.rows[i].code >= 0 {
			p.rows[i].code = number[p.rows[i].code]
		}
	}
	clear(p.recalled)
}
