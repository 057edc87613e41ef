// Package progress shows on a terminal how far a command is.
package progress

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// A Line is the line of a terminal with the progress of a command. It appears after two seconds,
// and goes at the end. A nil Line shows nothing.
type Line struct {
	to    io.Writer
	width func() int
	text  func(elapsed time.Duration) string
	once  sync.Once
	done  chan struct{}
	ended chan struct{}
}

const (
	quiet = 2 * time.Second        // without a line
	often = 500 * time.Millisecond // between two texts
)

// On returns a line with the text of the moment; "" is no line. It is nil if the stream is no
// terminal.
func On(stream io.Writer, text func(elapsed time.Duration) string) *Line {
	if !terminal(stream) {
		return nil
	}
	f := stream.(*os.File)
	l := newLine(f, text)
	l.width = func() int {
		columns, _, err := term.GetSize(int(f.Fd()))
		if err != nil || columns < 1 {
			columns = 80
		}
		return columns
	}
	go func() {
		tick := time.NewTicker(often)
		defer tick.Stop()
		l.run(time.Now(), tick.C)
	}()
	return l
}

func newLine(to io.Writer, text func(time.Duration) string) *Line {
	return &Line{to: to, width: func() int { return 80 }, text: text, done: make(chan struct{}), ended: make(chan struct{})}
}

// terminal reports whether a stream is one.
func terminal(stream io.Writer) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// run shows the line until it ends.
func (l *Line) run(begin time.Time, ticks <-chan time.Time) {
	defer close(l.ended)
	shown := ""
	for {
		select {
		case <-l.done:
			if shown != "" {
				fmt.Fprint(l.to, "\r\x1b[K")
			}
			return
		case now := <-ticks:
			text := l.text(now.Sub(begin))
			if now.Sub(begin) < quiet || text == shown {
				continue
			}
			letters := []rune(text)
			fmt.Fprintf(l.to, "\r\x1b[K%s", string(letters[:min(len(letters), l.width()-1)]))
			shown = text
		}
	}
}

// End removes the line.
func (l *Line) End() {
	if l == nil {
		return
	}
	l.once.Do(func() { close(l.done) })
	<-l.ended
}
