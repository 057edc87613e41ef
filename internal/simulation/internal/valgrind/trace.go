package valgrind

import (
	"bytes"
	"fmt"
)

// Lackey is the simulator that prints the order of the code, and counts nothing.
const Lackey Tool = "lackey"

// A Follower is told what a process executes, in order. One goroutine calls its methods.
type Follower interface {
	// Exec says that a program begins: earlier mappings are gone.
	Exec()
	// Fork says that the process was forked off another one, which may be nil if nothing is
	// known of it. It has the same mappings.
	Fork(parent Follower)
	// Mapped says that the code of an object file is mapped now. Its addresses in memory
	// are higher by bias than those in the file.
	Mapped(file string, bias uint64)
	// Blocks are the addresses of the next blocks of code, in the order executed. Each runs
	// in a straight line to the first instruction that may leave it. It ends before that
	// after MaxInstructions, at some rare instructions, and after each repetition of a
	// string instruction. The slice is reused.
	Blocks(addrs []uint64)
	// End says that the process is not followed any more.
	End()
}

// MaxInstructions is the most instructions of a block without a branch.
const MaxInstructions = 50

// A Trace is what is known of a run that has been followed.
type Trace struct {
	Blocks   int64 // that were handed to followers
	Programs int   // that began, of all processes
	Cut      bool  // there would have been more
}

// traceOptions are valgrind's arguments for lackey to print blocks, and for valgrind to
// print mappings. Blocks are those of the code: they do not go on behind a jump, and loops
// are not unrolled. Valgrind prints mappings if -v is given twice. A -q in the user's own
// options, which valgrind reads from a file, cancels one -v.
func traceOptions(dir string) []string {
	return []string{"--tool=" + string(Lackey), "--basic-counts=no", "--trace-superblocks=yes",
		"--vex-guest-chase=no", "--vex-iropt-unroll-thresh=0", fmt.Sprintf("--vex-guest-max-insns=%d", MaxInstructions),
		"--trace-children=yes", "--vgdb=no", "-v", "-v", "-v", "--log-file=" + perProcess(dir, "")}
}

// A traceLog reads what lackey prints of one process, in pieces of any size.
//
// A log begins when a process is forked, and anew when it executes a program. What it did in
// between is lost, as far as it was not read before. To make that independent of chance, a
// forked process's first blocks are held back, and dropped if a program follows.
type traceLog struct {
	to       Follower
	ancestor func(pid string) Follower // of a forked process
	left     *int64                    // how many blocks may still be handed on, of all processes
	addrs    []uint64
	rest     []byte // the beginning of a line
	skip     bool   // the line is too long: its rest is skipped
	file     string // whose symbols are being read; "" for none
	parent   string // process number of its parent; "" if it is not known
	begun    bool   // it is known whether it was forked or has executed a program
	held     []uint64
	execs    int    // programs that have begun
	failed   string // valgrind's last message of a failure
}

const (
	maxTraceLine  = 8 << 10   // longer ones have nothing of interest
	maxHeld       = 100 << 10 // blocks of a forked process: few execute so many before they execute a program
	traceBatch    = 4 << 10   // blocks that are handed on at a time
	blockKey      = "SB "
	symbolsKey    = "Reading syms from "
	addressKey    = "svma 0x"
	biasedKey     = ", avma 0x"
	parentKey     = "== Parent PID: "
	traceGreeting = " Lackey, "
)

// newTraceLog returns the log of a process to follow. If it was forked, ancestor returns
// the follower of its parent.
func newTraceLog(to Follower, ancestor func(pid string) Follower, left *int64) *traceLog {
	return &traceLog{to: to, ancestor: ancestor, left: left, addrs: make([]uint64, 0, traceBatch)}
}

// write reads the next piece of the log.
func (l *traceLog) write(text []byte) {
	if len(l.rest) > 0 || l.skip {
		text = l.complete(text)
	}
	for len(text) > 0 {
		if n := l.block(text); n > 0 {
			text = text[n:]
			continue
		}
		end := bytes.IndexByte(text, '\n')
		if end < 0 {
			l.hold(text)
			break
		}
		l.line(text[:end])
		text = text[end+1:]
	}
	l.flush()
}

// complete reads the line that began in the piece before, and returns what follows it.
func (l *traceLog) complete(text []byte) []byte {
	end := bytes.IndexByte(text, '\n')
	if end < 0 {
		l.hold(text)
		return nil
	}
	if !l.skip {
		l.rest = append(l.rest, text[:end+1]...)
		if l.block(l.rest) == 0 {
			l.line(l.rest[:len(l.rest)-1])
		}
	}
	l.rest, l.skip = l.rest[:0], false
	return text[end+1:]
}

// hold keeps the beginning of a line.
func (l *traceLog) hold(text []byte) {
	if l.skip = l.skip || len(l.rest)+len(text) > maxTraceLine; l.skip {
		l.rest = l.rest[:0]
		return
	}
	l.rest = append(l.rest, text...)
}

// block reads a line of a block, if the text begins with one, and returns its length.
func (l *traceLog) block(text []byte) int {
	if len(text) < len(blockKey) || string(text[:len(blockKey)]) != blockKey {
		return 0
	}
	addr, n := hexadecimal(text[len(blockKey):])
	end := len(blockKey) + n
	if n == 0 || end >= len(text) || text[end] != '\n' {
		return 0
	}
	if l.addrs = append(l.addrs, addr); len(l.addrs) == cap(l.addrs) {
		l.flush()
	}
	return end + 1
}

// flush hands on the blocks that have been read, or holds them back.
func (l *traceLog) flush() {
	if l.begun {
		l.hand(l.addrs)
	} else if l.held = append(l.held, l.addrs...); len(l.held) > maxHeld {
		l.settle()
	}
	l.addrs = l.addrs[:0]
}

// hand hands blocks on.
func (l *traceLog) hand(addrs []uint64) {
	n := min(int64(len(addrs)), *l.left)
	*l.left -= n
	if n > 0 {
		l.to.Blocks(addrs[:n])
	}
}

// settle decides that the process goes on as it was forked.
func (l *traceLog) settle() {
	if len(l.held) > 0 {
		l.to.Fork(l.ancestor(l.parent))
		l.begun = true
		l.hand(l.held)
	}
	l.held = nil
}

// begin begins a log: that of a process that was forked or executes a program.
func (l *traceLog) begin() {
	l.flush()
	l.rest, l.skip, l.file, l.parent = l.rest[:0], false, "", ""
	l.begun, l.held = false, nil
}

// line reads one of valgrind's own lines: of the program, which begin with its number; of
// the file whose symbols it reads, as it does when the code is mapped; and of the address
// of the file's code, there and in memory.
func (l *traceLog) line(text []byte) {
	switch {
	case bytes.HasPrefix(text, []byte("==")) && bytes.Contains(text, []byte(traceGreeting)):
		l.begin()
	case bytes.HasPrefix(text, []byte("==")) && bytes.Contains(text, []byte(parentKey)):
		_, pid, _ := bytes.Cut(text, []byte(parentKey))
		l.parent = string(pid)
	case bytes.HasPrefix(text, []byte("--")):
		l.mapped(text)
	case isFailure(string(text)):
		l.failed = string(text)
	}
}

// mapped reads a line that may be about a mapped file.
func (l *traceLog) mapped(text []byte) {
	if _, file, ok := bytes.Cut(text, []byte(symbolsKey)); ok {
		l.file = string(file)
		return
	}
	_, in, ok := bytes.Cut(text, []byte(addressKey))
	if !ok || l.file == "" {
		return
	}
	svma, n := hexadecimal(in)
	in, ok = bytes.CutPrefix(in[n:], []byte(biasedKey))
	avma, m := hexadecimal(in)
	if ok && n > 0 && m > 0 {
		l.flush()
		l.exec()
		l.to.Mapped(l.file, avma-svma)
	}
	l.file = ""
}

// exec begins a program at the first mapping of a process. A forked process has the
// mappings of its parent, and executes something before it maps more.
func (l *traceLog) exec() {
	switch {
	case l.begun:
	case len(l.held) > 0:
		l.settle()
	default:
		l.begun = true
		l.execs++
		l.to.Exec()
	}
}

// hexadecimal reads a number of at most 64 bits and returns how many digits it has.
func hexadecimal(text []byte) (v uint64, n int) {
	for n < len(text) && n < 16 {
		d := hexDigit(text[n])
		if d < 0 {
			break
		}
		v = v<<4 | uint64(d)
		n++
	}
	return v, n
}
