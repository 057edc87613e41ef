package recorded

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/object"
	"github.com/cyclestack/cyclestack/internal/sorting"
	"github.com/cyclestack/cyclestack/internal/source/samples"
	"github.com/cyclestack/cyclestack/profile"
)

// ErrNoFunction says that no function of a name has samples.
var ErrNoFunction = errors.New("no samples in a function called")

// functionName is a function and its module.
func functionName(c *counts.Code) string {
	name := c.Function
	if name == "" {
		name = "[unknown]"
	}
	return name + " (" + c.Module + ")"
}

// A symbol says which function is to be annotated.
type symbol struct {
	text     string
	module   string
	name     string
	from, to uint64 // addresses; to is 0 without a range
	address  bool
	file     string
	line     int
	is       *counts.Code // a function that was found, in place of the others
}

// parseSymbol reads a SYMBOL.
func parseSymbol(text string) (*symbol, error) {
	s := &symbol{text: text, name: text}
	if text == "" {
		return s, nil
	}
	if i := strings.LastIndex(text, ":"); i > 0 && i < len(text)-1 && text[i-1] != ':' && !strings.HasSuffix(text, ")") {
		head, tail := text[:i], text[i+1:]
		_, err := strconv.Atoi(head[strings.LastIndexByte(head, ':')+1:]) // a line before a column, as in JS:*run app.js:1:13
		if n, err2 := strconv.Atoi(tail); err != nil && err2 == nil && n > 0 {
			s.file, s.line = head, n
			return s, nil
		}
	}
	// A module ends in one colon; C++ has two together.
	if head, tail, ok := strings.Cut(text, ":"); ok && head != "" && tail != "" && !strings.HasPrefix(tail, ":") {
		s.module, s.name = head, tail
	}
	if !strings.HasPrefix(s.name, "0x") {
		return s, nil
	}
	s.address = true
	from, to, isRange := strings.Cut(s.name, "-")
	var err error
	if s.from, err = strconv.ParseUint(from, 0, 64); err != nil {
		return nil, fault.Usagef("%s: not an address", text)
	}
	if isRange {
		if s.to, err = strconv.ParseUint(to, 0, 64); err != nil || s.to <= s.from {
			return nil, fault.Usagef("%s: not a range of addresses", text)
		}
	}
	return s, nil
}

// byPlace reports whether the symbol is an address or a line.
func (s *symbol) byPlace() bool { return s.address || s.line > 0 }

// filter leaves what has the symbol's address or line.
func (s *symbol) filter() samples.Filter {
	if s.line > 0 {
		return samples.Filter{Lines: []string{strings.TrimPrefix(s.text, "./")}}
	}
	return samples.Filter{Addresses: []samples.Range{{From: s.from, To: max(s.from, s.to-min(s.to, 1))}}}
}

// A candidate is a function with samples.
type candidate struct {
	code  *counts.Code
	value float64
}

// find returns a place in the function.
func (s *symbol) find(t *counts.Table, clock int) (*counts.Code, error) {
	if s.is != nil {
		for row := range t.Scopes {
			if c := t.Scopes[row].Code; c != nil && c.Function == s.is.Function && c.Module == s.is.Module && c.BuildID == s.is.BuildID && c.Addr == s.is.Addr {
				return c, nil
			}
		}
		return nil, fmt.Errorf("%s: its calls are inlined, and it has no code of its own", s.text)
	}
	list := s.candidates(t, clock)
	if len(list) == 0 && s.module != "" && !s.byPlace() { // names of scripts have colons
		s.module, s.name = "", s.text
		list = sorting.Delete(s.candidates(t, clock), func(c candidate) bool { return !strings.Contains(c.code.Function, s.name) })
		s.module, _, _ = strings.Cut(s.text, ":")
	}
	sorting.Stable(list, func(a, b candidate) int {
		switch {
		case a.value > b.value:
			return -1
		case a.value < b.value:
			return 1
		}
		return strings.Compare(functionName(a.code), functionName(b.code))
	})
	switch {
	case s.text == "":
		for _, c := range list {
			if c.code.Function != "" {
				return c.code, nil
			}
		}
		if len(list) > 0 {
			return list[0].code, nil
		}
		return nil, errors.New("no samples are in any code")
	case s.byPlace():
		if len(list) == 0 {
			return nil, fmt.Errorf("no samples at %s", s.text)
		}
		if s.address && len(list) > 1 && s.module == "" {
			return nil, s.ambiguous(list, t, clock)
		}
		return list[0].code, nil
	}
	for _, match := range s.ways() {
		found := sorting.Delete(slices.Clone(list), func(c candidate) bool { return !match(c.code.Function) })
		switch {
		case len(found) == 1:
			return found[0].code, nil
		case len(found) > 1:
			return nil, s.ambiguous(found, t, clock)
		}
	}
	return nil, s.nothing(list, t, clock)
}

// waysMost is in how many ways a name may mean a function.
const waysMost = 4

// ways are tests whether a name means a function, as its symbol has it or demangled: the strictest first.
func (s *symbol) ways() [waysMost]func(string) bool {
	plain := object.Demangle(s.name, false)
	if i := strings.Index(plain, "("); i > 0 && strings.HasSuffix(plain, ")") {
		plain = plain[:i]
	}
	named := object.Named(s.name)
	return [waysMost]func(string) bool{
		func(f string) bool { return named(f) || f == "" && s.name == "[unknown]" },
		func(f string) bool { return f == plain || samples.Unversioned(f) == s.name || s.ofPackage(f) },
		func(f string) bool { return strings.Contains(f, s.name) },
		func(f string) bool { return strings.Contains(strings.ToLower(f), strings.ToLower(s.name)) },
	}
}

// ofPackage reports whether the symbol is a function's name with the last part of its Go package's path.
func (s *symbol) ofPackage(function string) bool { return strings.HasSuffix(function, "/"+s.name) }

// sameCode reports whether two functions are the same one of a program that was mapped twice.
func sameCode(a, b *profile.Function) bool {
	return a.Name == b.Name && a.Addr == b.Addr && a.File.Base() == b.File.Base() && a.File.BuildID == b.File.BuildID
}

func (s *symbol) inModule(module string) bool {
	return module != "" && (s.module == "" || module == s.module || path.Base(s.module) == module)
}

// candidates are the functions with samples that are in the module, and have the
// address or the line.
func (s *symbol) candidates(t *counts.Table, clock int) []candidate {
	type key struct {
		module, id, function string
		addr                 uint64
	}
	at := map[key]int{}
	var list []candidate
	for row := 1; row < len(t.Scopes); row++ {
		c := t.Scopes[row].Code
		if c == nil || !s.inModule(c.Module) {
			continue
		}
		k := key{c.Module, c.BuildID, c.Function, c.Addr}
		if s.byPlace() {
			if !s.has(c) {
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

// has reports whether an instruction is at the address or line.
func (s *symbol) has(c *counts.Code) bool {
	switch {
	case s.line > 0:
		return c.Line == s.line && (c.File == s.file || strings.HasSuffix(c.File, "/"+strings.TrimPrefix(s.file, "./")))
	case s.to > 0:
		return c.Addr >= s.from && c.Addr < s.to
	}
	return c.Addr == s.from
}

// Bounds on what a message says of candidates.
const (
	candidatesShown = 8
	candidateWidth  = 70
)

func (s *symbol) ambiguous(list []candidate, t *counts.Table, clock int) error {
	is := "the name, or a part of the names,"
	if s.address {
		is = "in the code"
	}
	return fmt.Errorf("%s is %s of %d functions: %s", s.text, is, len(list), candidateNames(list, t, clock))
}

// meanings are the functions that a symbol may mean, of the samples so far.
type meanings struct {
	of    *symbol
	ways  [waysMost]func(string) bool
	found [waysMost][]*profile.Function
	other [waysMost]bool // a file has a function, with samples or without
	known map[*profile.Function]bool
	asked map[*profile.File]int // of how many ways it was asked for functions
}

func newMeanings(s *symbol) *meanings {
	return &meanings{of: s, ways: s.ways(), known: map[*profile.Function]bool{}, asked: map[*profile.File]int{}}
}

// several reports whether the symbol means several functions, one more included. It does not if a program
// has a function that is meant more strictly: samples of that one may follow.
func (m *meanings) several(f *profile.Function, y *profile.Symbolizer) bool {
	if !m.known[f] && m.of.inModule(counts.Name(f.File.Base())) {
		if way := m.way(f); way >= 0 {
			m.found[way] = appendCode(m.found[way], f)
		}
		m.asked[f.File] += 0 // it is to be asked
	}
	m.known[f] = true
	way := m.strictest()
	return way >= 0 && len(m.found[way]) > 1 && !m.stricter(way, y)
}

// way is the strictest way that means a function, -1 for none.
func (m *meanings) way(f *profile.Function) int {
	for way, means := range m.ways {
		if means(counts.Name(f.Name)) {
			return way
		}
	}
	return -1
}

// strictest is the strictest way of those so far, -1 for none.
func (m *meanings) strictest() int {
	for way, list := range m.found {
		if len(list) > 0 {
			return way
		}
	}
	return -1
}

// stricter reports whether a file may have a function that is meant more strictly.
func (m *meanings) stricter(way int, y *profile.Symbolizer) bool {
	if way == waysMost-1 && !object.InMangled(m.of.name) {
		return true
	}
	for file, asked := range m.asked {
		for ; asked < way; asked++ {
			list, err := y.Lookup(file, m.ways[asked])
			m.other[asked] = m.other[asked] || err == nil && len(list) > 0
		}
		m.asked[file] = asked
	}
	return slices.Contains(m.other[:way], true)
}

// appendCode appends a function, if it is not there yet and there is room for its name in a message.
func appendCode(list []*profile.Function, f *profile.Function) []*profile.Function {
	if len(list) < candidatesShown && !slices.ContainsFunc(list, func(o *profile.Function) bool { return sameCode(o, f) }) {
		list = append(list, f)
	}
	return list
}

// error is the error of a symbol that means several functions.
func (m *meanings) error() error {
	way := m.strictest()
	list, is := m.found[way], "the name"
	if way > 0 {
		is = "a part of the names"
	}
	var names []string
	for _, f := range list {
		name := counts.Name(f.File.Base()) + ":" + counts.Name(f.Name)
		if slices.ContainsFunc(list, func(o *profile.Function) bool {
			return o != f && o.File.Base() == f.File.Base() && o.Name == f.Name
		}) {
			name = fmt.Sprintf("%s:%#x", counts.Name(f.File.Base()), f.Addr)
		}
		names = append(names, shortened(name))
	}
	return fmt.Errorf("%s is %s of several functions with samples, such as %s", m.of.text, is, strings.Join(names, ", "))
}

func (s *symbol) nothing(list []candidate, t *counts.Table, clock int) error {
	if len(list) == 0 {
		return fmt.Errorf("no samples in %s", s.module)
	}
	names := make([]string, len(list))
	for i, c := range list {
		names[i] = c.code.Function
	}
	return fmt.Errorf("%w %s (one that was inlined belongs to those that call it)%s; the most are in %s", ErrNoFunction, s.text, nearest(s.name, names), candidateNames(list, t, clock))
}

// candidateNames lists functions in a form that is a symbol again.
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
		names = append(names, fmt.Sprintf("%s (%.1f %%)", shortened(name), 100*c.value/total))
	}
	return strings.Join(names, ", ")
}

// shortened is a name without its middle, if it is long: both ends tell names apart.
func shortened(name string) string {
	r := []rune(name)
	if len(r) <= candidateWidth {
		return name
	}
	return string(r[:candidateWidth/2]) + "…" + string(r[len(r)-candidateWidth/2:])
}
