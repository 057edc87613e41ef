package valgrind

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// EmulatedEvents are the events of a simulation of the whole machine in one run: those of
// callgrind, with memory behind the last cache, and those of instructions that are timed.
var EmulatedEvents = slices.Concat([]string{"Ir", "Dr", "Dw", "I1mr", "D1mr", "D1mw", "ILmr", "DLmr", "DLmw", "Bc", "Bcm", "Bi", "Bim"}, timedNames())

// timedNames are the names of the events that [Simulation.Time] adds, and that of page walks.
func timedNames() []string {
	list := []string{"DT", walkEvent, "Lm", pageEvent, "DT" + ofUntimed, walkEvent + ofUntimed}
	for i := range addedEvents {
		name, _ := addedEvent(i)
		list = append(list, name)
	}
	return append(append(list, showsEvent), varianceEvents[:]...)
}

// walkEvent is accesses whose page no TLB has. Names differ by more than the case of letters.
const walkEvent = "Wd"

// formerWalkEvent is its name in files of former versions.
const formerWalkEvent = "DW"

// pageEvent is the cycles of waiting for the translation of addresses.
const pageEvent = "Cpt"

// writtenOrder are the indices of EmulatedEvents in the order of a file. The first of them are
// those that instructions have which were not timed and missed nothing: most lines are short.
var writtenOrder = func() (order []int) {
	for _, often := range []bool{true, false} {
		for i, name := range EmulatedEvents {
			if slices.Contains([]string{"Ir", "Ir" + ofUntimed, "Dr", "Dw", "Bc", "Bi"}, name) == often {
				order = append(order, i)
			}
		}
	}
	return order
}()

// A FileHeader is what a file says before its costs.
type FileHeader struct {
	Command string
	Caches  []string // as KIND: SIZE, LINE, WAYS, such as "D1 cache: 32768 B, 64 B, 8-way associative"
	About   string   // where the cycles of instructions come from
	Beyond  float64  // the share of misses of the last cache that a further one answers
	Error   string   // the relative errors of sampling, by event; or [FewWindows] and their number
}

// creator is what the files of a [FileWriter] name as theirs.
const creator = "cyclestack"

// A FileWriter writes counts by instruction as a file in callgrind's format.
type FileWriter struct {
	out   *bufio.Writer
	names [3]writtenNames // objects, source files and functions
	sums  []uint64
	text  []byte
}

// writtenNames are names of a kind, and the number of each that was written.
type writtenNames struct {
	key    string
	ids    map[string]int
	latest string
	begun  bool
}

// NewFileWriter writes the header of a file of [EmulatedEvents].
func NewFileWriter(w io.Writer, h FileHeader) *FileWriter {
	f := &FileWriter{out: bufio.NewWriterSize(w, fileBuffer), sums: make([]uint64, len(EmulatedEvents))}
	for i, key := range []string{"ob", "fl", "fn"} {
		f.names[i] = writtenNames{key: key, ids: map[string]int{}}
	}
	fmt.Fprintf(f.out, "# callgrind format\nversion: 1\ncreator: %s\ncmd: %s\npart: 1\n\n", creator, oneLine(h.Command))
	for _, c := range h.Caches {
		fmt.Fprintf(f.out, "desc: %s\n", c)
	}
	if h.Beyond > 0 {
		fmt.Fprintf(f.out, "desc: %s: %g\n", beyondDescription, h.Beyond)
	}
	if h.About != "" {
		fmt.Fprintf(f.out, "desc: %s: %s\n", timedDescription, oneLine(h.About))
	}
	if h.Error != "" {
		fmt.Fprintf(f.out, "desc: %s: %s\n", samplingDescription, h.Error)
	}
	fmt.Fprint(f.out, "\nevent: DT: accesses to data whose page only the second TLB has\nevent: Wd: accesses to data whose page no TLB has\n"+
		"event: Lm: lines that moved between memory and the caches\n")
	fmt.Fprintf(f.out, "event: %s: cycles that waiting for the translation of addresses adds, by the model of a core\n", pageEvent)
	for i := range addedEvents {
		name, about := addedEvent(i)
		fmt.Fprintf(f.out, "event: %s: %s\n", name, about)
	}
	fmt.Fprintf(f.out, "event: %s: cycles of the core, where samples by the clock would be\n", showsEvent)
	fmt.Fprint(f.out, "positions: instr line\nevents:")
	for _, i := range writtenOrder {
		fmt.Fprintf(f.out, " %s", EmulatedEvents[i])
	}
	fmt.Fprint(f.out, "\n\n")
	return f
}

// fileBuffer is how much is written at a time.
const fileBuffer = 1 << 16

// oneLine returns a text without line ends and tabs.
func oneLine(text string) string { return lineEnds.Replace(text) }

var lineEnds = strings.NewReplacer("\n", " ", "\r", " ", "\t", " ")

// Costs writes the costs of an instruction, in the order of [EmulatedEvents]: its object,
// source file and function, its address and its line.
func (f *FileWriter) Costs(object, source, function string, addr uint64, line int, costs []uint64) {
	f.name(&f.names[0], object)
	f.name(&f.names[1], source)
	f.name(&f.names[2], function)
	f.text = strconv.AppendUint(append(f.text[:0], "0x"...), addr, 16)
	f.text = strconv.AppendUint(append(f.text, ' '), uint64(max(line, 0)), 10)
	zeros := 0 // those at the end are not written
	for _, i := range writtenOrder {
		if costs[i] == 0 {
			zeros++
			continue
		}
		for ; zeros > 0; zeros-- {
			f.text = append(f.text, " 0"...)
		}
		f.text = strconv.AppendUint(append(f.text, ' '), costs[i], 10)
		f.sums[i] += costs[i]
	}
	_, _ = f.out.Write(append(f.text, '\n'))
}

// Caller writes that a line of a function is called by a share of its callers from another line. Other readers
// take it for a comment. Without a function it is the line in all of them.
func (f *FileWriter) Caller(function, source string, line int, from string, at int, share float64) {
	fmt.Fprintf(f.out, "%s%s\t%s\t%d\t%s\t%d\t%.0f\n", callerMark, oneLine(function), oneLine(source), line, oneLine(from), at, callerUnits*share)
}

// callerMark begins the line of a caller.
const callerMark = "# called: "

// callerUnits are the parts that a share is counted in.
const callerUnits = 1000

// name writes a name if it is another than before.
func (f *FileWriter) name(n *writtenNames, text string) {
	if n.begun && n.latest == text {
		return
	}
	n.begun, n.latest = true, text
	if text = oneLine(text); text == "" {
		text = "???"
	}
	id, ok := n.ids[text]
	if !ok {
		id = len(n.ids) + 1
		n.ids[text] = id
		fmt.Fprintf(f.out, "%s=(%d) %s\n", n.key, id, text)
		return
	}
	fmt.Fprintf(f.out, "%s=(%d)\n", n.key, id)
}

// Close writes the totals.
func (f *FileWriter) Close() error {
	fmt.Fprint(f.out, "\ntotals:")
	for _, i := range writtenOrder {
		fmt.Fprintf(f.out, " %d", f.sums[i])
	}
	fmt.Fprintln(f.out)
	return f.out.Flush()
}

// FewWindows says that there were too few windows for an error of sampling.
const FewWindows = "few"

// samplingDescription is the description of the errors of sampling.
const samplingDescription = "Sampling error"
