package object

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// PerfMapName is the file with the names of code that just-in-time compilers made for a
// process.
func PerfMapName(pid int) string { return fmt.Sprintf("/tmp/perf-%d.map", pid) }

// maxPerfMapLine bounds a line of a perf map.
const maxPerfMapLine = 1 << 16

// ReadPerfMap reads a perf map: lines of an address and a size in hexadecimal, and a name
// that may contain blanks. Source: tools/perf/Documentation/jit-interface.txt of Linux.
// Lines of another form are left out and counted; the last one may be truncated. It is an
// error if add has no room for a name.
func ReadPerfMap(r io.Reader, add func(start, size uint64, name []byte) bool) (odd int, err error) {
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxPerfMapLine)
	for s.Scan() {
		a, rest, ok := bytes.Cut(s.Bytes(), []byte(" "))
		b, name, ok2 := bytes.Cut(rest, []byte(" "))
		start, err := strconv.ParseUint(string(bytes.TrimPrefix(a, []byte("0x"))), 16, 64)
		size, err2 := strconv.ParseUint(string(bytes.TrimPrefix(b, []byte("0x"))), 16, 64)
		switch {
		case !ok || !ok2 || err != nil || err2 != nil || len(name) == 0 || start+size < start:
			odd++
		case !add(start, size, name):
			return odd, errors.New("there are too many symbols")
		}
	}
	return odd, s.Err()
}
