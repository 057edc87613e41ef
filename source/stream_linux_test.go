package source_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/source/samples"
	"github.com/cyclestack/cyclestack/source"
)

// fifo makes a named pipe. Each call of write writes a recording into it once; the channel
// is closed when the pipe's end is.
func fifo(t *testing.T, recording string) (name string, write func() <-chan struct{}) {
	t.Helper()
	name = filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(recording)
	if err != nil {
		t.Fatal(err)
	}
	return name, func() <-chan struct{} {
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			if f, err := os.OpenFile(name, os.O_WRONLY, 0); err == nil {
				_, _ = f.Write(text)
				f.Close()
			}
		}()
		return closed
	}
}

// TestFIFO opens a named pipe twice: each time it has what was written into it, and
// Close closes it.
func TestFIFO(t *testing.T) {
	name, write := fifo(t, "perfdata/testdata/pipe.data")
	before := descriptors(t)
	for i := range 2 {
		written := write()
		rec, err := source.Open(name)
		if err != nil {
			t.Fatalf("time %d: %v", i, err)
		}
		if !rec.Stream() || !rec.HasSamples() {
			t.Errorf("time %d: stream %v, samples %v", i, rec.Stream(), rec.HasSamples())
		}
		r := rec.Samples(samples.Options{By: counts.Module})
		if !r.Next() {
			t.Errorf("time %d: %v", i, r.Err())
		}
		r.Close()
		if again := rec.Tables(0); again.Next() || again.Err() == nil || !strings.Contains(again.Err().Error(), "read only once") {
			t.Errorf("time %d: read again: %v", i, again.Err())
		}
		if err := rec.Close(); err != nil {
			t.Error(err)
		}
		<-written
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors are open, %d were", after, before)
	}
}

// TestUnreadFIFO closes a pipe after a look at its beginning.
func TestUnreadFIFO(t *testing.T) {
	name, write := fifo(t, "../examples/power7-cpi.txt")
	before := descriptors(t)
	written := write()
	rec, err := source.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	if rec.HasSamples() {
		t.Error("it has samples")
	}
	if err := rec.Close(); err != nil {
		t.Error(err)
	}
	<-written
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors are open, %d were", after, before)
	}
}

// descriptors counts the open files of this process.
func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	return len(list)
}

// TestPipe reads a pipe that a shell would name /dev/fd/N: the whole of it, though its
// beginning was looked at.
func TestPipe(t *testing.T) {
	text, err := os.ReadFile("perfdata/testdata/pipe.data")
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	go func() {
		_, _ = w.Write(text)
		w.Close()
	}()
	rec, err := source.Open(fmt.Sprintf("/dev/fd/%d", r.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	if !rec.HasSamples() {
		t.Error("not recognised")
	}
	stacks, err := rec.Stacks(samples.Options{By: counts.Function})
	if err != nil {
		t.Fatal(err)
	}
	defer stacks.Close()
	file, err := source.Open("perfdata/testdata/pipe.data")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	want, err := file.Stacks(samples.Options{By: counts.Function})
	if err != nil {
		t.Fatal(err)
	}
	defer want.Close()
	if got, want := stacks.Len(), want.Len(); got != want || got == 0 {
		t.Errorf("%d stacks, from the file %d", got, want)
	}
	_, _ = io.Copy(io.Discard, r)
}
