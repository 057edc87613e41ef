package perfstat

import (
	"bytes"
	"io"
)

// maxLine is the longest line that is read whole. perf's own lines are shorter
// than 1 KiB, but the command line above them can name hundreds of events.
const maxLine = 1 << 20

// A lineReader splits its input into lines without copying them.
type lineReader struct {
	src        io.Reader
	buf        []byte
	start, end int   // the unread part of buf
	eof        bool  // src is exhausted
	err        error // what src failed with
	num        int   // number of the line last returned, from 1
	cut        bool  // the line last returned ends with the input, without a line end
	loneCR     bool  // a carriage return ends a line, as a line feed does
	long       bool  // the line last returned is the beginning of one longer than maxLine
}

func newLineReader(src io.Reader) lineReader {
	return lineReader{src: src, buf: make([]byte, 32<<10)}
}

// head returns what the input begins with: at least n bytes if it has them, and at most what
// one read gives: a pipe is not waited for.
func (l *lineReader) head(n int) []byte {
	for l.end-l.start < n && !l.eof {
		l.fill()
	}
	return l.buf[l.start:l.end]
}

// skip drops n bytes from the front of the unread part.
func (l *lineReader) skip(n int) { l.start += n }

// done reports whether there are no more lines.
func (l *lineReader) done() bool { return l.eof && l.start == l.end }

// next returns the next line without its line end. The line is valid until the
// following call.
func (l *lineReader) next() ([]byte, bool) {
	l.long = false
	searched := 0
	for {
		unread := l.buf[l.start:l.end]
		if i := l.lineEnd(unread[searched:]); i >= 0 {
			i += searched
			l.start += i + 1
			l.num++
			return trimCR(unread[:i]), true
		}
		searched = len(unread)
		if l.eof {
			return l.last(unread)
		}
		if searched >= maxLine {
			return l.tooLong(), true
		}
		l.fill()
	}
}

// lineEnd returns the index of the first line end in b, -1 if there is none.
func (l *lineReader) lineEnd(b []byte) int {
	if l.loneCR {
		return bytes.IndexAny(b, "\r\n")
	}
	return bytes.IndexByte(b, '\n')
}

// endsWithCR reports whether the lines of an input end with a carriage return
// alone: there are some, and no line feed.
func endsWithCR(head []byte) bool {
	i := bytes.IndexByte(head, '\r')
	return i >= 0 && i+1 < len(head) && bytes.IndexByte(head, '\n') < 0
}

// last returns what follows the last line end.
func (l *lineReader) last(rest []byte) ([]byte, bool) {
	if len(rest) == 0 {
		return nil, false
	}
	l.start, l.cut = l.end, true
	l.num++
	return trimCR(rest), true
}

// tooLong returns the beginning of a line longer than maxLine and drops the
// rest of it.
func (l *lineReader) tooLong() []byte {
	const kept = 4 << 10
	line := bytes.Clone(l.buf[l.start : l.start+kept])
	l.long = true
	l.num++
	for {
		if i := l.lineEnd(l.buf[l.start:l.end]); i >= 0 {
			l.start += i + 1
			return line
		}
		l.start, l.end = 0, 0
		if l.eof {
			return line
		}
		l.fill()
	}
}

// fill reads more, moving the unread part to the front of the buffer or growing
// it where it is full.
func (l *lineReader) fill() {
	if l.start > 0 {
		copy(l.buf, l.buf[l.start:l.end])
		l.start, l.end = 0, l.end-l.start
	}
	if l.end == len(l.buf) {
		l.buf = append(l.buf, make([]byte, len(l.buf))...)
	}
	const patience = 100 // empty reads before giving up, as in package bufio
	for range patience {
		n, err := l.src.Read(l.buf[l.end:])
		l.end += n
		if err != nil {
			l.eof = true
			if err != io.EOF {
				l.err = err
			}
			return
		}
		if n > 0 {
			return
		}
	}
	l.eof, l.err = true, io.ErrNoProgress
}

func trimCR(line []byte) []byte {
	if n := len(line); n > 0 && line[n-1] == '\r' {
		return line[:n-1]
	}
	return line
}
