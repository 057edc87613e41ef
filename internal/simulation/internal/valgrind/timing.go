package valgrind

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
)

// Simulators count what is executed, and not how long it takes. Where the rates of a
// program's instructions are known, executions times rates are further events of its files.
// They are sums like the others. Instructions with and without rates are counted
// separately, so that the cycles of a run are
//
//	Ct + Cbt + C2t + C3t + Cmt
//
// plus the cost of the instructions without rates, by their number, mispredictions and
// misses.
var (
	// timedEvents are the events that rates make, in the order of their columns.
	timedEvents = [...]struct{ name, about string }{
		{"Ct", "cycles by the model of a core, with all branches predicted and all data in the first-level cache"},
		{"Cbt", "cycles that mispredicted branches add, by the model of a core"},
		{"C2t", "cycles that waiting for the second-level cache adds, by the model of a core"},
		{"C3t", "cycles that waiting for the third-level cache adds, by the model of a core"},
		{"Cmt", "cycles that waiting for memory adds, by the model of a core"},
		{"Bct", "conditional branches mispredicted, by the traced order"},
		{"Bit", "indirect jumps, calls and returns mispredicted, by the traced order"},
	}
	// They are followed by the untimedEvents of the instructions without a rate, with a
	// letter added to their names. Most lines have none, and trailing zeros are not
	// written.
	untimedEvents = [...]string{"Ir", "Bcm", "Bim", "D1mr", "D1mw", "DLmr", "DLmw"}
)

const (
	ofUntimed = "u"              // ends the name of an event of instructions without a rate
	untimed   = "Ir" + ofUntimed // the number of these instructions
)

// addedEvents is how many events are added.
const addedEvents = len(timedEvents) + len(untimedEvents)

// addedEvent returns the name of an added event, and what it is.
func addedEvent(i int) (name, about string) {
	if i < len(timedEvents) {
		return timedEvents[i].name, timedEvents[i].about
	}
	of := untimedEvents[i-len(timedEvents)]
	return of + ofUntimed, of + " of instructions that the model of a core has not timed"
}

// timedDescription is the description of the source of these events, in files that have
// them.
const timedDescription = "Timed"

// Time adds the time of instructions to the simulation's files, as further events:
// executions times rates. Counts are integers, and the remainders of rounding are carried
// to the next place. The new events have no inclusive costs of called functions. The text
// says where the rates come from.
//
// If it fails, the files are unchanged.
func (s *Simulation) Time(rates Rates, about string) error {
	for _, name := range s.Files {
		if err := timeFile(name, name+timedSuffix, rates, about); err != nil {
			for _, name := range s.Files {
				_ = os.Remove(name + timedSuffix)
			}
			return err
		}
	}
	for _, name := range s.Files {
		if err := os.Rename(name+timedSuffix, name); err != nil {
			return err
		}
	}
	return nil
}

// timedSuffix is the suffix of a file until all have been written.
const timedSuffix = ".timed"

func timeFile(from, to string, rates Rates, about string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	return newTimer(in, from, out, rates, about).run()
}

// A seekable output can be written to again at an offset.
type seekable interface {
	io.Writer
	io.WriterAt
}

// A timer rewrites a file with the further events. It reads the file with a [Reader], so
// that both understand it in the same way.
type timer struct {
	r     *Reader
	rates Rates
	about string
	file  seekable
	out   *bufio.Writer
	at    int64 // bytes written

	columns [len(untimedEvents)]int // of the part: the untimed events; -1 for none
	costs   []float64               // of a line that has costs of its own
	err     error                   // of such a line
	carry   [addedEvents]float64
	values  [addedEvents]uint64 // of the line
	sums    [addedEvents]uint64 // of the part
	heads   []int64             // where to write the sums when the part ends
	text    []byte              // scratch
}

func newTimer(in io.Reader, name string, out seekable, rates Rates, about string) *timer {
	t := &timer{r: NewReader(in, name, Options{}), rates: rates, about: about, file: out, out: bufio.NewWriterSize(out, 1<<16)}
	t.r.each = t.own
	return t
}

// run writes the file.
func (t *timer) run() error {
	for last := false; !last; {
		var b []byte
		var err error
		if b, last, err = t.r.next(); err != nil {
			return err
		}
		if err := t.line(b); err != nil {
			return err
		}
	}
	if err := t.endPart(); err != nil {
		return err
	}
	return t.out.Flush()
}

// line writes a line.
func (t *timer) line(b []byte) error {
	begun := t.r.header.begun
	t.costs = nil
	if err := errors.Join(t.r.take(b), t.err); err != nil {
		return err
	}
	if begun && !t.r.header.begun { // the header of another part
		if err := t.endPart(); err != nil {
			return err
		}
	}
	if t.costs != nil {
		return t.costLine(b)
	}
	key, _, _ := bytes.Cut(b, []byte{':'})
	switch string(key) {
	case "cmd":
		return t.describe(b)
	case "events":
		return t.events(b)
	case "summary", "totals":
		if len(t.r.columns) > 0 {
			return t.totals(b)
		}
	}
	return t.write(b)
}

func (t *timer) write(b []byte) error {
	n, err := t.out.Write(b)
	t.at += int64(n)
	return err
}

// describe writes before a command, where both simulators have their descriptions, where
// the events come from. Cachegrind's files have no other place for the meaning of events.
func (t *timer) describe(b []byte) error {
	if t.about != "" {
		if err := t.write(fmt.Appendf(nil, "desc: %s: %s\n", timedDescription, t.about)); err != nil {
			return err
		}
		t.about = ""
		if err := t.explain("desc: "); err != nil {
			return err
		}
	}
	return t.write(b)
}

// explain writes a line for each event, in a file of callgrind or one of cachegrind.
func (t *timer) explain(key string) error {
	if (key == "event: ") != t.r.header.callgrind {
		return nil
	}
	for i := range addedEvents {
		name, about := addedEvent(i)
		if err := t.write(fmt.Appendf(nil, "%s%s: %s\n", key, name, about)); err != nil {
			return err
		}
	}
	return nil
}

// needed is how many of the untimed events a file must have: instructions and
// mispredictions.
const needed = 3

// events writes the names of the events, and finds the columns that they are computed from.
func (t *timer) events(b []byte) error {
	column := func(event string) int {
		return slices.IndexFunc(t.r.columns, func(c int) bool { return t.r.events[c] == event })
	}
	for i, event := range untimedEvents {
		if t.columns[i] = column(event); t.columns[i] < 0 && i < needed {
			return t.r.fault("it does not count %s", event)
		}
	}
	line := bytes.TrimRight(b, " \t\r\n")
	for i := range addedEvents {
		name, _ := addedEvent(i)
		if column(name) >= 0 {
			return t.r.fault("it has %s already", name)
		}
		line = append(append(slices.Clip(line), ' '), name...)
	}
	if err := t.explain("event: "); err != nil {
		return err
	}
	return t.write(append(line, '\n'))
}

// own takes the costs of a line, and computes those of the new events.
func (t *timer) own(costs []float64) {
	r := t.r
	t.costs, t.values = costs, [addedEvents]uint64{}
	of := func(column int) float64 {
		if column >= 0 && column < len(costs) {
			return costs[column]
		}
		return 0
	}
	var rate Rate
	var ok bool
	if r.header.instructions {
		rate, ok = t.rates.At(r.ob.text[r.at.ob], r.at.addr)
	} else {
		rate, ok = t.rates.Line(r.fl.text[r.at.file], int(r.at.line))
	}
	if ok {
		n := of(t.columns[0])
		for i, v := range [len(timedEvents)]float64{rate.Cycles, rate.Lost, rate.Second, rate.Third, rate.Memory, rate.Conditional, rate.Indirect} {
			t.count(i, n*v)
		}
		return
	}
	for i, column := range t.columns {
		t.count(len(timedEvents)+i, of(column))
	}
}

// mostCycles bounds the count of an event in a line, so that sums are still numbers that
// files can have.
const mostCycles = 1e18

// count adds to an event. The remainder of rounding is carried to the next line with such
// an event.
func (t *timer) count(event int, v float64) {
	if v == 0 {
		return
	}
	v += t.carry[event]
	whole := math.Floor(v + 0.5)
	if !(whole >= 0 && whole+float64(t.sums[event]) < mostCycles) {
		name, _ := addedEvent(event)
		t.err = t.r.fault("%v of %s, which cannot be", v, name)
		return
	}
	t.carry[event] = v - whole
	t.values[event] = uint64(whole)
	t.sums[event] += uint64(whole)
}

// costLine writes a line of costs followed by those of the new events. Cachegrind writes
// trailing zeros, callgrind does not.
func (t *timer) costLine(b []byte) error {
	line := append(t.text[:0], bytes.TrimRight(b, " \t\r\n")...)
	last := len(t.values)
	for last > 0 && t.values[last-1] == 0 && t.r.header.callgrind {
		last--
	}
	if last > 0 {
		for range len(t.r.columns) - len(t.costs) {
			line = append(line, " 0"...)
		}
	}
	for _, v := range t.values[:last] {
		line = strconv.AppendUint(append(line, ' '), v, 10)
	}
	t.text = append(line, '\n')
	return t.write(t.text)
}

// digits is how many a sum may have.
const digits = 19

// totals writes a line of sums, with blanks for those of the new events. They are filled in
// when the part has ended: callgrind has such a line before the costs.
func (t *timer) totals(b []byte) error {
	line := bytes.TrimRight(b, " \t\r\n")
	_, stated, _ := bytes.Cut(line, []byte{':'})
	line = slices.Clip(line)
	for range len(t.r.columns) - len(words(stated)) {
		line = append(line, " 0"...)
	}
	t.heads = append(t.heads, t.at+int64(len(line)))
	if len(t.heads) > maxEvents {
		return t.r.fault("more than %d lines of totals in a part", maxEvents)
	}
	line = append(line, bytes.Repeat([]byte{' '}, addedEvents*(1+digits))...)
	return t.write(append(line, '\n'))
}

// endPart fills in the sums of a part.
func (t *timer) endPart() error {
	if err := t.out.Flush(); err != nil {
		return err
	}
	line := t.text[:0]
	for _, v := range t.sums {
		line = fmt.Appendf(line, " %*d", digits, v)
	}
	for _, at := range t.heads {
		if _, err := t.file.WriteAt(line, at); err != nil {
			return err
		}
	}
	t.text, t.heads, t.sums = line, t.heads[:0], [addedEvents]uint64{}
	return nil
}
