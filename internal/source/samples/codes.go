package samples

import (
	"encoding/binary"
	"math"

	"github.com/cyclestack/cyclestack/profile"
)

// windows are the mappings that addresses were in last, and numbers of files. Processes that
// run the same program share places, wherever it is mapped.
type windows struct {
	spaces *profile.Spaces
	files  *files
	user   [userWindows]window // by process and two megabytes of addresses
	kernel window
}

// codes are the frames of places in the code, and numbers of both. Places are looked up
// together, by file and address.
type codes struct {
	windows
	expand func(profile.Place) []int32 // finds the frames of a place
	leaves places                      // in the code, where samples may be
	seen   []seenPlace

	places  pages[codePlace]
	index   numberIndex  // of the places; the numbers are theirs and 1
	numbers []codeNumber // of places that were looked up
	lists   map[string]uint32
	last    uint32 // the number of the list that was asked for last
	alone   int32  // the frame of that, if it is one; -1 if not
	key     []byte
	list    []codeList
	most    int     // lists
	frames  []int32 // of the lists
}

// A codeNumber is the number of a place's frames, and the frame if it is one; -1 if not.
type codeNumber struct {
	frames uint32
	alone  int32
}

// A window is a mapping: addresses of a space that are next to each other in a file, or between
// mappings.
type window struct {
	space       uint32 // as Spaces.Number has it
	file        uint32 // its number
	low, length uint64 // of the addresses; 0 for none
	offset      uint64 // in the file, of low
}

// userWindows is how many mappings of processes are remembered, a power of two.
const userWindows = 64

// A codePlace is a place in the code by the number of its file.
type codePlace struct {
	offset uint64
	file   uint32
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
	noFile uint32 = iota // also of addresses outside all mappings
	firstFile

	truncatedFile = math.MaxUint32 // of callers that were not recorded
)

// newCodes returns codes; others is the frame of those that there was no room for.
func newCodes(spaces *profile.Spaces, others int32, leaves places, expand func(profile.Place) []int32) *codes {
	return &codes{windows: newWindows(spaces), expand: expand, leaves: leaves, seen: make([]seenPlace, seenPlaces),
		lists: map[string]uint32{}, alone: -1, most: maxCodeLists, frames: []int32{others}, list: []codeList{foldedCode: {end: 1}, crowdedCode: {end: 1}}}
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
		w := &c.user[(addr>>21+uint64(in.user)*7)%userWindows]
		if addr-w.low < w.length && w.space == in.user {
			return codePlace{w.offset + (addr - w.low), w.file}
		}
		return c.far(in, addr, mode, in.user, w)
	}
	at := c.spaces.Find(in.time, in.pid, addr, mode)
	return codePlace{at.Offset, c.files.of(at.File)}
}

// far is place for another mapping than those that are remembered.
func (c *windows) far(in *codeSpace, addr uint64, mode profile.Mode, space uint32, w *window) codePlace {
	at, low, last, ok := c.spaces.Mapped(in.time, in.pid, addr, mode)
	if !ok && mode == profile.User {
		at.Offset = addr // many words of callchains are no addresses of code
	}
	if !ok && mode != profile.User || last-low+1 == 0 {
		at = c.spaces.Find(in.time, in.pid, addr, mode)
		return codePlace{at.Offset, c.files.of(at.File)}
	}
	*w = window{space: space, file: c.files.of(at.File), low: low, length: last - low + 1, offset: at.Offset - (addr - low)}
	return codePlace{at.Offset, w.file}
}

// near is placeOf for the mappings that are remembered. It is small enough to be inlined.
func (c *windows) near(in *codeSpace, l *link) (codePlace, bool) {
	w, space := &c.kernel, in.kernel
	if l.mode == profile.User {
		w, space = &c.user[(l.place>>21+uint64(in.user)*7)%userWindows], in.user
	}
	at := l.place - w.low
	return codePlace{w.offset + at, w.file}, at < w.length && w.space == space && l.mode-profile.Kernel <= 1
}

// placeOf returns the place of a link.
func (c *codes) placeOf(in *codeSpace, l link) codePlace {
	if l.mode == truncatedMode {
		return codePlace{file: truncatedFile}
	}
	return c.place(in, l.place, l.mode)
}

// number returns the number of a place.
func (c *codes) number(is codePlace) uint32 {
	if is.file == truncatedFile {
		return truncatedCall
	}
	s := &c.seen[is.hash(0)%seenPlaces]
	if s.offset != is.offset || s.file != is.file || s.number == 0 {
		n, _ := numberIn(&c.places, &c.index, is, func(is codePlace) uint32 { return uint32(is.hash(0)) })
		*s = seenPlace{is.offset, is.file, uint32(n) + 1}
	}
	return s.number - 1
}

// touch reads what number reads first.
func (c *codes) touch(is codePlace) uint32 {
	hash := uint32(is.hash(0))
	n := c.seen[hash%seenPlaces].number
	if len(c.index.slots) > 0 {
		n += c.index.slots[hash&uint32(len(c.index.slots)-1)]
	}
	return n
}

// A seenPlace is a place with its number and 1; 0 for none.
type seenPlace struct {
	offset       uint64
	file, number uint32
}

// seenPlaces is how many places are remembered.
const seenPlaces = 1 << 15

// lookUp looks up the places that were met since the last time, by file and address.
func (c *codes) lookUp(order []numberedPlace) {
	c.numbers = append(c.numbers, make([]codeNumber, len(order))...)
	for _, is := range order {
		n := codeNumber{c.add(c.files.place(codePlace{is.offset, is.file})), -1}
		if list := c.at(n.frames); len(list) == 1 {
			n.alone = list[0]
		}
		c.numbers[is.number] = n
	}
}

// forget drops the places if they are many. They were looked up.
func (c *codes) forget() {
	if c.places.n >= maxCodePlaces {
		c.places, c.index, c.numbers = pages[codePlace]{}, numberIndex{}, nil
		clear(c.seen)
	}
}

// add returns the number of the frames of a place.
func (c *codes) add(at profile.Place) uint32 {
	frames := c.expand(at)
	if len(frames) == 1 && frames[0] == c.alone {
		return c.last
	}
	c.key = c.key[:0]
	for _, f := range frames {
		c.key = binary.NativeEndian.AppendUint32(c.key, uint32(f))
	}
	n, ok := c.lists[string(c.key)]
	if !ok {
		if n = uint32(len(c.list)); int(n) >= c.most || len(c.frames)+len(frames) > maxCodeFrames {
			return crowdedCode
		}
		begin := uint32(len(c.frames))
		c.frames = append(c.frames, frames...)
		c.list = append(c.list, codeList{c.leaves.look(at), begin, uint32(len(c.frames))})
		c.lists[string(c.key)] = n
	}
	if c.alone, c.last = -1, n; len(frames) == 1 {
		c.alone = frames[0]
	}
	return n
}

// at returns frames by their number, the outermost first.
func (c *codes) at(n uint32) []int32 {
	l := &c.list[n]
	return c.frames[l.begin:l.end]
}
