package source

import (
	"bufio"
	"io"
	"os"
	"sync"

	"github.com/cyclestack/cyclestack/internal/source/accounts"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// streams are what can be read only once, by name, each with room to look at its
// beginning.
var streams struct {
	sync.Mutex
	open map[string]*bufio.Reader
}

// Stream returns what a name stands for if it cannot be opened again: standard input
// ("-"), or a pipe, such as a shell makes for <(COMMAND). It is opened once, and begins
// where nothing but [Sampled] and [Open] has looked at it. It is nil for files and
// directories, and for what is not there.
func Stream(name string) (io.Reader, error) {
	if name == "-" && rewind(os.Stdin) {
		return os.Stdin, nil
	}
	streams.Lock()
	defer streams.Unlock()
	if b := streams.open[name]; b != nil {
		return b, nil
	}
	f := os.Stdin
	if name != "-" {
		st, err := os.Stat(name)
		if err != nil || st.Mode().IsRegular() || st.IsDir() {
			return nil, nil
		}
		if f, err = os.Open(name); err != nil {
			return nil, err
		}
	}
	if streams.open == nil {
		streams.open = map[string]*bufio.Reader{}
	}
	b := bufio.NewReaderSize(f, sniff)
	streams.open[name] = b
	return b, nil
}

// Sampled reports whether a recording is a perf.data file with samples, or a directory
// of such. What cannot be opened is none; Open then says why.
func Sampled(name string) bool {
	if r, err := Stream(name); r != nil || err != nil {
		return sampledStream(r)
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

// Kept reports whether a file is an account that was kept as JSON: its places in the code
// are those that it names. What can be read only once is none that could be read again.
func Kept(name string) bool {
	if st, err := os.Stat(name); err != nil || !st.Mode().IsRegular() {
		return false
	}
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, sniff)
	n, _ := io.ReadFull(f, head)
	return accounts.Detect(head[:n])
}

// sampledStream is Sampled for a stream, of which it waits for no more than it takes to
// decide.
func sampledStream(r io.Reader) bool {
	b, ok := r.(*bufio.Reader)
	if !ok {
		if r != os.Stdin {
			return false
		}
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
