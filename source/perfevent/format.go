package perfevent

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/internal/spelling"
)

// A format says where the value of a term goes: the word and its bits, as in
// "config:0-7,32-35". See
// Documentation/ABI/testing/sysfs-bus-event_source-devices-format.
type format struct {
	word   int // 0 is config, 1 config1, …
	ranges []bitRange
}

// A bitRange is some adjacent bits of a word, from the lowest to the highest.
type bitRange struct{ low, high uint }

// parseFormat parses the content of a file of a PMU's format directory.
func parseFormat(s string) (format, error) {
	var f format
	word, list, ok := strings.Cut(strings.TrimSpace(s), ":")
	if !ok {
		return f, fmt.Errorf("format %q has no colon", spelling.Clip(s))
	}
	switch word {
	case "config":
	case "config1", "config2", "config3":
		f.word = int(word[len(word)-1] - '0')
	default:
		return f, fmt.Errorf("format %q: there is no word %q to put it into", spelling.Clip(s), spelling.Clip(word))
	}
	var taken uint64
	for part := range strings.SplitSeq(list, ",") {
		r, err := parseBits(part)
		if err != nil {
			return f, fmt.Errorf("format %q: %w", spelling.Clip(s), err)
		}
		if taken&r.mask() != 0 {
			return f, fmt.Errorf("format %q has a bit twice", spelling.Clip(s))
		}
		taken |= r.mask()
		f.ranges = append(f.ranges, r)
	}
	return f, nil
}

func parseBits(s string) (bitRange, error) {
	first, last, isRange := strings.Cut(strings.TrimSpace(s), "-")
	low, err := strconv.ParseUint(first, 10, 8)
	if err != nil {
		return bitRange{}, fmt.Errorf("%q is not a bit", spelling.Clip(s))
	}
	high := low
	if isRange {
		if high, err = strconv.ParseUint(last, 10, 8); err != nil {
			return bitRange{}, fmt.Errorf("%q is not a range of bits", spelling.Clip(s))
		}
	}
	if high > 63 || high < low {
		return bitRange{}, fmt.Errorf("%q is not a range of bits of a word of 64", spelling.Clip(s))
	}
	return bitRange{uint(low), uint(high)}, nil
}

func (r bitRange) width() uint { return r.high - r.low + 1 }

func (r bitRange) mask() uint64 { return ^uint64(0) >> (64 - r.width()) << r.low }

// width is how many bits a value can have.
func (f format) width() int {
	n := 0
	for _, r := range f.ranges {
		n += int(r.width())
	}
	return n
}

// put writes a value to its bits. What those bits held before is replaced.
func (f format) put(a *Attr, value uint64) error {
	if bits.Len64(value) > f.width() {
		return fmt.Errorf("%#x has more than %d bits", value, f.width())
	}
	word := [...]*uint64{&a.Config, &a.Config1, &a.Config2, &a.Config3}[f.word]
	for _, r := range f.ranges {
		*word = *word&^r.mask() | value<<r.low&r.mask()
		if r.width() < 64 {
			value >>= r.width()
		}
	}
	return nil
}
