package source

import (
	"bufio"
	"io"
	"os"
	"sync"

	"github.com/cyclestack/cyclestack/source/perfdata"
)

// stdin is standard input, with room to look at its beginning.
var stdin = sync.OnceValue(func() *bufio.Reader { return bufio.NewReaderSize(os.Stdin, sniff) })

// Stdin returns standard input from its beginning: Open and [Sampled] leave nothing
// out.
func Stdin() io.Reader {
	if rewind(os.Stdin) {
		return os.Stdin
	}
	return stdin()
}

// Sampled reports whether a recording is a perf.data file with samples, or a directory
// of such. What cannot be opened is none; Open then says why.
func Sampled(name string) bool {
	if name == "-" {
		return sampledStdin()
	}
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil && st.IsDir() {
		d, err := perfdata.OpenDir(name)
		if err != nil {
			return false
		}
		d.Close()
		return true
	}
	head := make([]byte, sniff)
	n, _ := io.ReadFull(f, head)
	samples, _ := sampled(head[:n])
	return samples
}

// sampledStdin is Sampled for standard input, of which it waits for no more than it
// takes to decide.
func sampledStdin() bool {
	b, ok := Stdin().(*bufio.Reader)
	if !ok {
		head := make([]byte, sniff)
		n, _ := io.ReadFull(os.Stdin, head)
		samples, _ := sampled(head[:n])
		return samples && rewind(os.Stdin)
	}
	for {
		_, err := b.Peek(min(b.Buffered()+1, sniff))
		head, _ := b.Peek(b.Buffered())
		samples, decided := sampled(head)
		if decided || err != nil || len(head) == sniff {
			return samples
		}
	}
}

// sampled decides by the beginning of a recording.
func sampled(head []byte) (samples, decided bool) {
	const magic = 8
	if !perfdata.Detect(head) {
		return false, len(head) >= magic
	}
	return perfdata.HoldsSamples(head)
}
