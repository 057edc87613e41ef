package progress

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"
)

// shows runs a line for so many ticks of half a second, and returns what a terminal gets.
func shows(l *Line, b *bytes.Buffer, ticks int) string {
	begin, c := time.Unix(0, 0), make(chan time.Time)
	go l.run(begin, c)
	for i := range ticks {
		c <- begin.Add(time.Duration(i+1) * often)
	}
	l.End()
	l.End()
	return b.String()
}

// TestLine: nothing is shown for two seconds. The line fits the terminal, and goes at the end.
func TestLine(t *testing.T) {
	b := &bytes.Buffer{}
	l := newLine(b, func(d time.Duration) string { return d.String() + strings.Repeat("–", 100) })
	if got := shows(l, b, 3); got != "" {
		t.Errorf("before two seconds there is %q", got)
	}
	l = newLine(b, l.text)
	if got, want := shows(l, b, 4), "\r\x1b[K2s"+strings.Repeat("–", 77)+"\r\x1b[K"; got != want {
		t.Errorf("after two seconds there is %q, want %q", got, want)
	}
	b.Reset()
	if got := shows(newLine(b, func(time.Duration) string { return "" }), b, 9); got != "" {
		t.Errorf("no text is %q", got)
	}
	if On(b, l.text) != nil || Of(b) != nil {
		t.Error("a line on what is no terminal")
	}
	var none *Files
	none.Read("a", 1, 2)
	none.End()
	if none.Writer(b, b) != io.Writer(b) {
		t.Error("a writer for no line")
	}
}

// TestFiles: a file is read twice, then its names are looked up. The output is in a file.
func TestFiles(t *testing.T) {
	b, f := &bytes.Buffer{}, &Files{}
	out, tick := f.Writer(io.Discard, io.Discard), 0
	steps := []func(){
		func() {}, func() { f.Read("a.data", 1<<20, 100<<20) }, func() { f.Read("a.data", 2<<20, 100<<20) },
		func() { f.Read("a.data", 43<<20, 100<<20) }, func() { f.Read("a.data", 105<<20, 100<<20) }, func() {},
		func() { _, _ = out.Write(make([]byte, 3<<20)) }, func() {}, func() { f.Read("-", 5<<20, -1) }, func() { f.Read("-", 5<<20, 5<<20) },
	}
	f.line = newLine(b, func(d time.Duration) string {
		steps[tick]()
		tick++
		return f.text(d)
	})
	var want strings.Builder
	for _, text := range []string{"reading a.data: 43 %", "reading a.data again: 5 %", "looking up names", "writing: 3 MB", "reading -: 5 MB", "writing: 3 MB"} {
		want.WriteString("\r\x1b[K" + text)
	}
	want.WriteString("\r\x1b[K")
	if got := shows(f.line, b, len(steps)); got != want.String() {
		t.Errorf("there is %q, want %q", got, want.String())
	}
}

// TestTerminalOutput: output on a terminal ends the line first.
func TestTerminalOutput(t *testing.T) {
	b, f := &bytes.Buffer{}, &Files{}
	f.line = newLine(b, f.text)
	out := &writer{b, f, true}
	c := make(chan time.Time)
	go f.line.run(time.Unix(0, 0), c)
	f.Read("a", 1, 2)
	c <- time.Unix(2, 0)
	if _, err := out.Write([]byte("account\n")); err != nil {
		t.Fatal(err)
	}
	if got, want := b.String(), "\r\x1b[Kreading a: 50 %\r\x1b[Kaccount\n"; got != want {
		t.Errorf("there is %q, want %q", got, want)
	}
}
