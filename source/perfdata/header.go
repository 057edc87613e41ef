package perfdata

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/cyclestack/cyclestack/internal/perffile"
)

// Sizes that occur in headers.
const (
	headerOld    = 72 // without features
	maxAttrSize  = 1 << 12
	eventTypeLen = 72 // an event's name in version 1: its number, and 64 bytes
)

func (c *cursor) section() perffile.Section { return perffile.Section{Off: c.u64(), Size: c.u64()} }

// A fileHeader is the beginning of a file.
type fileHeader struct {
	version  int
	pipe     bool
	size     uint64
	attrSize uint64
	attrs    perffile.Section
	data     perffile.Section
	types    perffile.Section // of version 1
	features []Feature
}

// readHeader reads the beginning of the file. If that is no pipe, it reads all that precedes
// and describes the data.
func (r *Reader) readHeader(opts Options) error {
	b, err := r.in.head(perffile.PipeSize)
	if err != nil {
		return r.fail(0, "", err)
	}
	if !isMagic(b) {
		return &Error{r.name, 0, "this is no perf.data: it begins with neither PERFILE2 nor PERFFILE", ErrFormat}
	}
	if len(b) < perffile.PipeSize {
		return r.fail(int64(len(b)), "the file ends inside its header", nil)
	}
	h := &r.header
	h.version = 2
	r.d.big = string(b[:8]) == perffile.Magic2Big
	h.size = get64(b[8:], r.d.big)
	if string(b[:8]) == perffile.Magic1 {
		h.version = 1
		// The magic does not tell the byte order, but sizes are small.
		if r.d.big = h.size > 1<<32; r.d.big {
			h.size = bits.ReverseBytes64(h.size)
		}
	}
	if h.size == perffile.PipeSize {
		h.pipe = true
		h.data = perffile.Section{Off: perffile.PipeSize}
		return nil
	}
	if hold := max(min(cmp.Or(opts.Hold, defaultHold), maxPrefix-1), 0); r.in.at == nil && hold > 0 {
		if err := r.in.hold(int64(hold)); err != nil {
			return r.fail(0, "", err)
		}
	}
	if err := r.readFileHeader(); err != nil {
		return err
	}
	return r.readAttrs()
}

func isMagic(b []byte) bool {
	if len(b) < 8 {
		return false
	}
	switch string(b[:8]) {
	case perffile.Magic1, perffile.Magic2, perffile.Magic2Big:
		return true
	}
	return false
}

func (r *Reader) readFileHeader() error {
	h := &r.header
	if h.size != headerOld && h.size < perffile.HeaderSize || h.size > maxAttrSize {
		return r.fail(8, "a header of "+utoa(h.size)+" bytes: it is 16, 72 or 104 bytes long", nil)
	}
	b, err := r.in.head(int64(h.size))
	if err != nil {
		return r.fail(0, "", err)
	}
	c := cursor{b: b, big: r.d.big}
	c.skip(16)
	h.attrSize, h.attrs, h.data, h.types = c.u64(), c.section(), c.section(), c.section()
	if h.size >= perffile.HeaderSize {
		h.features = featureBits(c.bytes(perffile.MaxFeatures/8), r.d.big)
	}
	if c.short {
		return r.fail(int64(len(b)), "the file ends inside its header", nil)
	}
	if h.data.Off < h.size {
		return r.fail(40, "the data begins inside the header, at 0x"+xtoa(h.data.Off), nil)
	}
	if h.data.End() < h.data.Off || h.data.End() > 1<<62 {
		return r.fail(48, "a data section of "+utoa(h.data.Size)+" bytes", nil)
	}
	if r.in.at != nil && h.data.Off > uint64(r.in.size) {
		return r.fail(40, "the data begins at 0x"+xtoa(h.data.Off)+", behind the end of the file", nil)
	}
	if r.in.at == nil {
		// All that precedes the data has to be kept.
		if _, err := r.in.head(int64(min(h.data.Off, maxPrefix+1))); err != nil {
			return r.fail(0, "what precedes the data", err)
		}
	}
	return nil
}

// featureBits returns the numbers of the bits that are set. A big-endian
// machine wrote them as words of 64 bits, or of 32 if it was one of 32; perf
// always sets the bit of the host's name, which tells. See
// perf_file_header__read.
func featureBits(b []byte, big bool) []Feature {
	if len(b) < perffile.MaxFeatures/8 {
		return nil
	}
	words := make([]uint64, 0, 4)
	for ; len(b) > 0; b = b[8:] {
		words = append(words, get64(b, big))
	}
	const host = 1 << perffile.FeatureHostname
	if big && words[0]&host == 0 {
		swapped := slices.Clone(words)
		for i, w := range words {
			swapped[i] = bits.RotateLeft64(w, 32)
		}
		if swapped[0]&host != 0 {
			words = swapped
		} else if words[0] != 1<<perffile.FeatureBuildID {
			words = []uint64{1 << perffile.FeatureBuildID, 0, 0, 0}
		}
	}
	var out []Feature
	for i := range Feature(perffile.MaxFeatures) {
		if words[i/64]>>(i%64)&1 != 0 && i > 0 {
			out = append(out, i)
		}
	}
	return out
}

// readAttrs reads the events and their ids.
func (r *Reader) readAttrs() error {
	h := &r.header
	if h.attrs.Size == 0 {
		return nil
	}
	if h.attrSize < attrSize0+perffile.SectionSize || h.attrSize > maxAttrSize {
		return r.fail(16, "events of "+utoa(h.attrSize)+" bytes each", nil)
	}
	n := h.attrs.Size / h.attrSize
	if n > maxEvents {
		return r.fail(32, utoa(n)+" events", nil)
	}
	b, err := r.in.section(h.attrs.Off, n*h.attrSize)
	if err != nil || uint64(len(b)) < n*h.attrSize {
		return r.failShort(h.attrs.Off, "the list of events", err)
	}
	total := uint64(0)
	for ; len(b) > 0; b = b[h.attrSize:] {
		at := h.attrSize - perffile.SectionSize
		c := cursor{b: b[at:h.attrSize], big: r.d.big}
		ids := c.section()
		if total += ids.Size / 8; total > maxIDs {
			return r.fail(int64(h.attrs.Off), "more than "+utoa(maxIDs)+" ids of events", nil)
		}
		list, err := r.readIDs(ids)
		if err != nil {
			return err
		}
		r.d.add(decodeAttr(b[:at], r.d.big), list)
	}
	return nil
}

func (r *Reader) readIDs(s perffile.Section) ([]uint64, error) {
	if s.Size < 8 {
		return nil, nil
	}
	b, err := r.in.section(s.Off, s.Size)
	if err != nil || uint64(len(b)) < s.Size {
		return nil, r.failShort(s.Off, "an event's ids", err)
	}
	return Words{b, r.d.big}.AppendTo(nil), nil
}

// readFeatures reads the sections behind the data. What of them is damaged is
// told by Stats and left out: the records are worth more than they are.
func (r *Reader) readFeatures() {
	h := &r.header
	r.readEventTypes()
	if len(h.features) == 0 || h.data.Size == 0 && !r.empty() {
		return
	}
	r.known.complete = true
	table, err := r.in.section(h.data.End(), uint64(len(h.features))*perffile.SectionSize)
	if err != nil {
		r.note(int64(h.data.End()), "what the file says of the machine "+err.Error())
		return
	}
	c := cursor{b: table, big: r.d.big}
	for _, f := range h.features {
		s := c.section()
		if c.short {
			r.note(int64(h.data.End()), "what the file says of the machine is cut off")
			return
		}
		if !f.wanted() {
			r.known.features.set(f, nil, r.d.big)
			continue
		}
		b, err := r.in.section(s.Off, s.Size)
		if err != nil || uint64(len(b)) < s.Size || !r.known.features.set(f, b, r.d.big) {
			r.note(int64(s.Off), "the header's "+f.String()+" cannot be read")
		}
	}
}

// empty reports whether a file without a size of its data is a complete one
// without any: then the list of sections, which say where they are, is there in
// their stead.
func (r *Reader) empty() bool {
	n := uint64(len(r.header.features)) * perffile.SectionSize
	table, err := r.in.section(r.header.data.Off, n)
	if err != nil || uint64(len(table)) < n {
		return false
	}
	c := cursor{b: table, big: r.d.big}
	next := r.header.data.Off + n
	for range r.header.features {
		s := c.section()
		if s.Off != next || s.End() > uint64(r.in.size) {
			return false
		}
		next = s.End()
	}
	return true
}

// wanted reports whether the content of a section is decoded.
func (f Feature) wanted() bool {
	switch f {
	case perffile.FeatureBranchStack, perffile.FeatureAuxtrace, perffile.FeatureStat, perffile.FeatureMemTopology, perffile.FeatureDirFormat,
		perffile.FeatureBPFProgInfo, perffile.FeatureBPFBTF, perffile.FeatureCompressed:
		return false
	}
	return f <= perffile.FeaturePMUCaps
}

// readEventTypes reads the names of events in version 1, and in version 2
// before Linux 3.10.
func (r *Reader) readEventTypes() {
	s := r.header.types
	if s.Size < eventTypeLen || s.Size > maxEvents*eventTypeLen {
		return
	}
	b, err := r.in.section(s.Off, s.Size)
	if err != nil {
		return
	}
	for ; len(b) >= eventTypeLen; b = b[eventTypeLen:] {
		r.typeName(get64(b, r.d.big), string(untilZero(b[8:eventTypeLen])))
	}
}
