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
	own := map[symbolKey]*profile.Function{} // nil for a name of several
	inlined := false
	for i := range p.codes {
		f := p.codes[i].function
		if f == nil || f.Inlined {
			inlined = inlined || f != nil
			continue
		}
		key := symbolKey{f.File, f.Symbol}
		if other, ok := own[key]; ok && other != f {
			f = nil
		}
		own[key] = f
	}
	if !inlined {
		return
	}
	moved := make([]int32, len(p.codes))
	at := map[key]int32{}
	for i := range p.codes {
		if k := &p.codes[i]; k.function == nil || !k.function.Inlined {
			at[k.apart()] = int32(i)
		}
	}
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
		if k.line.function != nil {
			k.line.function = f
		}
		if to, ok := at[k.apart()]; ok {
			moved[i] = to
		} else {
			at[k.apart()] = int32(i)
		}
	}
	p.move(moved)
}

// apart is what tells keys apart.
func (k *key) apart() key { return key{function: k.function, line: k.line, others: k.others} }

// move puts codes together: moved has for each the one that it becomes a part of, or itself.
func (p *places) move(moved []int32) {
	number := make([]int32, len(moved))
	codes, sums := p.codes[:0:0], p.sums[:0:0]
	for i := range moved {
		if int(moved[i]) != i {
			continue
		}
		number[i] = int32(len(codes))
		codes = append(codes, p.codes[i])
		if p.recent == nil {
			sums = append(sums, p.sums[i*p.columns:(i+1)*p.columns]...)
		}
	}
	for i := range moved {
		if int(moved[i]) == i {
			continue
		}
		number[i] = number[moved[i]]
		for col := range p.columns {
			if p.recent == nil {
				sums[int(number[i])*p.columns+col].Merge(&p.sums[i*p.columns+col])
			}
		}
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
	p.codes, p.united = codes, number
	if p.recent == nil {
		p.sums = sums
	}
	clear(p.far)
}
