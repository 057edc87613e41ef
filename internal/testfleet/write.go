package testfleet

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/klauspost/compress/snappy"
)

// batch is how many samples a request of remote write has.
const batch = 5000

// A Writer writes samples by remote write, version 1.
type Writer struct {
	URL     string
	buf     []byte
	series  []byte
	n       int
	samples int

	mu    sync.Mutex
	err   error
	slots chan struct{}
	wait  sync.WaitGroup
}

// NewWriter returns a writer to the address of a store's receiver.
func NewWriter(url string, connections int) *Writer {
	return &Writer{URL: url, slots: make(chan struct{}, connections)}
}

// add adds a sample of the series with some labels.
func (w *Writer) add(labels []byte, value float64, at time.Time) {
	var sample [24]byte
	s := append(sample[:0], 0x09)
	s = binary.LittleEndian.AppendUint64(s, math.Float64bits(value))
	s = append(s, 0x10)
	s = binary.AppendUvarint(s, uint64(at.UnixMilli()))
	w.series = append(append(w.series[:0], labels...), 0x12, byte(len(s)))
	w.series = append(w.series, s...)
	w.buf = append(w.buf, 0x0a)
	w.buf = binary.AppendUvarint(w.buf, uint64(len(w.series)))
	w.buf = append(w.buf, w.series...)
	w.samples++
	if w.n++; w.n == batch {
		w.send()
	}
}

// Add adds a sample of a series with the labels.
func (w *Writer) Add(labels map[string]string, value float64, at time.Time) {
	var b []byte
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		b = label(b, name, labels[name])
	}
	w.add(b, value, at)
}

// Flush waits until all was written, and returns the first error.
func (w *Writer) Flush() error {
	w.flush()
	return w.err
}

// send sends what was added, while more is added.
func (w *Writer) send() {
	body := snappy.Encode(nil, w.buf)
	w.buf, w.n = w.buf[:0], 0
	w.slots <- struct{}{}
	w.wait.Add(1)
	go func() {
		defer func() { <-w.slots; w.wait.Done() }()
		if err := post(w.URL, body); err != nil {
			w.mu.Lock()
			w.err = err
			w.mu.Unlock()
		}
	}()
}

// flush waits until all was written.
func (w *Writer) flush() {
	if w.n > 0 {
		w.send()
	}
	w.wait.Wait()
}

func post(url string, body []byte) error {
	req, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Encoding", "snappy")
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("X-Prometheus-Remote-Write-Version", "0.1.0")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(res.Body, 1000))
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("remote write: %s: %s", res.Status, text)
	}
	return nil
}
