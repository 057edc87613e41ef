// Package export writes accounts of places in the code, with their samples' stacks, in the
// formats of other viewers: pprof, speedscope, the Firefox Profiler, collapsed stacks, and
// flame graphs as HTML files.
//
// It follows the last step of the flow
//
//	model → plan → source → counts → account
//
// and does not know where the samples came from. A [Profile] has stacks and types of
// values: the nodes of an account and the events that were counted. Values add up: those of
// a function are the sum of those of its stacks. [Amounts] makes the values of nodes.
//
//	p := &export.Profile{Types: types, Stacks: slices.Values(stacks)}
//	err := export.Pprof(w, p)
//
// Names come from recordings, which may come from anybody. Whatever they hold, the files
// are valid, and an opened page runs nothing of theirs.
package export

import (
	"compress/gzip"
	"errors"
	"io"
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Type is a kind of value that stacks have.
type Type struct {
	Name string // of the node or event
	Unit string // "slots", "cycles", "nanoseconds", "count"
	Path string // of a node: the names from the root, joined by dots; "" for others
}

// A Frame is one level of a stack. Frames are the same if their pointers are.
type Frame struct {
	Function string // as people read it; of a module, its name
	Module   string
	BuildID  string // of the module, hexadecimal
	File     string // of the source
	Line     int
	Addr     uint64 // in the module
	Kernel   bool   // the kernel's code
	Inlined  bool   // part of the code of the next outer frame

	text, line string       // its label, and that of a line of collapsed stacks, once asked for
	writer     *pprofWriter // that has numbered it
	place      uint64       // its number there
	stream     *jsonStream  // that has it numbered
	number     int32        // its number there
	tree       *flameTree   // that has numbered its label
	box        int32        // the number there
}

// A Stack is the open calls of samples.
type Stack struct {
	Thread string    // the name of the thread, which is the outermost frame in formats without a place for it
	Cgroup string    // its path, if stacks were asked for by cgroup
	Frames []*Frame  // the outermost first
	Same   int       // of the first frames, how many are known to be those of the stack before
	Values []float64 // by type; NaN for what is not known
	// Bottleneck is the node that limits the innermost place most; "" for none.
	Bottleneck string
	Number     int // of the stack in the pieces of a profile
}

// Select returns the stacks that are wanted.
func Select(stacks iter.Seq[*Stack], wanted func(*Stack) bool) iter.Seq[*Stack] {
	return func(yield func(*Stack) bool) {
		same := 0
		for s := range stacks {
			if same = min(same, s.Same); !wanted(s) {
				continue
			}
			s.Same = same
			if !yield(s) {
				return
			}
			same = len(s.Frames)
		}
	}
}

// A Profile is what is exported.
type Profile struct {
	Title    string // what was measured
	Types    []Type
	Default  int              // the type that is shown first
	Duration float64          // of the recording, seconds; NaN if it is not known
	Stacks   iter.Seq[*Stack] // each valid until the next
	// Threads makes the thread the outermost frame in pprof, too, as for recordings without
	// callchains.
	Threads bool
	Notes   []string // notes about the values
	// Pieces are the stacks of each interval, in the order of time; nil if they were not asked
	// for. They are made behind the stacks, and each is valid until the next.
	Pieces  iter.Seq[*Piece]
	Units   []string // the wholes that nodes are parts of
	Crowded bool     // they were asked for, and are so many that there was no room
}

// A Piece is the stacks of an interval.
type Piece struct {
	Start  float64 // seconds since the beginning of the recording
	Stacks []Part
	Places []PlacePart
}

// A Part is what a stack has of a piece. Amounts of nodes are those of its place, in proportion
// to its part of the wholes.
type Part struct {
	Stack, Place int       // Stack.Number, and the number of the place
	Events       []float64 // by type, without the nodes
	Wholes       []float64 // by Profile.Units
}

// A PlacePart is what a place has of a piece.
type PlacePart struct {
	Place      int
	Amounts    []float64 // by node
	Bottleneck string
}

// A Format is a format of other programs.
type Format struct {
	Name   string
	Write  func(io.Writer, *Profile) (Omission, error)
	Binary bool // it is not for terminals
	Bare   bool // it has no room for notes, nor for what was left out
	Names  bool // it has names of functions only, without files
	One    bool // it has values of one type only, Profile.Default
}

// Formats are all formats, in the order of documents.
var Formats = []Format{
	{Name: "pprof", Binary: true, Write: func(w io.Writer, p *Profile) (Omission, error) { return Omission{}, Pprof(w, p) }},
	{Name: "speedscope", Bare: true, Write: func(w io.Writer, p *Profile) (Omission, error) { return Speedscope(w, p, "cyclestack") }},
	{Name: "firefox", Write: Firefox},
	{Name: "collapsed", Bare: true, Names: true, One: true, Write: func(w io.Writer, p *Profile) (Omission, error) { return Collapsed(w, p, p.Default) }},
	{Name: "flamegraph", Names: true, Write: FlameGraph},
	{Name: "stacks", Names: true, Write: Stacks},
}

// Save writes a profile to a file of that name: compressed if it ends in ".gz".
func (f *Format) Save(w io.Writer, p *Profile, name string) (Omission, error) {
	if f.Binary || !strings.HasSuffix(name, ".gz") {
		return f.Write(w, p)
	}
	z := gzip.NewWriter(w)
	left, err := f.Write(z, p)
	return left, errors.Join(err, z.Close())
}

// Names returns the names of the formats.
func Names() []string {
	var names []string
	for _, f := range Formats {
		names = append(names, f.Name)
	}
	return names
}

// label is a frame's name. Code without a name has the name of its module in brackets.
func (f *Frame) label() string {
	switch {
	case f.text != "":
	case f.Function != "":
		f.text = clean(f.Function)
	case f.Module != "":
		f.text = "[" + strings.Trim(clean(f.Module), "[]") + "]"
	default:
		f.text = "[unknown]"
	}
	return f.text
}

// maxName bounds the bytes of a name.
const maxName = 4096

// clean makes a name fit for a line of text: valid, without control characters, and
// bounded.
func clean(name string) string {
	if len(name) > maxName {
		cut := maxName
		for cut > maxName-utf8.UTFMax && !utf8.RuneStart(name[cut]) {
			cut--
		}
		name = name[:cut] + "…"
	}
	name = strings.ToValidUTF8(name, "\uFFFD")
	if strings.IndexFunc(name, unprintable) < 0 {
		return name
	}
	return strings.Map(func(r rune) rune {
		if unprintable(r) {
			return ' '
		}
		return r
	}, name)
}

// unprintable reports whether a character is invisible or changes how others are shown:
// controls, line separators, marks of direction.
func unprintable(r rune) bool {
	if r >= ' ' && r <= '~' {
		return false
	}
	return unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp, unicode.Cf, unicode.Co, unicode.Cs)
}

// cleanAll cleans texts, and drops those that are empty.
func cleanAll(list []string) []string {
	var out []string
	for _, s := range list {
		if s != "" {
			out = append(out, clean(s))
		}
	}
	return out
}
