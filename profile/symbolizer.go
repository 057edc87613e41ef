package profile

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/cyclestack/cyclestack/internal/object"
)

// Config says where a Symbolizer finds the files that were mapped.
type Config struct {
	// Root is put in front of the paths of programs, debug files and lists of
	// symbols: the root of the system that the recording is from (--sysroot,
	// perf's --symfs). Empty: this system.
	Root string
	// Debug are directories of separate debug files, under Root. nil:
	// /usr/lib/debug.
	Debug []string
	// BuildIDCache is perf's directory of copies of what it recorded. Empty:
	// ~/.debug, or none with a Root.
	BuildIDCache string
	// Vmlinux is the kernel with its symbols, and Kallsyms a copy of
	// /proc/kallsyms of the run that was recorded. Empty: found by build id, or
	// this system's if it is the kernel that was recorded.
	Vmlinux, Kallsyms string
	// Parameters says that demangled names have their parameters.
	Parameters bool
	// Cache is how many bytes of line tables and inlined calls are kept for each
	// file. 0: 64 MiB.
	Cache int
	// NoLines says that files and lines are not needed, neither in frames.
	NoLines bool
	// Ordered says that files are asked about one after the other: what was read of a file is
	// given up with the first question about the next one.
	Ordered bool
	// Indexes keep symbols, and what was read of debug information, for the next time; nil for
	// nothing. They are read in parts, from a byte on.
	Indexes interface {
		Read(id string, at int64, most int) []byte
		Write(id string, data []byte)
	}
	// Opened keeps files open for Symbolizers that follow; nil for none.
	Opened *object.Opened
}

// A Symbolizer says what is at places. It opens a file at the first question about it. Its
// methods may be used concurrently.
type Symbolizer struct {
	config Config
	fetch  *debuginfod

	mu        sync.Mutex
	images    map[*File]*image
	file      *File // that was asked for last
	last      *image
	kallsyms  map[string]*nameTable // by path: all modules are in one list
	demangled map[string]string
}

// A Function is a function of a file. There is one value for each, so that functions can be
// compared and counted by their address.
type Function struct {
	File *File
	// Symbol is the name in the symbol table; "" stands for all code of the file outside
	// known functions. File is nil for code that is in no file.
	Symbol string
	// Name is the demangled name, or "".
	Name string
	// Addr and Size are where the function is in the object file, as objdump shows
	// it; for kernels and code made at run time, in memory.
	Addr, Size uint64
	Offset     uint64 // of Addr, as in [Place]
	Inlined    bool   // it stands for the inlined calls of a function; see Innermost
}

// A Frame is a function and a line: of a call that was inlined, or of the function around
// the inlined calls.
type Frame struct {
	Func    string // demangled; "" if the debug information has no name
	File    string // as the compiler wrote it; "" if unknown
	Line    int    // 0 if unknown
	Inlined bool   // it is part of the code of the next frame's function
}

// A Status says what was found for a file.
type Status struct {
	Path      string // of the file that symbols are from, "" if there is none
	DebugPath string // of the separate debug file, or ""
	// Verified says that the build id of the recording and that of the file agree.
	// Without one in the recording the file may be another one by now.
	Verified bool
	Err      error    // why nothing was found
	Notes    []string // why there is less than there could be
}

// errNoFile is the error of a place in no file.
var errNoFile = errors.New("nothing was mapped at this address")

// NewSymbolizer returns a symbolizer.
func NewSymbolizer(c Config) *Symbolizer {
	return &Symbolizer{config: c.withDefaults(), fetch: newDebuginfod(), images: map[*File]*image{}, kallsyms: map[string]*nameTable{}, demangled: map[string]string{}}
}

// Close closes all files.
func (y *Symbolizer) Close() error {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.config.Opened != nil {
		clear(y.images)
		return y.config.Opened.End()
	}
	var errs []error
	for _, im := range y.images {
		if im.object != nil {
			errs = append(errs, im.object.Close())
		}
	}
	clear(y.images)
	clear(y.kallsyms)
	y.file, y.last = nil, nil
	return errors.Join(errs...)
}

// Function returns the function at a place. It is never nil.
func (y *Symbolizer) Function(p Place) *Function {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.function(y.image(p.File), p)
}

func (y *Symbolizer) function(im *image, p Place) *Function {
	n, start := im.number(p)
	if n < 0 {
		return &im.unknown
	}
	f := im.numbered.at(n)
	if *f == nil {
		s, _ := im.symbol(p)
		*f = &Function{File: p.File, Symbol: s.Name, Name: y.demangle(s.Name), Addr: s.Addr, Size: s.Size, Offset: start}
	}
	return *f
}

// Innermost returns the function whose code is at a place: that of the innermost inlined
// call, or else Function. Inlined calls of one name in a file are one function, with Inlined
// set and without an address.
func (y *Symbolizer) Innermost(p Place) *Function {
	y.mu.Lock()
	defer y.mu.Unlock()
	im := y.image(p.File)
	f := y.function(im, p)
	name, n := im.innermost(p)
	if n > 0 {
		known := im.inlines.at(n)
		if *known == nil {
			*known = y.inlined(im, p.File, im.object.InlineName(n))
		}
		if (*known).Symbol == f.Symbol {
			return f
		}
		return *known
	}
	if name == "" || name == f.Symbol {
		return f
	}
	return y.inlined(im, p.File, name)
}

// inlined returns the function of inlined calls of a name.
func (y *Symbolizer) inlined(im *image, file *File, name string) *Function {
	in := im.inlined[name]
	if in == nil {
		if im.inlined == nil {
			im.inlined = map[string]*Function{}
		}
		in = &Function{File: file, Symbol: name, Name: y.demangle(name), Inlined: true}
		im.inlined[name] = in
	}
	return in
}

// innermost returns the symbol of the innermost inlined call at a place, or its number in the
// object; "" and 0 if there is none.
func (im *image) innermost(p Place) (name string, number int) {
	switch {
	case im.object != nil:
		return im.object.Inline(im.addr(p))
	case im.dump != nil:
		if frames := im.dump.Frames(p.Offset); len(frames) > 1 {
			return frames[0].Func, 0
		}
	}
	return "", 0
}

// inlinedAt reports whether the code at a place is of an inlined call.
func (im *image) inlinedAt(p Place) bool {
	return im.object != nil && im.object.Inlined(im.addr(p)) || im.dump != nil && len(im.dump.Frames(p.Offset)) > 1
}

// Frames returns the functions and lines at a place, the innermost first: the inlined calls
// and the function around them. It is empty if nothing is known.
func (y *Symbolizer) Frames(p Place) []Frame {
	y.mu.Lock()
	defer y.mu.Unlock()
	var out []Frame
	for _, f := range y.image(p.File).frames(p) {
		f.Func = y.demangle(f.Func)
		out = append(out, Frame(f))
	}
	return out
}

// Inlined reports whether the code at a place is known to be of an inlined call: whether
// Frames returns more than the function.
func (y *Symbolizer) Inlined(p Place) bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.image(p.File).inlinedAt(p)
}

// Line returns the source line of a place, of the innermost inlined call; "" and
// 0 if it is not known.
func (y *Symbolizer) Line(p Place) (file string, line int) {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.image(p.File).line(p)
}

// Addr returns the address of a place in its object file, as objdump and Function.Addr have
// it. For files that cannot be read it is the offset.
func (y *Symbolizer) Addr(p Place) uint64 {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.image(p.File).addr(p)
}

// Status says what was found for a file.
func (y *Symbolizer) Status(f *File) Status {
	y.mu.Lock()
	defer y.mu.Unlock()
	im := y.image(f)
	s := im.status
	if im.object != nil {
		s.Notes = append(slices.Clone(s.Notes), im.object.Notes()...)
	}
	return s
}

// Lookup returns the functions of a file whose names match, as they are in its symbol table.
func (y *Symbolizer) Lookup(f *File, matches func(symbol string) bool) ([]*Function, error) {
	y.mu.Lock()
	im := y.image(f)
	y.mu.Unlock()
	var places []Place
	switch {
	case im.object != nil:
		symbols, err := im.object.Lookup(matches)
		if err != nil {
			return nil, err
		}
		for _, s := range symbols {
			if offset, ok := im.place(s.Addr); ok {
				places = append(places, Place{f, offset})
			}
		}
	case im.table != nil:
		for i := range im.table.len() {
			if s := im.table.symbol(i); matches(s.Name) {
				places = append(places, Place{f, s.Addr + im.shift})
			}
		}
	case im.dump != nil:
		for _, c := range im.dump.Codes {
			if matches(c.Name) {
				places = append(places, Place{f, c.Offset})
			}
		}
	default:
		return nil, im.status.Err
	}
	var list []*Function
	for _, p := range places {
		list = append(list, y.Function(p))
	}
	return list, nil
}

// maxDemangled bounds the names that are remembered.
const maxDemangled = 1 << 18

func (y *Symbolizer) demangle(name string) string {
	if len(name) < 2 || name[0] != '_' {
		return name
	}
	if d, ok := y.demangled[name]; ok {
		return d
	}
	if len(y.demangled) >= maxDemangled {
		clear(y.demangled)
	}
	d := object.Demangle(name, y.config.Parameters)
	y.demangled[name] = d
	return d
}

// image returns what was found for a file. It looks for the file once.
func (y *Symbolizer) image(f *File) *image {
	if y.last != nil && y.file == f {
		return y.last
	}
	if y.config.Ordered && y.config.Opened == nil && y.last != nil && y.last.object != nil {
		y.last.object.Release()
	}
	im := y.images[f]
	if im == nil {
		im = y.open(f)
		im.unknown.File = f
		y.images[f] = im
	}
	y.file, y.last = f, im
	return im
}

// functionList are functions by a number, in blocks: few functions of a large file have samples.
type functionList [][]*Function

const functionBlock = 1 << 8

// at returns the place of a number's function.
func (l *functionList) at(n int) **Function {
	i := n / functionBlock
	if i >= len(*l) {
		*l = append(*l, make([][]*Function, i+1+i/2-len(*l))...)
	}
	if (*l)[i] == nil {
		(*l)[i] = make([]*Function, functionBlock)
	}
	return &(*l)[i][n%functionBlock]
}

// An image is what was found for a file: one of object, table and dump, or none.
type image struct {
	object *object.Object
	table  *nameTable // by address in the run
	dump   *object.Jitdump
	path   string // of the dump
	data   *dataFile
	// shift is the address in the run less that in the object or table, for files
	// whose places are addresses.
	shift    uint64
	absolute bool
	name     string // of a kindKernelSym, which is one symbol
	base     uint64 // of a kindKernelSym

	status   Status
	numbered functionList         // by the number of a function in the object, table or dump
	inlines  functionList         // of inlined calls, likewise
	inlined  map[string]*Function // by symbol
	unknown  Function
}

// addr returns the address in the object.
func (im *image) addr(p Place) uint64 {
	switch {
	case im.absolute:
		return p.Offset - im.shift
	case im.object != nil:
		if addr, ok := im.object.Addr(p.Offset); ok {
			return addr
		}
	case im.dump != nil:
		if c, ok := im.dump.CodeAt(p.Offset); ok {
			return c.Addr + (p.Offset - c.Offset)
		}
	}
	return p.Offset
}

// place is the reverse of addr.
func (im *image) place(addr uint64) (uint64, bool) {
	switch {
	case im.absolute:
		return addr + im.shift, true
	case im.object != nil:
		return im.object.Offset(addr)
	}
	return addr, true
}

// number returns the number of the function that a place is in, and where it starts; -1 if
// there is none.
func (im *image) number(p Place) (n int, start uint64) {
	addr := im.addr(p)
	switch {
	case im.object != nil:
		n, start = im.object.Number(addr)
	case im.table != nil:
		n, start = im.table.lookup(addr)
	case im.dump != nil:
		if n = im.dump.NumberAt(p.Offset); n >= 0 {
			start = im.dump.Codes[n].Addr
		}
	case im.name != "":
		start = im.base
	default:
		return -1, 0
	}
	return n, p.Offset - (addr - start)
}

func (im *image) symbol(p Place) (object.Symbol, bool) {
	switch {
	case im.object != nil:
		return im.object.Symbol(im.addr(p))
	case im.table != nil:
		return im.table.find(im.addr(p))
	case im.dump != nil:
		c, ok := im.dump.CodeAt(p.Offset)
		if !ok {
			return object.Symbol{}, false
		}
		return object.Symbol{Name: c.Name, Addr: c.Addr, Size: c.Size}, true
	case im.name != "":
		return object.Symbol{Name: im.name, Addr: im.base}, true
	}
	return object.Symbol{}, false
}

func (im *image) frames(p Place) []object.Frame {
	switch {
	case im.object != nil:
		return im.object.Frames(im.addr(p))
	case im.dump != nil:
		return im.dump.Frames(p.Offset)
	}
	if s, ok := im.symbol(p); ok {
		return []object.Frame{{Func: s.Name}}
	}
	return nil
}

func (im *image) line(p Place) (file string, line int) {
	switch {
	case im.object != nil:
		return im.object.Line(im.addr(p))
	case im.dump != nil:
		if frames := im.dump.Frames(p.Offset); len(frames) > 0 {
			return frames[0].File, frames[0].Line
		}
	}
	return "", 0
}

// missing is an image without contents.
func missing(format string, args ...any) *image {
	return &image{status: Status{Err: fmt.Errorf(format, args...)}}
}
