package cli

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/object"
)

// functionName is a function and its module.
func functionName(c *counts.Code) string {
	name := c.Function
	if name == "" {
		name = "[unknown]"
	}
	return name + " (" + c.Module + ")"
}

// A wanted is what a SYMBOL asks for.
type wanted struct {
	text     string
	module   string
	name     string
	from, to uint64 // addresses; to is 0 without a range
	address  bool
	file     string
	line     int
}

// parseSymbol reads a SYMBOL.
func parseSymbol(text string) (*wanted, error) {
	w := &wanted{text: text, name: text}
	if text == "" {
		return w, nil
	}
	if i := strings.LastIndex(text, ":"); i > 0 && i < len(text)-1 && text[i-1] != ':' && !strings.HasSuffix(text, ")") {
		head, tail := text[:i], text[i+1:]
		if n, err := strconv.Atoi(tail); err == nil && n > 0 {
			w.file, w.line = head, n
			return w, nil
		}
	}
	// The colon behind a module; those of C++ come in twos.
	if head, tail, ok := strings.Cut(text, ":"); ok && head != "" && tail != "" && !strings.HasPrefix(tail, ":") {
		w.module, w.name = head, tail
	}
	if !strings.HasPrefix(w.name, "0x") {
		return w, nil
	}
	w.address = true
	from, to, isRange := strings.Cut(w.name, "-")
	var err error
	if w.from, err = strconv.ParseUint(from, 0, 64); err != nil {
		return nil, usageError("%s: not an address", text)
	}
	if isRange {
		if w.to, err = strconv.ParseUint(to, 0, 64); err != nil || w.to <= w.from {
			return nil, usageError("%s: not a range of addresses", text)
		}
	}
	return w, nil
}

// byPlace says whether it is found by an address or a line.
func (w *wanted) byPlace() bool { return w.address || w.line > 0 }

// A candidate is a function with samples.
type candidate struct {
	code  *counts.Code
	value float64
}

// find returns the function that is wanted: a place in it.
func (w *wanted) find(t *counts.Table, clock int) (*counts.Code, error) {
	list := w.candidates(t, clock)
	slices.SortStableFunc(list, func(a, b candidate) int {
		switch {
		case a.value > b.value:
			return -1
		case a.value < b.value:
			return 1
		}
		return strings.Compare(functionName(a.code), functionName(b.code))
	})
	switch {
	case w.text == "":
		for _, c := range list {
			if c.code.Function != "" {
				return c.code, nil
			}
		}
		if len(list) > 0 {
			return list[0].code, nil
		}
		return nil, errors.New("no samples are in any code")
	case w.byPlace():
		if len(list) == 0 {
			return nil, fmt.Errorf("no samples at %s", w.text)
		}
		if w.address && len(list) > 1 && w.module == "" {
			return nil, w.several(list, t, clock)
		}
		return list[0].code, nil
	}
	for _, match := range w.ways() {
		found := slices.DeleteFunc(slices.Clone(list), func(c candidate) bool { return !match(c.code.Function) })
		switch {
		case len(found) == 1:
			return found[0].code, nil
		case len(found) > 1:
			return nil, w.several(found, t, clock)
		}
	}
	return nil, w.nothing(list, t, clock)
}

// ways are those in which a name can mean a function, from the strictest on.
func (w *wanted) ways() []func(string) bool {
	plain := object.Demangle(w.name, false)
	if i := strings.Index(plain, "("); i > 0 && strings.HasSuffix(plain, ")") {
		plain = plain[:i]
	}
	return []func(string) bool{
		func(s string) bool { return s == w.name || s == "" && w.name == "[unknown]" },
		func(s string) bool { return s == plain },
		func(s string) bool { return strings.Contains(s, w.name) },
		func(s string) bool { return strings.Contains(strings.ToLower(s), strings.ToLower(w.name)) },
	}
}

// candidates are the functions with samples: of the module that is named, and with
// the address or the line.
func (w *wanted) candidates(t *counts.Table, clock int) []candidate {
	type key struct {
		module, id, function string
		addr                 uint64
	}
	at := map[key]int{}
	var list []candidate
	for row := 1; row < len(t.Scopes); row++ {
		c := t.Scopes[row].Code
		if c == nil || c.Module == "" || w.module != "" && c.Module != w.module && path.Base(w.module) != c.Module {
			continue
		}
		k := key{c.Module, c.BuildID, c.Function, c.Addr}
		if w.byPlace() {
			if !w.has(c) {
				continue
			}
			k.addr = 0
		}
		i, ok := at[k]
		if !ok {
			i = len(list)
			at[k] = i
			list = append(list, candidate{code: c})
		}
		list[i].value += t.Cell(row, clock).Value
	}
	return list
}

// has says whether an instruction is at the address or line that is wanted.
func (w *wanted) has(c *counts.Code) bool {
	switch {
	case w.line > 0:
		return c.Line == w.line && (c.File == w.file || strings.HasSuffix(c.File, "/"+strings.TrimPrefix(w.file, "./")))
	case w.to > 0:
		return c.Addr >= w.from && c.Addr < w.to
	}
	return c.Addr == w.from
}

// A message names so many functions, and so much of the name of each.
const (
	candidatesShown = 8
	candidateWidth  = 70
)

func (w *wanted) several(list []candidate, t *counts.Table, clock int) error {
	return fmt.Errorf("%s is the name, or a part of the names, of %d functions: %s", w.text, len(list), candidateNames(list, t, clock))
}

func (w *wanted) nothing(list []candidate, t *counts.Table, clock int) error {
	if len(list) == 0 {
		return fmt.Errorf("no samples in %s", w.module)
	}
	return fmt.Errorf("no samples in a function called %s (one that was inlined belongs to those that call it); the most are in %s", w.text, candidateNames(list, t, clock))
}

// candidateNames lists functions as one can name them.
func candidateNames(list []candidate, t *counts.Table, clock int) string {
	total := t.Cell(0, clock).Value
	var names []string
	for i, c := range list {
		if i == candidatesShown {
			names = append(names, fmt.Sprintf("%d more", len(list)-i))
			break
		}
		name := c.code.Module + ":" + c.code.Function
		same := func(o candidate) bool {
			return o.code.Module == c.code.Module && o.code.Function == c.code.Function && o.code != c.code
		}
		if slices.ContainsFunc(list, same) || c.code.Function == "" {
			name = fmt.Sprintf("%s:%#x", c.code.Module, c.code.Addr)
		}
		if r := []rune(name); len(r) > candidateWidth {
			name = string(r[:candidateWidth]) + "…"
		}
		names = append(names, fmt.Sprintf("%s (%.1f %%)", name, 100*c.value/total))
	}
	return strings.Join(names, ", ")
}
