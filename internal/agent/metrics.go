package agent

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// A family is what series of one name have in common.
type family struct {
	name, help string
	gauge      bool
	nanos      bool // values are kept in nanoseconds and shown in seconds
	list       []*counter
}

// A counter is one series. Its value is exact and never falls. It is an integer in the
// family's finest unit; what is less than one is kept for the next addition.
type counter struct {
	family *family
	labels []string // names and values in turn, for other formats
	text   string   // the same as Prometheus has it, with the braces
	value  uint64
	rest   float64 // below one; or less than zero: what has to be added before the value rises
	real   float64 // of a gauge
	born   time.Time
	gone   bool
	seen   uint64 // collections that were made before it
}

// add adds an amount. A negative one is kept until others have made up for it.
func (c *counter) add(amount float64) {
	if math.IsNaN(amount) || math.IsInf(amount, 0) {
		return
	}
	sum := amount + c.rest
	if sum < 1 {
		c.rest = sum
		return
	}
	whole := math.Floor(sum)
	if whole >= 1<<63 {
		return
	}
	c.rest = sum - whole
	c.grow(uint64(whole))
}

// grow adds an integer. After 2^64 the counter begins again, which a store takes for a
// restart: what was added is then all that it adds.
func (c *counter) grow(n uint64) {
	if c.value > math.MaxUint64-n {
		c.value = 0
	}
	c.value += n
}

// addNanos adds nanoseconds; less than zero as in add.
func (c *counter) addNanos(n int64) {
	if n >= 0 && c.rest >= 0 {
		c.grow(uint64(n))
		return
	}
	c.add(float64(n))
}

// set sets a gauge.
func (c *counter) set(v float64) { c.real = v }

// A registry has all series. Its methods may be called by several goroutines, those of the
// series only between lock and unlock.
type registry struct {
	mu       sync.Mutex
	families []*family
	byName   map[string]*family
	byKey    map[string]*counter
	active   int
	most     int // series; those beyond it are not made
	hold     time.Duration
	dropped  uint64
	now      func() time.Time
	collects uint64 // that were made
	readers  map[string]reader
	fixed    []string // labels of all series
	spare    counter  // is written to in place of series that are not made
	buf      []byte
}

// A reader is who collects: a scraper, or the push.
type reader struct {
	at   time.Time // of its last collection
	last uint64    // the number of that
}

// Readers are known by where they come from and what they are. Those that have not come for
// some time are forgotten, and there are at most so many.
const (
	forgetReader = 2 * waitForZero
	mostReaders  = 16
)

func newRegistry(most int, now func() time.Time) *registry {
	return &registry{byName: map[string]*family{}, byKey: map[string]*counter{}, readers: map[string]reader{}, most: most, hold: waitForZero, now: now}
}

// family returns a family, which it makes if there is none of that name.
func (r *registry) family(name, help string, kind familyKind) *family {
	f := r.byName[name]
	if f == nil {
		f = &family{name: name, help: help, gauge: kind == gauge, nanos: kind == seconds}
		r.byName[name] = f
		at, _ := slices.BinarySearchFunc(r.families, name, func(f *family, name string) int { return strings.Compare(f.name, name) })
		r.families = slices.Insert(r.families, at, f)
	}
	return f
}

// A familyKind says how the values of a family are kept.
type familyKind uint8

const (
	count familyKind = iota
	seconds
	gauge
)

// get returns the series of a family with labels, names and values in turn. Labels without
// a value are left out. Where the registry has its most series, the counter is in no answer.
func (r *registry) get(f *family, labels ...string) *counter {
	labels = append(labels, r.fixed...)
	text := labelText(labels)
	key := f.name + text
	if c := r.byKey[key]; c != nil {
		c.gone = false
		return c
	}
	if r.active >= r.most {
		r.dropped++
		r.spare = counter{family: f}
		return &r.spare
	}
	c := &counter{family: f, labels: pairs(labels), text: text, born: r.now(), seen: r.collects}
	f.list = append(f.list, c)
	r.byKey[key] = c
	r.active++
	return c
}

// remove removes series.
func (r *registry) remove(list []*counter) {
	touched := map[*family]bool{}
	for _, c := range list {
		if r.byKey[c.family.name+c.text] != c {
			continue
		}
		delete(r.byKey, c.family.name+c.text)
		c.gone = true
		touched[c.family] = true
		r.active--
	}
	for f := range touched {
		f.list = slices.DeleteFunc(f.list, func(c *counter) bool { return c.gone })
	}
}

// longestValue is how many bytes of a label's value are kept: names come from anybody.
const longestValue = 128

// clean returns a label's value as UTF-8 of a bounded length.
func clean(value string) string {
	if len(value) > longestValue {
		value = value[:longestValue]
	}
	return strings.ToValidUTF8(value, string(utf8.RuneError))
}

// pairs returns the labels that have a value.
func pairs(labels []string) []string {
	var list []string
	for i := 0; i+1 < len(labels); i += 2 {
		if labels[i+1] != "" {
			list = append(list, labels[i], clean(labels[i+1]))
		}
	}
	return list
}

var escaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// labelText writes labels as Prometheus does.
func labelText(labels []string) string {
	var b strings.Builder
	for i := 0; i+1 < len(labels); i += 2 {
		if labels[i+1] == "" {
			continue
		}
		if b.Len() == 0 {
			b.WriteByte('{')
		} else {
			b.WriteByte(',')
		}
		b.WriteString(labels[i])
		b.WriteString(`="`)
		_, _ = escaper.WriteString(&b, clean(labels[i+1]))
		b.WriteByte('"')
	}
	if b.Len() > 0 {
		b.WriteByte('}')
	}
	return b.String()
}

// shown reports whether all readers have seen a series, or it has waited long enough. A
// store must see each as 0 first. It would not know what its first value has risen from. It
// would also extrapolate a numerator otherwise than its denominator.
func (r *registry) shown(c *counter) bool {
	if r.now().Sub(c.born) >= r.hold {
		return true
	}
	for _, who := range r.readers {
		if who.last <= c.seen {
			return false
		}
	}
	return len(r.readers) > 0
}

// read notes that somebody collects all series.
func (r *registry) read(by string) {
	r.collects++
	now := r.now()
	for who, last := range r.readers {
		if now.Sub(last.at) >= forgetReader {
			delete(r.readers, who)
		}
	}
	if _, known := r.readers[by]; known || len(r.readers) < mostReaders {
		r.readers[by] = reader{now, r.collects}
	}
}

// collect returns all series in the format of OpenMetrics, or in that of Prometheus before
// it, appended to a buffer. The caller must hold the lock.
func (r *registry) collect(b []byte, open bool) []byte {
	for _, f := range r.families {
		if len(f.list) == 0 {
			continue
		}
		name := f.name
		if open {
			name = strings.TrimSuffix(name, "_total")
		}
		kind := "counter"
		if f.gauge {
			kind = "gauge"
		}
		b = append(append(append(append(b, "# TYPE "...), name...), ' '), kind...)
		if unit := f.unit(); open && unit != "" {
			b = append(append(append(append(b, "\n# UNIT "...), name...), ' '), unit...)
		}
		b = append(append(append(append(b, "\n# HELP "...), name...), ' '), f.help...)
		b = append(b, '\n')
		for _, c := range f.list {
			b = append(append(b, f.name...), c.text...)
			b = append(b, ' ')
			b = c.appendValue(b)
			b = append(b, '\n')
		}
	}
	if open {
		b = append(b, "# EOF\n"...)
	}
	return b
}

// unit returns the unit that ends the family's name, as OpenMetrics has it; "" for none.
func (f *family) unit() string {
	name := strings.TrimSuffix(f.name, "_total")
	unit := name[strings.LastIndexByte(name, '_')+1:]
	if slices.Contains([]string{"seconds", "bytes", "ratio", "slots", "cycles", "instructions"}, unit) {
		return unit
	}
	return ""
}

// appendValue appends the value in decimal, exactly.
func (c *counter) appendValue(b []byte) []byte {
	switch {
	case c.family.gauge:
		return strconv.AppendFloat(b, c.real, 'g', -1, 64)
	case !c.family.nanos:
		return strconv.AppendUint(b, c.value, 10)
	}
	const second = uint64(time.Second)
	b = strconv.AppendUint(b, c.value/second, 10)
	frac := c.value % second
	if frac == 0 {
		return b
	}
	b = append(b, '.')
	for unit := second / 10; unit > 0 && frac > 0; unit /= 10 {
		b = append(b, byte('0'+frac/unit))
		frac %= unit
	}
	return b
}

// number returns the value as a float64, as a store has it.
func (c *counter) number() float64 {
	switch {
	case c.family.gauge:
		return c.real
	case c.family.nanos:
		return float64(c.value) / 1e9
	}
	return float64(c.value)
}
