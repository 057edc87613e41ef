package samples

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/cyclestack/cyclestack/profile"
)

// windows are the mappings that addresses were in last, and numbers of files. Processes that
// run the same program share places, wherever it is mapped.
type windows struct {
	spaces *profile.Spaces
	files  *files
	user   [2]window // the last ones
	kernel window
}

// codes are the frames of places in the code, and numbers of both. The places of a recording
// are looked up together, by file and address, before they are needed.
type codes struct {
	windows
	expand func(profile.Place) []int32 // finds the frames of a place
	leaves places                      // in the code, where samples may be
	seen   []seenAddress               // while places are gathered

	known  []codeEntry // open addressing
	number int         // of entries
	lists  map[string]uint32
	list   []codeList
	most   int     // lists
	frames []int32 // of the lists
}

// A window is a mapping: addresses of a space that are next to each other in a file.
type window struct {
	space       uint32 // as Spaces.Number has it
	file        uint32 // its number
	low, length uint64 // of the addresses; 0 for none
	offset      uint64 // in the file, of low
}

// A codePlace is a place in the code by the number of its file.
type codePlace struct {
	offset uint64
	file   uint32
}

// A codeEntry is a place with the number of its frames.
type codeEntry struct {
	codePlace
	list uint32 // and 1; 0 for none
}

// A codeList is frames that some place has, and what samples at the first place that had
// them count for.
type codeList struct {
	leaf       int32  // the number in leaves
	begin, end uint32 // among the frames
}

// Limits of what codes remember of places.
const (
	maxCodePlaces = 1 << 19
	maxCodeLists  = 1 << 20
	maxCodeFrames = 1 << 24
)

// Numbers of frames that stand for others: of folded stacks, and of code that there was no
// room for.
const (
	foldedCode uint32 = iota
	crowdedCode
)

// Numbers of files.
const (
	noFile        uint32 = iota // also of addresses outside all mappings
	truncatedFile               // of truncatedLink
	firstFile
)

// newCodes returns codes; others is the frame of those that there was no room for.
func newCodes(spaces *profile.Spaces, others int32, leaves places, expand func(profile.Place) []int32) *codes {
	return &codes{windows: newWindows(spaces), expand: expand, leaves: leaves, known: make([]codeEntry, 1<<12),
		lists: map[string]uint32{}, most: maxCodeLists, frames: []int32{others}, list: []codeList{foldedCode: {end: 1}, crowdedCode: {end: 1}}}
}

// hash is that of the place alone, and of the callers with it.
func (c codePlace) hash(callers uint64) uint64 {
	return mix(callers^(c.offset+uint64(c.file)*seeds[1]), seeds[0])
}

func newWindows(spaces *profile.Spaces) windows {
	return windows{spaces: spaces, files: &files{map[*profile.File]uint32{nil: noFile}, make([]*profile.File, firstFile)}}
}

// files are numbers of files.
type files struct {
	number map[*profile.File]uint32
	list   []*profile.File // by number
}

// of returns the number of a file.
func (l *files) of(f *profile.File) uint32 {
	n, ok := l.number[f]
	if !ok {
		n = uint32(len(l.list))
		l.number[f] = n
		l.list = append(l.list, f)
	}
	return n
}

// place returns a place by the number of its file.
func (l *files) place(is codePlace) profile.Place {
	return profile.Place{File: l.list[is.file], Offset: is.offset}
}

// A codeSpace is what addresses of a process mean at a time.
type codeSpace struct {
	pid          int
	time         uint64
	user, kernel uint32 // numbers of the spaces
}

// space returns a process's addresses at a time.
func (c *windows) space(pid int, time uint64) codeSpace {
	return codeSpace{pid, time, c.spaces.Number(time, int32(pid), profile.User), c.spaces.Number(time, int32(pid), profile.Kernel)}
}

// place returns the place of an address.
func (c *windows) place(in *codeSpace, addr uint64, mode profile.Mode) codePlace {
	switch mode {
	case profile.Kernel:
		if w := &c.kernel; addr-w.low < w.length && w.space == in.kernel {
			return codePlace{w.offset + (addr - w.low), w.file}
		}
		return c.far(in, addr, mode, in.kernel, &c.kernel)
	case profile.User:
		if w := &c.user[0]; addr-w.low < w.length && w.space == in.user {
			return codePlace{w.offset + (addr - w.low), w.file}
		}
		c.user[0], c.user[1] = c.user[1], c.user[0]
		if w := &c.user[0]; addr-w.low < w.length && w.space == in.user {
			return codePlace{w.offset + (addr - w.low), w.file}
		}
		return c.far(in, addr, mode, in.user, &c.user[0])
	}
	at := c.spaces.Find(in.time, in.pid, addr, mode)
	return codePlace{at.Offset, c.files.of(at.File)}
}

// far is place for another mapping than those that are remembered.
func (c *windows) far(in *codeSpace, addr uint64, mode profile.Mode, space uint32, w *window) codePlace {
	at, low, last, ok := c.spaces.Mapped(in.time, in.pid, addr, mode)
	if !ok || last-low+1 == 0 {
		at = c.spaces.Find(in.time, in.pid, addr, mode)
		return codePlace{at.Offset, c.files.of(at.File)}
	}
	*w = window{space: space, file: c.files.of(at.File), low: low, length: last - low + 1, offset: at.Offset - (addr - low)}
	return codePlace{at.Offset, w.file}
}

// of returns the number of a place's frames.
func (c *codes) of(is codePlace) uint32 {
	e := c.entry(is)
	if e.list > 0 {
		return e.list - 1
	}
	n := c.add(c.files.place(is))
	if c.number >= maxCodePlaces {
		clear(c.known)
		c.number = 0
		e = c.entry(is)
	}
	c.put(e, codeEntry{is, n + 1})
	return n
}

// entry returns the entry of a place, or a free one for it.
func (c *codes) entry(is codePlace) *codeEntry {
	mask := len(c.known) - 1
	i := int(is.hash(0)) & mask
	for c.known[i].list > 0 && c.known[i].codePlace != is {
		i = (i + 1) & mask
	}
	return &c.known[i]
}

// put puts a new place into its free entry.
func (c *codes) put(e *codeEntry, is codeEntry) {
	*e = is
	if c.number++; c.number*4 > len(c.known)*3 {
		old := c.known
		c.known = make([]codeEntry, 2*len(old))
		for _, e := range old {
			if e.list > 0 {
				*c.entry(e.codePlace) = e
			}
		}
	}
}

// gatheredList stands for the frames of a place that was gathered.
const gatheredList = math.MaxUint32

// gather notes the place of an address, to be looked up.
func (c *codes) gather(in *codeSpace, addr uint64, mode profile.Mode) {
	space := in.user
	if mode == profile.Kernel {
		space = in.kernel
	}
	if space != 0 && (mode == profile.User || mode == profile.Kernel) {
		s := &c.seen[mix(addr+uint64(space)<<48, seeds[0])%seenAddresses]
		if s.addr == addr && s.space == space {
			return
		}
		*s = seenAddress{addr, space}
	}
	is := c.place(in, addr, mode)
	if e := c.entry(is); e.list == 0 && c.number < maxCodePlaces {
		c.put(e, codeEntry{is, gatheredList})
	}
}

// A seenAddress is an address of a space, by the number of Spaces.
type seenAddress struct {
	addr  uint64
	space uint32
}

// seenAddresses is how many addresses are remembered while places are gathered.
const seenAddresses = 1 << 15

// lookUp looks up the places that were gathered, by file and address.
func (c *codes) lookUp() {
	var list []codePlace
	for _, e := range c.known {
		if e.list == gatheredList {
			list = append(list, e.codePlace)
		}
	}
	slices.SortFunc(list, func(a, b codePlace) int { return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.offset, b.offset)) })
	for _, is := range list {
		c.entry(is).list = c.add(c.files.place(is)) + 1
	}
	c.seen = nil
}

// add returns the number of the frames of a place.
func (c *codes) add(at profile.Place) uint32 {
	frames := c.expand(at)
	var key []byte
	for _, f := range frames {
		key = binary.NativeEndian.AppendUint32(key, uint32(f))
	}
	n, ok := c.lists[string(key)]
	if !ok {
		if n = uint32(len(c.list)); int(n) >= c.most || len(c.frames)+len(frames) > maxCodeFrames {
			return crowdedCode
		}
		begin := uint32(len(c.frames))
		c.frames = append(c.frames, frames...)
		c.list = append(c.list, codeList{c.leaves.look(at), begin, uint32(len(c.frames))})
		c.lists[string(key)] = n
	}
	return n
}

// at returns frames by their number, the outermost first.
func (c *codes) at(n uint32) []int32 {
	l := &c.list[n]
	return c.frames[l.begin:l.end]
}

// A chainCache knows the nodes of calls, and the rows of whole stacks, by the hash of their
// places. The hash has 64 bits, and stands for the places.
type chainCache struct {
	nodes []chainEntry
	rows  []chainRow
}

type chainEntry struct {
	key  uint64
	node int32
}

// A chainRow has the row of a chain, and 1; 0 for none.
type chainRow struct {
	key uint64
	row int32
}

// Sizes of the cache, powers of two.
const (
	chainNodes = 1 << 18
	chainRows  = 1 << 17
)

func newChainCache() chainCache {
	return chainCache{make([]chainEntry, chainNodes), make([]chainRow, chainRows)}
}

// node and row return the entries for a key, which may be another's.
func (c *chainCache) node(key uint64) *chainEntry { return &c.nodes[key%chainNodes] }
func (c *chainCache) row(key uint64) *chainRow    { return &c.rows[key%chainRows] }
